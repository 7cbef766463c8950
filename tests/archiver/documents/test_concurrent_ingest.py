"""If several processes ingest at once and one is killed, every file is stored completely and exactly once."""

import subprocess
import sys
from pathlib import Path

from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store

from ... import crash_injection

PROGRAM = """
import sys
from pathlib import Path
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from tests.crash_injection import run_with_crash
database, folder, at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
with Store.create(database) as store:
    ingest = DocumentIngest(store, Redactor(b"k" * 32))
    print(run_with_crash(lambda: ingest.index_directory(folder, "docs", DocumentRoots([folder])), at))
"""
FILES, SECTIONS = 90, 5


def begin(database: Path, folder: Path, at: int = 0) -> subprocess.Popen[str]:
    """Start a process that indexes the folder. It kills itself at step `at`, unless `at` is 0."""
    command = [sys.executable, "-c", PROGRAM, str(database), str(folder), str(at)]
    return subprocess.Popen(
        command, cwd=crash_injection.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    said, complaint = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said, complaint)


def chunk_counts(database: Path) -> tuple[int, set[int]]:
    """Return the number of files, and the chunk counts of the files."""
    with Store.create(database) as store:
        files = store.documents.files()
    return len(files), {file.chunks for file in files}


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Two processes index a folder correctly after a third process was killed while indexing it."""
    folder, database = tmp_path / "docs", tmp_path / "home.db"
    folder.mkdir()
    for number in range(FILES):
        sections = (f"# Section {place}\nSays {number} and {place}.\n" for place in range(SECTIONS))
        (folder / f"{number}.md").write_text("".join(sections))

    steps = crash_injection.steps(ended(begin(tmp_path / "calm.db", folder)))
    crash_injection.kill(lambda at: ended(begin(database, folder, at)), steps // 2)
    files, chunks = chunk_counts(database)
    assert 0 < files < FILES
    assert chunks == {SECTIONS}

    for process in [begin(database, folder), begin(database, folder)]:
        crash_injection.steps(ended(process))
    assert chunk_counts(database) == (FILES, {SECTIONS})
    with Store.open(database) as store:
        assert len(store.items.all_keys()) == FILES * SECTIONS
        again = DocumentIngest(store, Redactor(b"k" * 32)).index_directory(folder, "docs", DocumentRoots([folder]))
    assert (again.indexed, again.unchanged) == (0, FILES)
