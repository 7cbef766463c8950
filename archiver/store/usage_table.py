"""Tables of the token usage that sources record, and of how far each source was read for it.

Several sources can record one reply: forks, resumed sessions, and transcripts that contain a sub-agent's messages. The
largest count of each type is the final one, as in `core/tokens.py`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from ...core.conversation import Milliseconds
from ...core.tokens import Completeness, TokenCounts, UsageRecord, usage_by_reply
from ..formats.recorded_usage import COUNTED, VERSION, UsageContext
from .database import Database, listed

_STATE: Final = f"'{VERSION} ' || s.mtime || ' ' || s.inode || ' ' || s.parsed || ' ' || s.pending"
"""SQL expression for the state of a source `s`. It changes whenever the source or the rules of reading change."""
_COUNTED: Final = "s.agent IN (SELECT value FROM json_each(?1))"
_COUNTS: Final = TokenCounts.__struct_fields__


class UsagePosition(NamedTuple):
    """Source with unread usage: the state to read, and the position of the first unread line with its context."""

    source: int
    state: str
    byte: int
    line: int
    context: UsageContext


class Reply(NamedTuple):
    """Reply of a model, of which several sources can contain records.

    `session` is the store's ID of the session of the first source. `branch` is empty if no record names it.
    """

    session: int
    at: Milliseconds | None
    model: str
    branch: str
    completeness: Completeness
    counts: TokenCounts


class UsageTable:
    """Table of token usage by source and reply."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def unread(self, sessions: Sequence[int] | None = None) -> list[UsagePosition]:
        """Return the sources, or those of some sessions, that changed since their usage was read, oldest first."""
        rows = self._db.rows(
            f"""SELECT s.id, {_STATE} AS state, coalesce(r.byte, 0), coalesce(r.line, 1), r.context
                FROM source s LEFT JOIN usage_read r ON r.source = s.id AND r.state LIKE '{VERSION} %'
                WHERE {_COUNTED} AND s.session NOT NULL AND r.state IS NOT {_STATE}
                    AND (?2 IS NULL OR s.session IN (SELECT value FROM json_each(?2))) ORDER BY s.id""",
            (listed(COUNTED), None if sessions is None else listed(sessions)),
        )
        return [
            UsagePosition(source, state, byte, line, msgspec.json.decode(context or "{}", type=UsageContext))
            for source, state, byte, line, context in rows
        ]

    def record(self, position: UsagePosition, records: Iterable[UsageRecord], *, replace: bool) -> None:
        """Store the usage that a source records, and the position after it. With `replace`, drop its earlier usage."""
        if replace:
            self._db.run("DELETE FROM usage WHERE source = ?", (position.source,))
        larger = ", ".join(f"{name} = max({name}, excluded.{name})" for name in _COUNTS)
        self._db.run_many(
            f"""INSERT INTO usage (source, message, request, line, at, model, branch, partial, {", ".join(_COUNTS)})
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET partial = min(partial, excluded.partial), {larger}""",
            [
                (position.source, used.message, used.request, used.line, used.at, used.model, used.branch,
                 used.completeness, *used.counts.by_type)
                for used in usage_by_reply(records)
            ],
        )  # fmt: skip
        self._db.run(
            "INSERT OR REPLACE INTO usage_read SELECT id, ?, ?, ?, ? FROM source WHERE id = ?",
            (position.state, position.byte, position.line, msgspec.json.encode(position.context).decode(),
             position.source),
        )  # fmt: skip

    def replies(self, sessions: Sequence[int] | None = None) -> list[Reply]:
        """Return every reply, or every reply in these sessions, once.

        It belongs to the session of its first source, with the time of its first record there.
        """
        largest = ", ".join(f"max({name}) AS {name}" for name in _COUNTS)
        within = "WHERE source IN (SELECT id FROM source WHERE session IN (SELECT value FROM json_each(?)))"
        rows = self._db.rows(
            f"""WITH reply AS (
                    SELECT message, request, min(source) AS source, min(partial) AS partial, {largest}
                    FROM usage {"" if sessions is None else within} GROUP BY message, request
                )
                SELECT s.session, u.at, u.model, u.branch, r.partial, {", ".join(f"r.{name}" for name in _COUNTS)}
                FROM reply r JOIN usage u USING (source, message, request) JOIN source s ON s.id = r.source""",
            () if sessions is None else (listed(sessions),),
        )
        return [
            Reply(session, at, model, branch, Completeness(partial), TokenCounts(*counts))
            for session, at, model, branch, partial, *counts in rows
        ]

    def uncounted(self) -> dict[str, int]:
        """Return the number of sessions of each agent whose token counts are not read."""
        rows = self._db.rows(
            f"""SELECT s.agent, count(DISTINCT s.session) FROM source s WHERE NOT {_COUNTED}
                AND s.session IN (SELECT session FROM item) GROUP BY s.agent ORDER BY s.agent""",
            (listed(COUNTED),),
        )
        return dict(rows)
