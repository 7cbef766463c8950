"""Visits: for each project, the last time at which an agent called the tool `context.orient`."""

from ...core.conversation import Milliseconds
from .database import Database


class VisitTable:
    """Table of the last visit to each project. The key is the identity of the project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def last(self, project: str) -> Milliseconds | None:
        """Return the time of the last visit to the project with this identity, or None if there was none."""
        row = self._db.one("SELECT at FROM visit WHERE project = ?", (project,))
        return row[0] if row else None

    def record(self, project: str, at: Milliseconds) -> None:
        """Record a visit at the time `at`. If a later time is already stored, keep it."""
        self._db.run(
            "INSERT INTO visit VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET at = max(at, excluded.at)",
            (project, at),
        )
