"""Watermark: the number of the last committed change, in a small file beside the copies.

A database that is behind it lost writes that were acknowledged, as when its write-ahead log was deleted. The file is
written after each commit and not synced: after a power cut it may be behind the database, never ahead of it.
"""

from contextlib import suppress
from typing import Final

from ...core.home import Home
from .changes import Changes
from .database import Database

_LOST: Final = ".lost"


class Watermark:
    """The last change of one store, and whether changes are missing."""

    def __init__(self, database: Database, changes: Changes) -> None:
        self._path, self._changes = Home(database.path.parent).changes, changes
        self._lost_path = self._path.with_name(self._path.name + _LOST)
        self._written = -1

    @property
    def missing(self) -> int:
        """How many acknowledged changes the database lacks, 0 for none."""
        with suppress(OSError):
            return max(1, int(self._lost_path.read_bytes() or 1))
        return max(0, self._read() - self._changes.last())

    def advance(self) -> None:
        """After a commit: write the number of the last change. A loss seen on the way is kept in a file of its own."""
        last = self._changes.last()
        if last == self._written or not self._path.parent.is_dir():
            return
        with suppress(OSError):
            self._path.touch(0o600)
            self._path.write_bytes(b"%020d\n" % last)
        self._written = last

    def check(self) -> None:
        """Before the first write of a process: keep it on record if changes are missing."""
        if self._written < 0:
            self._written = 0
            if missing := max(0, self._read() - self._changes.last()):
                with suppress(OSError):
                    self._lost_path.touch(0o600)
                    self._lost_path.write_bytes(b"%d\n" % missing)

    def accept(self) -> None:
        """Take the database as it is: what is missing was reported, and cannot be had back."""
        for path in (self._lost_path, self._path):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._written = 0
        self.advance()

    def _read(self) -> int:
        try:
            return int(self._path.read_bytes())
        except (OSError, ValueError):
            return 0
