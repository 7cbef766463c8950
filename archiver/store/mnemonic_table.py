"""Mnemonics: memory files in projects. The table stores the state of each file at its last synchronisation."""

from msgspec import Struct
from msgspec.structs import replace

from ...core.origin import Origin
from .database import Database


class MirroredFile(Struct, frozen=True):
    """State of a memory file and its memory when they were last synchronised.

    `digest` is computed from the bytes of the file, and `content_hash` from the content of the memory. `declared` is
    the memory type that the file declares. `memory` is None if the memory was erased. `gone` is true if the file was
    deleted.
    """

    path: str
    memory: int | None
    digest: str
    content_hash: str
    declared: str = ""
    created: str = ""
    gone: bool = False


class MnemonicTable:
    """Table of mirrored files, by absolute path."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def allowed(self) -> list[str]:
        """Return the folders whose memory files the user trusts."""
        return [row[0] for row in self._db.rows("SELECT path FROM allowed_folder ORDER BY path")]

    def allow(self, folder: str) -> None:
        """Trust the memory files in a folder, including files that appear later."""
        self._db.run("INSERT OR IGNORE INTO allowed_folder VALUES (?)", (folder,))
        self._change_origin(folder, Origin.EXTERNAL, Origin.DOCUMENT)

    def disallow(self, folder: str) -> None:
        """Stop trusting the memory files in a folder."""
        self._db.run("DELETE FROM allowed_folder WHERE path = ?", (folder,))
        self._change_origin(folder, Origin.DOCUMENT, Origin.EXTERNAL)

    def _change_origin(self, folder: str, before: Origin, after: Origin) -> None:
        self._db.run(
            "UPDATE memory SET origin = ? WHERE origin = ? AND path >= ? AND path < ?", (after, before, *_range(folder))
        )

    def below(self, folder: str) -> dict[str, MirroredFile]:
        """Return the mirrored files below a folder, in path order."""
        rows = self._db.rows(
            """SELECT path, memory, digest, content_hash, declared, created, gone FROM mnemonic
               WHERE path >= ? AND path < ? ORDER BY path""",
            _range(folder),
        )
        found = (MirroredFile(*row) for row in rows)
        return {each.path: replace(each, gone=bool(each.gone)) for each in found}

    def put(self, mirrored: MirroredFile) -> None:
        """Store the state of a file, or replace its stored state."""
        each = mirrored
        self._db.run(
            "INSERT OR REPLACE INTO mnemonic VALUES (?, ?, ?, ?, ?, ?, ?)",
            (each.path, each.memory, each.digest, each.content_hash, each.declared, each.created, int(each.gone)),
        )

    def rehash(self, memory: int, before: str, after: str) -> None:
        """Record the new content hash of a redacted memory, so that the memory does not count as edited."""
        self._db.run(
            "UPDATE mnemonic SET content_hash = ? WHERE memory = ? AND content_hash = ?", (after, memory, before)
        )

    def drop(self, path: str) -> None:
        """Delete the record of a file."""
        self._db.run("DELETE FROM mnemonic WHERE path = ?", (path,))


def _range(folder: str) -> tuple[str, str]:
    """Return the first path below a folder, and the first path that sorts after all paths below it."""
    plain = folder.rstrip("/")
    return f"{plain}/", f"{plain}0"
