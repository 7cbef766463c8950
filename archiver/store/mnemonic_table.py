"""Mnemonics: the files that people keep memories in, as they were when the memory and the file said the same."""

from typing import cast

from msgspec import Struct

from ...core.origin import Origin
from .database import Database, Row


class Mirrored(Struct, frozen=True):
    """A file and its memory. `digest` is of the file's bytes, `content_hash` of what the memory then said, `declared`
    the type that the file then named. `memory` is None where it was erased; `gone` says that the file was deleted.
    """

    path: str
    memory: int | None
    digest: str
    content_hash: str
    declared: str = ""
    created: str = ""
    gone: bool = False


class MnemonicTable:
    """Reads and writes what was mirrored, by absolute path."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def allowed(self) -> list[str]:
        """Return the folders whose files the user allowed."""
        return [str(row[0]) for row in self._db.rows("SELECT path FROM allowed_folder ORDER BY path")]

    def allow(self, folder: str) -> None:
        """Trust the files of a folder that Palaver did not write, those to come included."""
        self._db.run("INSERT OR IGNORE INTO allowed_folder VALUES (?)", (folder,))
        self._change_origin(folder, Origin.EXTERNAL, Origin.DOCUMENT)

    def disallow(self, folder: str) -> None:
        """Trust them no more."""
        self._db.run("DELETE FROM allowed_folder WHERE path = ?", (folder,))
        self._change_origin(folder, Origin.DOCUMENT, Origin.EXTERNAL)

    def _change_origin(self, folder: str, before: Origin, after: Origin) -> None:
        self._db.run(
            "UPDATE memory SET origin = ? WHERE origin = ? AND path >= ? AND path < ?", (after, before, *_range(folder))
        )

    def below(self, folder: str) -> dict[str, Mirrored]:
        """What was mirrored below a folder, by path."""
        rows = self._db.rows(
            """SELECT path, memory, digest, content_hash, declared, created, gone FROM mnemonic
               WHERE path >= ? AND path < ? ORDER BY path""",
            _range(folder),
        )
        return {str(row[0]): _mirrored(row) for row in rows}

    def put(self, mirrored: Mirrored) -> None:
        """Note a file, in place of what was noted under its path."""
        each = mirrored
        self._db.run(
            "INSERT OR REPLACE INTO mnemonic VALUES (?, ?, ?, ?, ?, ?, ?)",
            (each.path, each.memory, each.digest, each.content_hash, each.declared, each.created, int(each.gone)),
        )

    def rehash(self, memory: int, before: str, after: str) -> None:
        """Note that a memory says what its file says although a secret was taken out of it alone."""
        self._db.run(
            "UPDATE mnemonic SET content_hash = ? WHERE memory = ? AND content_hash = ?", (after, memory, before)
        )

    def drop(self, path: str) -> None:
        """Forget that there was a file."""
        self._db.run("DELETE FROM mnemonic WHERE path = ?", (path,))


def _range(folder: str) -> tuple[str, str]:
    """Return the first path below a folder, and the first one after all of them."""
    plain = folder.rstrip("/")
    return f"{plain}/", f"{plain}0"


def _mirrored(row: Row) -> Mirrored:
    path, digest, content_hash, declared, created = (str(row[column]) for column in (0, 2, 3, 4, 5))
    return Mirrored(path, cast("int | None", row[1]), digest, content_hash, declared, created, gone=bool(row[6]))
