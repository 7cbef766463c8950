"""Containers: files and databases of many conversations, each as it was when it was last taken up as a whole."""

import os
from pathlib import Path

from .database import Database


class Containers:
    """Reads and writes the states of containers."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def state(self, path: Path) -> int | None:
        """The state in which a container was taken up; None when it never was."""
        row = self._db.one("SELECT state FROM container WHERE path = ?", (os.fsencode(path),))
        return row[0] if row and isinstance(row[0], int) else None

    def keep(self, path: Path, state: int) -> None:
        """All conversations of a container were taken up in this state."""
        self._db.run("INSERT OR REPLACE INTO container VALUES (?, ?)", (os.fsencode(path), state))
