"""Several processes at once, and one that is killed: every file is held whole, and once."""

import subprocess
import sys
import time
from pathlib import Path

from palaver.archiver.documents import Intake, Roots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store

PROGRAM = """
import sys
from pathlib import Path
from palaver.archiver.documents import Intake, Roots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
database, folder = map(Path, sys.argv[1:])
with Store.create(database) as store:
    Intake(store, Redactor(b"k" * 32)).index_directory(folder, "docs", Roots([folder]))
"""
FILES, SECTIONS = 40, 5


def begin(database: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(database), str(folder)])


def counted(database: Path) -> tuple[int, set[int]]:
    """How many files are held, and how many chunks each of them has."""
    with Store.create(database) as store:
        files = store.documents.files()
    return len(files), {file.chunks for file in files}


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Two take up the same folder while a third is killed in the middle of it."""
    folder, database = tmp_path / "docs", tmp_path / "palaver.db"
    folder.mkdir()
    for number in range(FILES):
        sections = (f"# Section {place}\nSays {number} and {place}.\n" for place in range(SECTIONS))
        (folder / f"{number}.md").write_text("".join(sections))

    victim = begin(database, folder)
    deadline = time.monotonic() + 30
    while counted(database)[0] < 3:
        assert victim.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    victim.kill()
    victim.wait()
    assert counted(database)[1] == {SECTIONS}

    for process in [begin(database, folder), begin(database, folder)]:
        assert process.wait(timeout=30) == 0
    assert counted(database) == (FILES, {SECTIONS})
    with Store.open(database) as store:
        assert len(store.items.all_keys()) == FILES * SECTIONS
        again = Intake(store, Redactor(b"k" * 32)).index_directory(folder, "docs", Roots([folder]))
    assert (again.indexed, again.unchanged) == (0, FILES)
