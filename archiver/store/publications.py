"""Publications: which indexes were made from this store, so that one of another time or place is not taken for ours."""

from typing import Final

from .database import Database

_KEPT: Final = 100
"""Newer ones than any that is still opened."""


class Publications:
    """Remembers the tokens of the last indexes that were published."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, token: str) -> None:
        """An index with this token is about to be published."""
        number = self._db.run("INSERT INTO publication (token) VALUES (?)", (token,))
        self._db.run("DELETE FROM publication WHERE id <= ?", (number - _KEPT,))

    def knows(self, token: str) -> bool:
        """Whether an index with this token was made from this store, as it is or as it was before."""
        return self._db.one("SELECT 1 FROM publication WHERE token = ?", (token,)) is not None
