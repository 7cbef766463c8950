"""Lists of sessions for browsing: pages under filters, the values of each filter, and activity over time."""

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec import Struct

from ...core.conversation import Milliseconds, SessionKind
from ...core.observation import ENDINGS, OPEN
from .database import AMONG, Database, Value, listed

_INDEXED: Final = "EXISTS (SELECT 1 FROM item i WHERE i.session = s.id)"
_TIME: Final = "coalesce(s.ended, s.started, 0)"
_CASES: Final = " ".join(f"""WHEN instr(o.facts, '"{start}') THEN '{name}'""" for name, start in ENDINGS.items())
_BEGINNINGS: Final = {start[: len(OPEN) + 4] for start in ENDINGS.values()}
"""Short beginnings of the facts of all endings. A card without them, as most are, needs no further search."""
_ANY: Final = " OR ".join(f"""instr(o.facts, '"{beginning}')""" for beginning in sorted(_BEGINNINGS))
_ENDING: Final = f"""coalesce((SELECT CASE WHEN NOT ({_ANY}) THEN '' {_CASES} ELSE '' END
    FROM summary c JOIN observation o ON o.item = c.item WHERE c.session = s.id), '')"""
"""Name of the worst ending of a session, as `ending_of` returns it."""


class SessionFilter(Struct, frozen=True):
    """Conditions for a session. Empty fields are no conditions.

    Attributes:
        edited: Part of the path of a file that the session edited.
        tag: Tag that the user gave to the session.
        ending: Name of how the session ended, a key of `ENDINGS`.
        parent: The agent's ID of the session that started the session.
        after: Start of the time range, inclusive. A session matches if it ended in the range.
        before: End of the time range, exclusive.
        subagents: True to include sessions of sub-agents.
        main: False to leave out all sessions but those of sub-agents.
    """

    project: str = ""
    agent: str = ""
    branch: str = ""
    model: str = ""
    edited: str = ""
    tag: str = ""
    ending: str = ""
    parent: str = ""
    after: Milliseconds | None = None
    before: Milliseconds | None = None
    subagents: bool = False
    main: bool = True


class SessionTotals(NamedTuple):
    """Number of exchanges of a session, and the tokens that its agent reported for them, with cached input."""

    exchanges: int
    tokens: int


