"""Tool calls that started sub-agents, as the transcripts with these calls name them."""

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ...core.conversation import SessionKind
from .database import Database, listed


class SubagentCall(NamedTuple):
    """Call that started a sub-agent: the ID of the call, and the store's ID of the sub-agent's session."""

    call: str
    session: int


class StartingCall(NamedTuple):
    """Call that started a certain sub-agent: the exchange that contains it, its ID, and the number of sub-agents."""

    exchange: int
    call: str
    subagents: int


class SubagentCallTable:
    """Table of the calls in each source, each with the ID that the agent gave to the sub-agent."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, source: int, calls: Iterable[tuple[str, str]], *, replace: bool) -> None:
        """Record calls of a source, each with the agent's ID of a sub-agent.

        With `replace`, first delete the earlier records of the source.
        """
        if replace:
            self._db.run("DELETE FROM subagent_call WHERE source = ?", (source,))
        self._db.run(
            """INSERT OR IGNORE INTO subagent_call (source, call, native_id)
               SELECT ?, value ->> 0, value ->> 1 FROM json_each(?)""",
            (source, json.dumps([*calls])),
        )

    def started(self, source: int, calls: Collection[str], scopes: Collection[str]) -> list[SubagentCall]:
        """Return the archived sub-agents that these calls of a source started.

        `scopes` contains the IDs of the sessions in which the ID of a sub-agent is searched. If several of them have a
        sub-agent with this ID, return the one with the most exchanges. A fork repeats the sub-agents of its origin.
        """
        rows = self._db.rows(
            """SELECT call, id FROM (
                   SELECT c.call, s.id, row_number() OVER (
                       PARTITION BY c.call, c.native_id
                       ORDER BY (SELECT count(*) FROM item i WHERE i.session = s.id) DESC, s.id
                   ) AS place
                   FROM subagent_call c JOIN source t ON t.id = c.source JOIN session p ON p.id = t.session
                       JOIN session s ON (s.agent, s.native_id) = (p.agent, c.native_id)
                   WHERE c.source = ?1 AND c.call IN (SELECT value FROM json_each(?2)) AND s.kind = ?4
                       AND s.scope IN (SELECT value FROM json_each(?3))
               ) WHERE place = 1 ORDER BY id""",
            (source, listed(calls), listed(scopes), SessionKind.SUBAGENT),
        )
        return [SubagentCall(*row) for row in rows]

    def starting(self, session: int) -> StartingCall | None:
        """Return the call that started the sub-agent with this session, or None if it is not archived.

        A nested sub-agent has the scope of the session that started the first one.
        """
        row = self._db.one(
            """SELECT e.item, c.call,
                   (SELECT count(*) FROM subagent_call o WHERE (o.source, o.call) = (c.source, c.call))
               FROM session s JOIN subagent_call c ON c.native_id = s.native_id
                   JOIN source t ON t.id = c.source JOIN session p ON p.id = t.session
                   JOIN exchange e ON e.source = c.source
               WHERE s.id = ? AND p.agent = s.agent AND p.id <> s.id
                   AND (p.native_id IN (s.parent_id, s.scope) OR p.scope = s.scope)
                   AND instr(e.turns, CAST(c.call AS BLOB))
               ORDER BY p.native_id = s.parent_id DESC, e.source, e.ordinal LIMIT 1""",
            (session,),
        )
        return None if row is None else StartingCall(*row)
