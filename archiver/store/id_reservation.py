"""Reservation of item IDs in a small file beside the raw copies, so that no ID is issued twice.

The file contains the highest reserved ID. Each write of the file reserves `_AHEAD` further IDs, so the file is ahead of
the database by up to `_AHEAD` IDs. If a database is rebuilt from the raw copies, or restored from a backup, it
continues after the highest reserved ID.

Exception: a restored database that lacks fewer than `_AHEAD` IDs can issue these IDs again.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from ...core.durability import replacing, with_checksum, without_checksum
from ...core.home import Home
from .database import Database

_TITLE: Final = b"palaver-given-2 "
_AHEAD: Final = 1_000
_LAST: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'item'"


class IdReservation:
    """Reserved IDs of one store. If the file is missing, no IDs are reserved."""

    def __init__(self, database: Database) -> None:
        self._db, self._path, self._reserved = database, Home(database.path.parent).numbers, 0
        self._skipped = False

    def reserve(self) -> None:
        """Reserve more IDs if the current transaction issued an unreserved ID. Call this before the commit."""
        last = self._db.number(_LAST)
        if last <= self._reserved or not self._path.parent.is_dir():
            return
        self._reserved = self._read()
        if last > self._reserved:
            with suppress(OSError):  # Commit even if reserving IDs fails.
                self._write(last + _AHEAD)

    def skip_reserved(self) -> None:
        """Continue after the reserved IDs if a restored database has issued far fewer IDs than the file records.

        Call this before writes.
        """
        if self._skipped:
            return
        if self._is_behind(self._read()):
            with self._db.transaction():
                if self._is_behind(reserved := self._read()):
                    self._db.run("DELETE FROM sqlite_sequence WHERE name = 'item'")
                    self._db.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('item', ?)", (reserved,))
        self._skipped = True

    @property
    def damage(self) -> str:
        """Description of a file that does not match its checksum, or that is missing although IDs were issued."""
        if self._path.exists():
            is_damaged = not self._read()
        else:
            is_damaged = self._path.parent.is_dir() and self._db.number(_LAST) > 0
        return f"{self._path}, which records the IDs in use, is missing or damaged" if is_damaged else ""

    def renew(self) -> None:
        """Write the file again, with `_AHEAD` IDs reserved after the last issued ID. Raises `OSError`."""
        self._write(self._db.number(_LAST) + _AHEAD)

    def _is_behind(self, reserved: int) -> bool:
        return reserved > self._db.number(_LAST) + _AHEAD

    def _read(self) -> int:
        return highest_reserved(self._path)

    def _write(self, reserved: int) -> None:
        with replacing(self._path) as file:
            file.write(with_checksum(b"%s%d" % (_TITLE, reserved)))
        self._reserved = reserved


def highest_reserved(path: Path) -> int:
    """Return the highest reserved ID that a file contains, or 0 if the file is missing or damaged."""
    try:
        line = path.read_bytes()
    except OSError:
        return 0
    if line.startswith(_TITLE):
        line = without_checksum(line) or b""
    number = line.removeprefix(_TITLE).strip()
    return int(number) if number.isdigit() and len(number) < 16 else 0
