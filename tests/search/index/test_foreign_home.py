"""Tests of searching a home that is read-only for this process."""

from pathlib import Path

from palaver.core.home import Home

from ...unprivileged import let_read, let_write, start
from ..history import History, Said

SEARCHING = """
import sys
from pathlib import Path
from palaver.archiver.store import Store
from palaver.core.query import (Filters)
from palaver.search.index.generation import Generations
from palaver.search.index.snapshot import Snapshot

class Unasked:
    name = "unasked"

home = Path(sys.argv[1])
with Store.open(home / "palaver.db") as store:
    snapshot = Snapshot(store, Generations(home / "index"), Unasked())
    print(snapshot.lag, snapshot.model, len(snapshot.text("brass", Filters(), 9)) > 0, flush=True)
"""


def test_the_published_index_is_opened(tmp_path: Path) -> None:
    """A read-only process opens the published index, does not build one in memory, and leaves no files."""
    home, temporary = Home(tmp_path / "home"), tmp_path / "temporary"
    home.root.mkdir()
    temporary.mkdir()
    history = History(home.root)
    history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()
    history.store.close()
    for lock in home.index.rglob("*.lock"):
        lock.unlink()
    before = sorted(home.root.rglob("*"))
    let_read(home.root)

    with start(SEARCHING, home.root, TMPDIR=str(temporary)) as reader:
        output, _ = reader.communicate()

    assert output == f"0 {history.embedder.name} True\n"
    assert sorted(home.root.rglob("*")) == before
    assert list(temporary.iterdir()) == []
    let_write(home.root)
