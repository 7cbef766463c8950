"""Stages of background work, such as `backup`. For each stage, the last success and the last problem are stored."""

from collections.abc import Sequence

from ...core.clock import now
from ...core.errors import PalaverError
from ...core.report import StageState
from .database import Database


class StageTable:
    """Table of stages, by name."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def note(self, name: str, problems: Sequence[PalaverError] = ()) -> None:
        """Record that a stage succeeded or, if there are `problems`, that it failed.

        The recorded times keep the order of the calls, even if the clock was set back.
        """
        if not problems:
            self._db.run(
                """INSERT INTO stage (name, succeeded) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET succeeded = excluded.succeeded,
                       failed = min(failed, excluded.succeeded)""",
                (name, now()),
            )
            return
        first, *others = map(str, problems)
        self._db.run(
            """INSERT INTO stage (name, problem, failed) VALUES (?, ?, ?)
               ON CONFLICT (name) DO UPDATE SET problem = excluded.problem, failed = excluded.failed,
                   succeeded = min(succeeded, excluded.failed - 1)""",
            (name, f"{first} (and {len(others)} more)" if others else first, now()),
        )

    def all(self) -> list[StageState]:
        """Return the state of every stage that has run, sorted by name."""
        rows = self._db.rows("SELECT name, succeeded, problem, failed FROM stage ORDER BY name")
        return [StageState(*row) for row in rows]
