"""Mnemonics: the files that people keep memories in, as they were when the memory and the file said the same."""

from typing import cast

from msgspec import Struct

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


class Mnemonics:
    """Reads and writes what was mirrored, by absolute path."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def below(self, folder: str) -> dict[str, Mirrored]:
        """What was mirrored below a folder, by path."""
        start = f"{folder.rstrip('/')}/"
        rows = self._db.rows(
            """SELECT path, memory, digest, content_hash, declared, created, gone FROM mnemonic
               WHERE path >= ? AND path < ? ORDER BY path""",
            (start, f"{start[:-1]}0"),
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


def _mirrored(row: Row) -> Mirrored:
    path, digest, content_hash, declared, created = (str(row[column]) for column in (0, 2, 3, 4, 5))
    return Mirrored(path, cast("int | None", row[1]), digest, content_hash, declared, created, gone=bool(row[6]))
