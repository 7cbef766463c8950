"""Log of the text that hooks injected into sessions."""

import json

from ...core.conversation import Milliseconds
from ...core.injection import HookEvent, Injection, InjectionTotal
from .database import Database
from .path_seal import PathSeal


class InjectionTable:
    """Table of injections, in the order in which they were made."""

    def __init__(self, database: Database) -> None:
        self._db, self._names = database, PathSeal(database)

    def add(self, injection: Injection) -> None:
        """Record an injection."""
        self._db.run(
            "INSERT INTO injection (at, event, session_id, project, tokens, items) VALUES (?, ?, ?, ?, ?, ?)",
            (
                injection.at,
                injection.event,
                self._names.name(injection.session_id),
                self._names.name(injection.project),
                injection.tokens,
                json.dumps(injection.items),
            ),
        )

    def of_session(self, session_id: str) -> list[Injection]:
        """Return the injections into a session, oldest first."""
        session_id = self._names.name(session_id)
        rows = self._db.rows(
            "SELECT at, event, project, tokens, items FROM injection WHERE session_id = ? ORDER BY id", (session_id,)
        )
        return [
            Injection(at, HookEvent(event), session_id, project, tokens, tuple(json.loads(items)))
            for at, event, project, tokens, items in rows
        ]

    def totals(self, since: Milliseconds = 0, project: str | None = None) -> list[InjectionTotal]:
        """Return the totals of each event since `since`, of one project or of all projects."""
        rows = self._db.rows(
            """SELECT event, count(*), count(DISTINCT session_id), sum(tokens) FROM injection
               WHERE at >= ?1 AND (?2 IS NULL OR project = ?2) GROUP BY event ORDER BY event""",
            (since, project and self._names.name(project)),
        )
        return [InjectionTotal(*row) for row in rows]
