"""File states: keyed hashes of files at the time of an exchange, which show whether a file changed later."""

from collections.abc import Sequence
from typing import NamedTuple

from .database import AMONG, Database


class FileState(NamedTuple):
    """Content of a file at the time of an exchange.

    `path` is the path as observations cite it. `file` is the absolute path. `hash` is the keyed hash of the content.
    """

    path: str
    file: str
    hash: bytes


class FileStateTable:
    """Table of file states, by exchange. When the turns of an exchange change, its file states are deleted."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, exchange: int, states: Sequence[FileState]) -> None:
        """Replace the file states of an exchange."""
        self._db.run("DELETE FROM file_state WHERE exchange = ?", (exchange,))
        self._db.run_many(
            "INSERT OR REPLACE INTO file_state VALUES (?, ?, ?, ?)", [(exchange, *each) for each in states]
        )

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[FileState]]:
        """Return the file states of each exchange. Exchanges without file states are omitted."""
        rows = self._db.rows_among(
            f"SELECT exchange, path, file, hash FROM file_state WHERE exchange {AMONG} ORDER BY exchange, path",
            exchanges,
        )
        found: dict[int, list[FileState]] = {}
        for exchange, *values in rows:
            found.setdefault(exchange, []).append(FileState(*values))
        return found
