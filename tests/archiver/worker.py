"""Process that ingests transcripts, for tests that kill it, measure its memory, or run it twice at once.

worker.py plain FOLDER HOME        ingest once; print the growth of peak memory in bytes
worker.py kill FOLDER HOME N       ingest once; the process kills itself at step N, or prints the number of steps
worker.py wait FOLDER HOME         ingest once when the lease is free; print the number of failed attempts
"""

import resource
import sys
import time
from itertools import count
from pathlib import Path

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.errors import LeaseHeld
from palaver.core.home import Home

from .. import crash_injection


def ingest(store: Store, folder: Path, home: Home) -> None:
    Ingest(store, RawArchive(home.archive)).run(in_paths([folder]))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes. Linux reports KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def plain(folder: Path, home: Home) -> int:
    with Store.create(home.database) as store:
        before = peak_memory()
        ingest(store, folder, home)
        return peak_memory() - before


def kill(folder: Path, home: Home, at: int) -> int:
    def work() -> None:
        with Store.create(home.database) as store:
            ingest(store, folder, home)

    return crash_injection.run_with_crash(work, at)


def wait(folder: Path, home: Home) -> int:
    with Store.create(home.database) as store:
        for refused in count():
            try:
                with store.leases.hold("archiver"):
                    ingest(store, folder, home)
                    return refused
            except LeaseHeld:
                time.sleep(0.005)
    raise AssertionError


if __name__ == "__main__":
    mode, folder, home, *rest = sys.argv[1:]
    work = {"plain": plain, "kill": kill, "wait": wait}[mode]
    print(work(Path(folder), Home(Path(home)), *map(int, rest)))  # type: ignore[operator]
