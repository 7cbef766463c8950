"""Numbering: up to where ids were given, in a small file beside the copies, so that an old id is not given again.

A database that is made anew from the copies, or put back as it was, goes on behind what the lost one can have given.
The file is ahead of what was given, so it is written once for many ids; that a few ids were given since a database was
as it is now cannot be told from it. So of a database that is put back with less than `_AHEAD` ids missing, those can be
given again, and all of them where this file was lost or put back too.
"""

from contextlib import suppress
from typing import Final

from ...core.durability import replacing, with_checksum, without_checksum
from ...core.home import Home
from .database import Database

_TITLE: Final = b"palaver-given-2 "
_AHEAD: Final = 1_000
_LAST: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'item'"


class Numbering:
    """The ids of one store. Where nothing stands beside the copies yet, nothing is known of earlier ones."""

    def __init__(self, database: Database) -> None:
        self._db, self._path, self._reserved = database, Home(database.path.parent).numbers, 0
        self._went_on = False

    def write_down(self) -> None:
        """Reserve more ids before a commit that gives some beyond those that are."""
        last = self._db.number(_LAST)
        if last <= self._reserved or not self._path.parent.is_dir():
            return
        self._reserved = self._read()
        if last > self._reserved:
            with suppress(OSError):  # That an id could be given again is no reason to keep nothing.
                self._write(last + _AHEAD)

    def go_on(self) -> None:
        """Before the first id is given: begin behind all that was ever reserved, in a database that is behind it."""
        if self._went_on:
            return
        if self._is_behind(self._read()):
            with self._db.transaction():
                if self._is_behind(reserved := self._read()):
                    self._db.run("DELETE FROM sqlite_sequence WHERE name = 'item'")
                    self._db.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('item', ?)", (reserved,))
        self._went_on = True

    def _is_behind(self, reserved: int) -> bool:
        return reserved > self._db.number(_LAST) + _AHEAD

    @property
    def is_damaged(self) -> bool:
        """True if the file exists and its checksum does not match."""
        return self._path.exists() and not self._read()

    def renew(self) -> None:
        """Rewrite the file. Raises `OSError`."""
        self._write(self._db.number(_LAST) + _AHEAD)

    def _read(self) -> int:
        try:
            said = self._path.read_bytes()
        except OSError:
            return 0
        if said.startswith(_TITLE):
            said = without_checksum(said) or b""
        number = said.removeprefix(_TITLE).strip()
        return int(number) if number.isdigit() and len(number) < 16 else 0

    def _write(self, reserved: int) -> None:
        with replacing(self._path) as file:
            file.write(with_checksum(b"%s%d" % (_TITLE, reserved)))
        self._reserved = reserved