class SessionList:
    """Pages of the sessions with exchanges, the latest first."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def page(self, filters: SessionFilter, limit: int, offset: int = 0, *, pinned_first: bool = False) -> list[int]:
        """Return the store's IDs of at most `limit` sessions that match, after the first `offset`."""
        where, values = _condition(filters)
        pinned = "s.id IN (SELECT session FROM session_label WHERE pinned <> 0) DESC, " if pinned_first else ""
        return self._db.numbers(
            f"SELECT s.id FROM session s WHERE {where} ORDER BY {pinned}{_TIME} DESC, s.id DESC LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )

    def count(self, filters: SessionFilter) -> int:
        """Return the number of sessions that match."""
        where, values = _condition(filters)
        return self._db.number(f"SELECT count(*) FROM session s WHERE {where}", values)

    def count_by_project(self) -> dict[str, int]:
        """Return the number of sessions of each project, as `count` returns it without sub-agents."""
        where, values = _condition(SessionFilter())
        rows = self._db.rows(f"SELECT s.project, count(*) FROM session s WHERE {where} GROUP BY s.project", values)
        return dict(rows)

    def count_by_ending(self, filters: SessionFilter) -> dict[str, int]:
        """Return the number of sessions that match by their ending, which is an empty text for a good one."""
        where, values = _condition(filters)
        query = f"SELECT {_ENDING} AS ending, count(*) FROM session s WHERE {where} GROUP BY ending"
        return dict(self._db.rows(query, values))

    def totals(self, sessions: Collection[int]) -> dict[int, SessionTotals]:
        """Return the totals of these sessions. Sessions whose exchanges are all stored elsewhere are omitted."""
        rows = self._db.rows(
            f"""SELECT i.session, count(*), sum(e.tokens_in + e.tokens_out) FROM item i
                JOIN exchange e ON e.item = i.key WHERE i.session {AMONG} GROUP BY i.session""",
            (listed(sessions),),
        )
        return {number: SessionTotals(exchanges, tokens) for number, exchanges, tokens in rows}

    def addresses(self, sessions: Collection[int]) -> dict[int, str]:
        """Return a unique name for each of these sessions: its ID, after its scope or agent if needed.

        `SessionTable.beginning_with` finds the session with this name.
        """
        rows = self._db.rows(
            f"""SELECT s.id, s.scope, s.agent, s.native_id,
                    (SELECT count(*) FROM session other WHERE other.native_id = s.native_id)
                FROM session s WHERE s.id {AMONG}""",
            (listed(sessions),),
        )
        names = dict[int, str]()
        for number, scope, agent, native_id, same in rows:
            owner = scope or (agent if same > 1 else "")
            names[number] = f"{owner}/{native_id}" if owner else native_id
        return names

    def agents(self) -> list[str]:
        """Return the agents with sessions, the one with most sessions first."""
        return self._names(f"SELECT agent FROM session s WHERE {_INDEXED} GROUP BY agent ORDER BY count(*) DESC, agent")

    def count_by_agent(self) -> dict[str, tuple[int, Milliseconds]]:
        """Return the number of sessions of each agent, with sub-agents, and the time of the latest."""
        rows = self._db.rows(f"SELECT agent, count(*), max({_TIME}) FROM session s WHERE {_INDEXED} GROUP BY agent")
        return {agent: (sessions, latest) for agent, sessions, latest in rows}

    def branches(self) -> list[str]:
        """Return the git branches of sessions, the latest first."""
        return self._names(
            f"""SELECT branch FROM session s WHERE branch <> '' AND {_INDEXED}
                GROUP BY branch ORDER BY max({_TIME}) DESC, branch"""
        )

    def models(self) -> list[str]:
        """Return the models of sessions, the one with most sessions first."""
        return self._names(
            f"""SELECT m.value FROM session s, json_each(s.models) m WHERE m.value <> '' AND {_INDEXED}
                GROUP BY m.value ORDER BY count(*) DESC, m.value"""
        )

    def times(self, since: Milliseconds) -> list[Milliseconds]:
        """Return the time of each exchange since an instant, in order."""
        return self._db.numbers("SELECT at FROM item WHERE kind = 'exchange' AND at >= ? ORDER BY at", (since,))

    def count_undated(self) -> int:
        """Return the number of exchanges without a time."""
        return self._db.number("SELECT count(*) FROM item WHERE kind = 'exchange' AND at IS NULL")

    def latest(self) -> Milliseconds | None:
        """Return the time of the latest exchange, or None without any."""
        row = self._db.one("SELECT max(at) FROM item WHERE kind = 'exchange'")
        return row[0] if row else None

    def _names(self, sql: str) -> list[str]:
        return [name for (name,) in self._db.rows(sql)]


def _condition(filters: SessionFilter) -> tuple[str, tuple[Value, ...]]:
    """Return the SQL condition for a filter, and its values."""
    edits = """SELECT i.session FROM edited_file d JOIN item i ON i.key = d.exchange
        WHERE instr(replace(lower(d.path), '\\', '/'), ?)"""
    conditions: dict[str, Value] = {
        "s.kind = ?": None if filters.subagents else str(SessionKind.MAIN),
        "s.kind <> ?": None if filters.main else str(SessionKind.MAIN),
        "s.project = ?": filters.project or None,
        "s.agent = ?": filters.agent or None,
        "s.branch = ?": filters.branch or None,
        "EXISTS (SELECT 1 FROM json_each(s.models) WHERE value = ?)": filters.model or None,
        f"s.id IN ({edits})": filters.edited.lower().replace("\\", "/") or None,
        "s.id IN (SELECT session FROM session_tag WHERE tag = ?)": filters.tag or None,
        f"{_ENDING} = ?": filters.ending or None,
        "s.parent_id = ?": filters.parent or None,
        f"{_TIME} >= ?": filters.after,
        f"{_TIME} < ?": filters.before,
    }
    used = {condition: value for condition, value in conditions.items() if value is not None}
    return " AND ".join((_INDEXED, *used)), tuple(used.values())
