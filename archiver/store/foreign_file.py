"""A database file that somebody else may write and this process may not, and whether it is still what it was."""

import os
from pathlib import Path
from typing import NamedTuple, Self


class ForeignFile(NamedTuple):
    """A database as it was at one moment, beside which this process can make no file.

    It is `still` where it has no log. SQLite reads what has a log only with files beside it, and follows it then by
    itself. Without any the file alone is all, and whoever changes it has a log first; `mtime` is in nanoseconds, and
    with `size` 0 where SQLite follows.
    """

    inode: int
    still: bool
    mtime: int = 0
    size: int = 0

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """What is there now; None where this process may write, and where there is no file."""
        if os.access(path.parent, os.W_OK):
            return None
        try:
            found = path.stat()
            if has_log(path):
                return cls(found.st_ino, still=False)
        except OSError:
            return None
        return cls(found.st_ino, still=True, mtime=found.st_mtime_ns, size=found.st_size)


def has_log(path: Path) -> bool:
    """Return whether a database has a write-ahead log that is not empty."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False
