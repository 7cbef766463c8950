"""Edits: which exchanges changed which files, so that a line's author can be looked up by its file."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import orjson

from ...core.conversation import Milliseconds
from .database import Database, Row, Value


class Edit(NamedTuple):
    """A file that an exchange changed. `path` is as the agent named it, relative to `cwd` where it is relative at all.

    `session` is the store's number, `archived` the copy that holds the exchange; times are None where none was told.
    """

    exchange: int
    path: str
    session: int
    archived: str
    cwd: str
    started: Milliseconds | None
    ended: Milliseconds | None


class EditTable:
    """Reads and writes the files that exchanges changed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, exchange: int, paths: Sequence[str]) -> None:
        """Make these the files that an exchange changed."""
        self._db.run("DELETE FROM edited WHERE exchange = ?", (exchange,))
        self._db.run_many("INSERT INTO edited (exchange, path) VALUES (?, ?)", [(exchange, path) for path in paths])

    def of_names(self, names: Sequence[str], limit: int) -> list[Edit]:
        """Edits of files with one of these names, in whatever folder; newest first."""
        named = orjson.dumps([*names, *(f"{mark}{name}" for name in names for mark in "/\\")]).decode()
        whole = "d.path IN (SELECT value FROM json_each(?1))"
        ends = "substr(d.path, -length(value)) = value AND value GLOB '[/\\]*'"
        where = f"{whole} OR EXISTS (SELECT 1 FROM json_each(?1) WHERE {ends})"
        return self._select(where, (named, limit), "?2")

    def newest(self, native_id: str | None) -> list[Edit]:
        """Return all edits, or those of the sessions that their agent calls `native_id`, newest first."""
        return self._select("?1 IS NULL OR s.native_id = ?1", (native_id, -1), "?2")

    def _select(self, where: str, values: tuple[Value, ...], limit: str) -> list[Edit]:
        rows = self._db.rows(
            f"""SELECT d.exchange, d.path, i.session, r.archived, coalesce(nullif(e.cwd, ''), s.cwd), i.at, e.ended
                FROM edited d JOIN exchange e ON e.item = d.exchange JOIN item i ON i.key = d.exchange
                JOIN source r ON r.id = e.source JOIN session s ON s.id = i.session
                WHERE {where} ORDER BY coalesce(e.ended, i.at, 0) DESC, d.exchange DESC LIMIT {limit}""",
            values,
        )
        return [_edit(row) for row in rows]


def _edit(row: Row) -> Edit:
    exchange, path, session, archived, cwd, started, ended = row
    return Edit(
        cast(int, exchange),
        str(path),
        cast(int, session),
        str(archived),
        str(cwd),
        cast("int | None", started),
        cast("int | None", ended),
    )
