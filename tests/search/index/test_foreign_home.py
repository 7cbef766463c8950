"""Searching a home that somebody else writes and this process may only read."""

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


def test_what_is_published_is_used(tmp_path: Path) -> None:
    """The index is not made again in memory by each process that reads: it is opened, and no file is left of that."""
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
        said, _ = reader.communicate()

    assert said == f"0 {history.embedder.name} True\n"
    assert sorted(home.root.rglob("*")) == before
    assert list(temporary.iterdir()) == []
    let_write(home.root)
