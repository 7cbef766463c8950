"""Table of edits: the files that each exchange changed. It helps to find the exchange that wrote a line of code."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.conversation import Milliseconds
from .database import Database, Value, listed


class Edit(NamedTuple):
    """File that an exchange changed.

    `path` is the path in the agent's tool call. A relative path is relative to `cwd`. `session` is the store's session
    ID. `archived` is the raw copy that contains the exchange. Unknown times are None.
    """

    exchange: int
    path: str
    session: int
    archived: str
    cwd: str
    started: Milliseconds | None
    ended: Milliseconds | None

    @property
    def absolute_path(self) -> str:
        """Normalised absolute path. A relative `path` is joined to `cwd`, the agent's working folder."""
        return os.path.normpath(Path(self.cwd) / self.path)


class EditTable:
    """Table of the files that exchanges changed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, exchange: int, paths: Sequence[str]) -> None:
        """Replace the stored list of files that an exchange changed."""
        self._db.run("DELETE FROM edited WHERE exchange = ?", (exchange,))
        self._db.run_many("INSERT INTO edited (exchange, path) VALUES (?, ?)", [(exchange, path) for path in paths])

    def of_names(self, names: Sequence[str], limit: int, sessions: Sequence[int] | None = None) -> list[Edit]:
        """Return edits of files with one of these file names, in any folder, newest first.

        With `sessions`, return only edits in these sessions.
        """
        suffixes = listed([*names, *(f"{separator}{name}" for name in names for separator in "/\\")])
        whole = "d.path IN (SELECT value FROM json_each(?1))"
        ends = "substr(d.path, -length(value)) = value AND value GLOB '[/\\]*'"
        named = f"({whole} OR EXISTS (SELECT 1 FROM json_each(?1) WHERE {ends}))"
        if sessions is None:
            return self._select(named, (suffixes, limit))
        within = "i.session IN (SELECT value FROM json_each(?3))"
        return self._select(f"{named} AND {within}", (suffixes, limit, listed(sessions)))

    def of_exchanges(self, exchanges: Sequence[int]) -> list[Edit]:
        """Return the edits of these exchanges."""
        return self._select("d.exchange IN (SELECT value FROM json_each(?1))", (listed(exchanges), -1))

    def newest(self, native_id: str | None) -> list[Edit]:
        """Return all edits, newest first. With `native_id`, return only edits of the sessions with this ID."""
        return self._select("?1 IS NULL OR s.native_id = ?1", (native_id, -1))

    def _select(self, where: str, values: tuple[Value, ...]) -> list[Edit]:
        rows = self._db.rows(
            f"""SELECT d.exchange, d.path, i.session, r.archived, coalesce(nullif(e.cwd, ''), s.cwd), i.at, e.ended
                FROM edited d JOIN exchange e ON e.item = d.exchange JOIN item i ON i.key = d.exchange
                JOIN source r ON r.id = e.source JOIN session s ON s.id = i.session
                WHERE {where} ORDER BY coalesce(e.ended, i.at, 0) DESC, d.exchange DESC LIMIT ?2""",
            values,
        )
        return [Edit(*row) for row in rows]
