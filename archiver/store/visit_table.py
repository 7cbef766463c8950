"""Visits: the last time at which an agent asked for the state of a project."""

from ...core.conversation import Milliseconds
from .database import Database


class VisitTable:
    """Table of the last visit of each project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def last(self, project: str) -> Milliseconds | None:
        """Return the last visit of the project with this identity, or None."""
        row = self._db.one("SELECT at FROM visit WHERE project = ?", (project,))
        return row[0] if row else None

    def record(self, project: str, at: Milliseconds) -> None:
        """Record a visit. An earlier visit of another process never replaces a later one."""
        self._db.run(
            "INSERT INTO visit VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET at = max(at, excluded.at)",
            (project, at),
        )
