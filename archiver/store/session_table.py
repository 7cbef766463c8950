"""Sessions: one row for each conversation. Several files can belong to one session."""

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from ...core.conversation import UNINDEXED, Milliseconds, Session, SessionKind
from ...core.observation import SUMMARY
from .database import AMONG, Database, Row, listed

_COLUMNS: Final = Session.__struct_fields__
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)}, id FROM session"
SHORTEST_ID: Final = 4
"""Minimum characters of a short session ID."""
_MOST_ANCESTORS: Final = 100
"""Maximum length of a chain of forks. Damaged transcripts can make the chain a cycle."""
_WORDS: Final = re.compile(r"(?![0-9a-fA-F]{8}-)(?:[A-Za-z]+[-_]){1,2}")
"""Pattern for one or two words at the start of an ID, which many sessions share. A part of a UUID is no word."""


class ProjectTotal(NamedTuple):
    """Project with the number of its indexed sessions and the time of the latest one."""

    name: str
    sessions: int
    latest: Milliseconds | None


class SessionTable:
    """Table of sessions, identified by the store's own IDs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, agent: str, native_id: str, scope: str = "") -> int | None:
        """Return the store's ID of a session, given the agent, the agent's own ID `native_id` and `Session.scope`."""
        row = self._db.one(
            "SELECT id FROM session WHERE agent = ? AND native_id = ? AND scope = ?", (agent, native_id, scope)
        )
        return row[0] if row else None

    def load(self, number: int) -> Session:
        """Return the session with this ID. Raises `KeyError`."""
        row = self._db.one(f"{_SELECT} WHERE id = ?", (number,))
        if row is None:
            raise KeyError(number)
        return _session(row)

    def several(self, numbers: Iterable[int]) -> dict[int, Session]:
        """Return the sessions with these IDs. Unknown IDs are omitted."""
        return {row[-1]: _session(row) for row in self._db.rows(f"{_SELECT} WHERE id {AMONG}", (listed(numbers),))}

    def all(self) -> dict[int, Session]:
        """Return every session by its ID."""
        return {row[-1]: _session(row) for row in self._db.rows(f"{_SELECT} ORDER BY id")}

    def save(self, session: Session) -> int:
        """Insert a session, or update the session with the same agent, native ID and scope. Return the session's ID."""
        lists = {"models": json.dumps(session.models), "links": json.dumps(session.links)}
        self._db.upsert("session", "agent, native_id, scope", asdict(session) | lists)
        number = self.find(session.agent, session.native_id, session.scope)
        assert number is not None
        return number

    def update_dates(self, number: int) -> None:
        """Set the start and end of a session from its exchanges. Rewound and deleted exchanges are ignored."""
        self._db.run(
            """UPDATE session SET (started, ended) = (
                   SELECT min(i.at), max(e.ended) FROM item i JOIN exchange e ON e.item = i.key WHERE i.session = ?1
               ) WHERE id = ?1""",
            (number,),
        )

    def count(self) -> int:
        """Count the sessions, including those without exchanges."""
        return self._db.number("SELECT count(*) FROM session")

    def count_indexed(self) -> int:
        """Count the sessions that have exchanges. Lists and searches contain exactly these sessions."""
        return self._db.number("SELECT count(*) FROM session WHERE id IN (SELECT session FROM item)")

    def folders(self) -> list[str]:
        """Return the folder of every session that has exchanges."""
        return [cwd for (cwd,) in self._db.rows("SELECT cwd FROM session WHERE id IN (SELECT session FROM item)")]

    def projects(self, native_id: str | None = None) -> set[tuple[str, str]]:
        """Return the project and the folder of every session, as pairs.

        With `native_id`, return only the pairs of sessions with this agent ID. These pairs include the folders of the
        exchanges, because a session can change its folder.
        """
        if native_id is None:
            rows = self._db.rows("SELECT DISTINCT project, cwd FROM session")
        else:
            rows = self._db.rows(
                """SELECT project, cwd FROM session WHERE native_id = ? UNION
                   SELECT s.project, e.cwd FROM session s
                   JOIN item i ON i.session = s.id JOIN exchange e ON e.item = i.key WHERE s.native_id = ?""",
                (native_id, native_id),
            )
        return {(project, cwd) for project, cwd in rows}

    def branches(self) -> list[str]:
        """Return the distinct git branches of all sessions."""
        return [branch for (branch,) in self._db.rows("SELECT DISTINCT branch FROM session WHERE branch <> ''")]

    def latest(self, places: Collection[tuple[str, str]], limit: int) -> dict[int, Session]:
        """Return up to `limit` main sessions with one of these pairs of project and folder, newest first."""
        rows = self._db.rows(
            f"""{_SELECT} WHERE kind = ? AND id IN (SELECT session FROM item)
                AND (project, cwd) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
                ORDER BY coalesce(ended, started, 0) DESC, id DESC LIMIT ?""",
            (SessionKind.MAIN, json.dumps(list(places)), limit),
        )
        return {row[-1]: _session(row) for row in rows}

    def named(self) -> list[tuple[str, str, int | None]]:
        """Return the agent's ID, the project and the end time of each session with exchanges, newest first.

        An ID that occurs in several scopes follows its scope: `<scope>/<ID>`.
        """
        rows = self._db.rows(
            """WITH indexed AS (SELECT * FROM session WHERE id IN (SELECT session FROM item)), shared AS (
                   SELECT native_id AS name FROM indexed GROUP BY native_id HAVING count(DISTINCT scope) > 1
               )
               SELECT iif(native_id IN (SELECT name FROM shared), scope || '/', '') || native_id AS label, project,
                   max(coalesce(ended, started)) FROM indexed GROUP BY label ORDER BY 3 DESC, 1"""
        )
        return [(native_id, project, at) for native_id, project, at in rows]

    def totals_by_project(self) -> list[ProjectTotal]:
        """Return all projects that have indexed sessions. The project with the latest session comes first."""
        rows = self._db.rows(
            """SELECT project, count(*), max(coalesce(ended, started)) FROM session
               WHERE id IN (SELECT session FROM item) GROUP BY project
               ORDER BY max(coalesce(ended, started, 0)) DESC, project"""
        )
        return [ProjectTotal(*row) for row in rows]

    def short_ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the short IDs of the sessions with these IDs. Unknown IDs are omitted.

        A short ID is the shortest prefix of the agent's ID that identifies the session, with at least `SHORTEST_ID`
        characters after leading words such as `agent-`. If another session has the same ID, the short ID is the full ID
        after the scope or, without a scope, after the agent's name: `codex/1234`.
        """
        rows = self._db.rows(
            f"""SELECT s.id, iif(s.scope = '', s.agent, s.scope), s.native_id,
                      (SELECT count(*) FROM session WHERE native_id = s.native_id),
                      (SELECT max(native_id) FROM session WHERE native_id < s.native_id),
                      (SELECT min(native_id) FROM session WHERE native_id > s.native_id)
                FROM session s WHERE s.id {AMONG}""",
            (listed(numbers),),
        )
        return {row[0]: _short_id(*row[1:]) for row in rows}

    def distinct_id(self, number: int) -> str:
        """Return the agent's ID of a session, after its scope if it occurs in several scopes: `<scope>/<ID>`.

        Sessions without a source are ignored.
        """
        row = self._db.one(
            """SELECT iif((SELECT count(DISTINCT n.scope) FROM session n JOIN source t ON t.session = n.id
                   WHERE n.native_id = s.native_id) > 1, scope || '/', '') || native_id FROM session s WHERE id = ?""",
            (number,),
        )
        return row[0] if row else ""

    def titled(self, numbers: Iterable[int], title: str) -> set[int]:
        """Return the given sessions whose own title or summary title equals `title`, ignoring case."""
        rows = self._db.rows(
            f"""SELECT s.id, s.title, coalesce(o.title, '') FROM session s LEFT JOIN summary m ON m.session = s.id
                LEFT JOIN observation o ON o.item = m.item WHERE s.id {AMONG}""",
            (listed(numbers),),
        )
        wanted = title.casefold()
        return {
            number
            for number, own, summary in rows
            if wanted in (own.casefold(), summary.removeprefix(SUMMARY).casefold())
        }

    def beginning_with(self, start: str) -> list[int]:
        """Return the sessions whose agent ID equals `start` or, if there are none, those whose agent ID begins with it.

        A prefix needs at least `SHORTEST_ID` characters. `start` may also be the name of an agent, or a scope, and a
        complete ID: `codex/1234`. Sessions without indexed content are ignored.
        """
        rows = self._db.rows(
            """SELECT id, ?1 IN (native_id, agent || '/' || native_id, scope || '/' || native_id) FROM session
               WHERE (substr(native_id, 1, length(?1)) = ?1
                   OR ?1 IN (agent || '/' || native_id, scope || '/' || native_id))
               AND id IN (SELECT session FROM item) ORDER BY native_id""",
            (start,),
        )
        exact = [number for number, equal in rows if equal]
        return exact or [number for number, _ in rows if len(start) >= SHORTEST_ID]

    def native_ids(self, start: str) -> list[str]:
        """Return the agents' session IDs that begin with `start`. Only sessions with a source are searched."""
        rows = self._db.rows(
            """SELECT DISTINCT native_id FROM session WHERE substr(native_id, 1, length(?)) = ?
               AND id IN (SELECT session FROM source) ORDER BY native_id""",
            (start, start),
        )
        return [native_id for (native_id,) in rows]

    def is_unindexed(self, agent: str, native_id: str) -> bool:
        """Return whether a session is archived and the user excluded it from the index."""
        number = self.find(agent, native_id) if native_id else None
        return number is not None and UNINDEXED in self.load(number).links

    def ancestors(self, session: Session) -> list[int]:
        """Return the sessions from which this session was started or forked, directly or indirectly, oldest first."""
        return self._db.numbers(
            f"""WITH RECURSIVE before (name, depth) AS (
                    VALUES (?1, 1)
                    UNION SELECT s.parent_id, depth + 1 FROM before
                        JOIN session s ON (s.agent, s.native_id) = (?2, name) WHERE depth < {_MOST_ANCESTORS}
                )
                SELECT s.id FROM before JOIN session s ON (s.agent, s.native_id) = (?2, name)
                WHERE s.native_id <> ?3 GROUP BY s.id ORDER BY max(depth) DESC, s.id""",
            (session.parent_id, session.agent, session.native_id),
        )

    def descendants(self, session: Session) -> list[int]:
        """Return the sessions that were started or forked from this session, directly or indirectly.

        Ancestors of this session are never returned, even if damaged transcripts make the forks a cycle.
        """
        found = self._db.numbers(
            """WITH RECURSIVE after (name) AS (
                    VALUES (?1)
                    UNION SELECT s.native_id FROM after JOIN session s ON s.parent_id = name AND s.agent = ?2
                        WHERE s.native_id <> ''
                )
                SELECT s.id FROM after JOIN session s ON (s.agent, s.native_id) = (?2, name)
                WHERE name <> ?1 ORDER BY s.id""",
            (session.native_id, session.agent),
        )
        before = set(self.ancestors(session)) if found else set[int]()
        return [number for number in found if number not in before]

    def subagents(self, session: Session) -> list[int]:
        """Return the sub-agents with exchanges that this session started, oldest first."""
        return self._db.numbers(
            """SELECT id FROM session WHERE parent_id = ? AND agent = ? AND kind = ?
               AND id IN (SELECT session FROM item) ORDER BY started, id""",
            (session.native_id, session.agent, SessionKind.SUBAGENT),
        )

    def has_relatives(self, session: Session, began: Milliseconds | None) -> bool:
        """Return whether the session itself, a fork of it, or a session of its agent that began at `began` is stored.

        This is one fast query, because most sessions have no relatives.
        """
        found = self._db.number(
            """SELECT EXISTS (SELECT 1 FROM session WHERE native_id = ?1 AND agent = ?2)
                   OR EXISTS (SELECT 1 FROM session WHERE parent_id = ?1 AND agent = ?2)
                   OR EXISTS (SELECT 1 FROM session WHERE started = ?3 AND agent = ?2)""",
            (session.native_id, session.agent, began),
        )
        return bool(found)

    def begun_at(self, session: Session, at: Milliseconds) -> list[int]:
        """Return the other sessions of the same agent that began at this time."""
        return self._db.numbers(
            "SELECT id FROM session WHERE started = ? AND agent = ? AND native_id <> ? ORDER BY id",
            (at, session.agent, session.native_id),
        )


def _session(row: Row) -> Session:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=False))
    values["kind"] = SessionKind(values["kind"])
    values["models"], values["links"] = json.loads(values["models"]), json.loads(values["links"])
    return Session(**values)


def _short_id(owner: str, native_id: str, same: int, *neighbours: str | None) -> str:
    if same > 1:
        return f"{owner}/{native_id}"
    common = max(_common_length(native_id, other or "") for other in neighbours)
    words = _WORDS.match(native_id)
    return native_id[: max((words.end() if words else 0) + SHORTEST_ID, common + 1)]


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
