"""Process that changes storage formats of copies, for tests that kill it.

    compression_worker.py compress|decompress ROOT NAME N      one copy
    compression_worker.py run FOLDER HOME N                    an ingest run, then compression of unchanged copies

The process is killed before its N-th change of the disk. If it makes fewer changes, it prints their number.
"""

import sys
from pathlib import Path

from palaver.archiver.copies.raw_copy import Copy

from ...crash_injection import run_with_crash

CHANGES = {"fsync", "link", "mkdir", "open", "remove", "rename", "replace", "rmdir", "unlink", "write"}


def change(event: str, called: object) -> bool:
    """Return whether a profiled call changes the disk. Methods of strings with the same names do not count."""
    name = getattr(called, "__name__", "")
    return event == "c_call" and name in CHANGES and not isinstance(getattr(called, "__self__", None), str)


def ingest_and_compress(folder: Path, root: Path) -> None:
    from palaver.archiver.copies.raw_copy import RawArchive
    from palaver.archiver.copies.verification import CopyCompressor
    from palaver.archiver.ingest.ingest import Ingest
    from palaver.archiver.ingest.transcripts import in_paths
    from palaver.archiver.store import Store
    from palaver.core.home import Home

    home = Home(root)
    with Store.create(home.database) as store:
        raw = RawArchive(home.archive)
        Ingest(store, raw).run(in_paths([folder]))
        CopyCompressor(store, raw).run()


if __name__ == "__main__":
    work, first, second, at = sys.argv[1:]
    if work == "run":
        print(run_with_crash(lambda: ingest_and_compress(Path(first), Path(second)), int(at), change))
    else:
        copy = Copy(Path(first), second)
        print(run_with_crash(copy.compress if work == "compress" else copy.decompress, int(at), change))
