"""Tables of sessions, projects and session summaries, and suggestions for an unknown session ID.

- A session is one conversation. Several files can belong to it.
- Each project has its own namespace, so that two projects with the same name share no memories.
- A summary is one observation per session that summarises its other observations. A new version keeps the key.

Error messages do not mark text from transcripts as quoted, so an agent could mistake it for an instruction.
Suggestions of sessions therefore contain only IDs and project names of a single word.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict, replace

from ...core.conversation import UNINDEXED, Milliseconds, Session, SessionKind, show_day
from ...core.errors import InvalidInput
from ...core.home import identity_of, main_worktree, root_of
from ...core.memory import project_namespace
from ...core.observation import SUMMARY, Observation
from ...core.reports import many
from ...core.text import is_one_word, similar_names
from .database import AMONG, Database, Row, listed
from .observation_table import COLUMNS, FINDING_PREFIX, FROM, ObservationTable, StoredObservation, stored_of
from .source_table import MAIN_SOURCE

_FOLDERS: Final = """
SELECT folder FROM (
    SELECT cwd AS folder, coalesce(started, 0) AS at FROM session UNION ALL
    SELECT project, created FROM memory WHERE origin = 'human'
) WHERE folder LIKE '/%' GROUP BY folder ORDER BY min(at), folder
"""
"""SQL query for the folders of sessions and of memories that the user stored, oldest first."""


def plain_namespace(folder: Path) -> str:
    """Return the namespace of a folder's project without a number, such as `project:repo`.

    All projects with the same name have the same plain namespace. Return `global` if the folder has no project.
    """
    return project_namespace(str(main_worktree(root_of(folder))))


class ProjectTable:
    """Table that assigns a namespace to each project.

    The first project with a name gets the plain namespace `project:repo`. Other projects with this name get a number,
    such as `project:repo-2`.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def namespace(self, folder: Path) -> str:
        """Return the namespace of a folder's project without reserving it, or `global` if the folder has no project."""
        root = root_of(folder)
        return self._known(root) or self._free(root)

    def is_plain(self, namespace: str, folder: Path) -> bool:
        """Return whether a namespace has the name of a folder's project, without a number."""
        return namespace == plain_namespace(folder)

    def claim(self, folder: Path) -> str:
        """Return the namespace of a folder's project, and reserve the namespace for this project."""
        root = root_of(folder)
        identity = identity_of(root)
        if known := self._claimed(identity):
            return known
        with self._db.transaction():
            namespace = self.namespace(root)
            if namespace != "global":
                self._db.run("DELETE FROM project WHERE namespace = ?", (namespace,))
                self._db.run("INSERT INTO project VALUES (?, ?, ?)", (identity, namespace, plain_namespace(root)))
        return namespace

    def of_session(self, session: Session) -> str:
        """Return the namespace of a session's project. If the session has no absolute folder, use the project name."""
        if not session.cwd.startswith("/"):
            return project_namespace(session.project)
        return self.of_archived(Path(session.cwd))

    def of_archived(self, folder: Path) -> str:
        """Return the namespace of the project of an archived folder, or `global` if the folder has no project.

        A folder that no longer exists is known only by its name. Unless a namespace is reserved for it, it belongs to
        the project with the plain namespace of this name.
        """
        root = root_of(folder)
        return self._known(root) or (self._free(root) if root.exists() else plain_namespace(root))

    def contains(self, namespace: str, session: Session) -> bool:
        """Return whether a session belongs to the project with this namespace. This is faster than `of_session`."""
        if not session.cwd.startswith("/"):
            return project_namespace(session.project) == namespace
        root = root_of(Path(session.cwd))
        if known := self._known(root):
            return known == namespace
        return namespace.startswith(plain_namespace(root)) and self.of_archived(root) == namespace

    def namesakes(self, name: str) -> set[str]:
        """Return the namespaces of all projects with this name, including numbered namespaces."""
        plain = project_namespace(name)
        rows = self._db.rows("SELECT namespace FROM project WHERE plain = ?", (plain,))
        return {plain, *(namespace for (namespace,) in rows)} - {"global"}

    def _known(self, root: Path) -> str:
        """Return the namespace reserved for a project, or an empty string if none is reserved.

        The namespace may be reserved under the path of the project, from the time before its repository had a remote.
        """
        return self._claimed(identity_of(root)) or self._claimed(str(main_worktree(root)))

    def _claimed(self, identity: str) -> str:
        row = self._db.one("SELECT namespace FROM project WHERE identity = ?", (identity,))
        return row[0] if row else ""

    def _free(self, root: Path) -> str:
        """Return the namespace that a project without a reserved namespace would get.

        This is the plain namespace, such as `project:repo`, if it is not reserved and this is the first project with
        the name. Otherwise, a number is added.
        """
        plain = plain_namespace(root)
        rows = self._db.rows("SELECT namespace, 1 FROM project UNION ALL SELECT DISTINCT namespace, 0 FROM memory")
        taken = {namespace for namespace, _ in rows}
        claimed = (plain, 1) in rows
        if plain == "global" or (not claimed and self._first(plain, existing=root.exists()) in {"", identity_of(root)}):
            return plain
        return next(name for number in count(2) if (name := f"{plain}-{number}") not in taken)

    def _first(self, plain: str, *, existing: bool) -> str:
        """Return the identity of the first project with this plain namespace in which the user worked.

        Return an empty string if there is no such project. With `existing`, ignore folders that no longer exist.
        """
        folders: list[str] = [folder for (folder,) in self._db.rows(_FOLDERS)]
        parts = {part for folder in folders for part in folder.split("/")}
        alike = {part for part in parts if project_namespace(part) == plain}
        for folder in folders:
            if not alike.isdisjoint(folder.split("/")):
                root = root_of(Path(folder))
                if plain_namespace(root) == plain and (root.exists() or not existing):
                    return identity_of(root)
        return ""


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
        """Set the start and end of a session from its exchanges. Rewound and deleted exchanges are ignored.

        If no exchange has a time, the dates stay, such as that of the file.
        """
        self._db.run(
            """UPDATE session SET (started, ended) = (
                   SELECT coalesce(min(i.at), session.started), coalesce(max(e.ended), session.ended)
                   FROM item i JOIN exchange e ON e.item = i.key WHERE i.session = ?1 GROUP BY i.session
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
            """SELECT project, count(*), max(coalesce(ended, started)) FROM session s
               WHERE EXISTS (SELECT 1 FROM item i WHERE i.session = s.id) GROUP BY project
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
        folded = title.casefold()
        return {
            number
            for number, own, summary in rows
            if folded in (own.casefold(), summary.removeprefix(SUMMARY).casefold())
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
        sessions = self._db.numbers(
            """WITH RECURSIVE after (name) AS (
                    VALUES (?1)
                    UNION SELECT s.native_id FROM after JOIN session s ON s.parent_id = name AND s.agent = ?2
                        WHERE s.native_id <> ''
                )
                SELECT s.id FROM after JOIN session s ON (s.agent, s.native_id) = (?2, name)
                WHERE name <> ?1 ORDER BY s.id""",
            (session.native_id, session.agent),
        )
        before = set(self.ancestors(session)) if sessions else set[int]()
        return [number for number in sessions if number not in before]

    def subagents(self, session: Session) -> dict[int, Session]:
        """Return the sub-agents that a session started itself and that have exchanges, in the order of their start."""
        rows = self._db.rows(
            f"""{_SELECT} WHERE agent = ? AND parent_id = ? AND kind = ? AND id IN (SELECT session FROM item)
                ORDER BY started, id""",
            (session.agent, session.native_id, SessionKind.SUBAGENT),
        )
        return {row[-1]: _session(row) for row in rows}

    def count_subagents(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return the number of sub-agents of each session, as `subagents` returns them.

        Sessions without sub-agents are omitted.
        """
        rows = self._db.rows(
            f"""SELECT parent.id, count(*) FROM session AS parent JOIN session AS started
                   ON started.agent = parent.agent AND started.parent_id = parent.native_id
               WHERE parent.id {AMONG} AND started.kind = ? AND started.id IN (SELECT session FROM item)
               GROUP BY parent.id""",
            (listed(numbers), SessionKind.SUBAGENT),
        )
        return dict(rows)

    def has_relatives(self, session: Session, began: Milliseconds | None) -> bool:
        """Return whether the session itself, a fork of it, or a session of its agent that began at `began` is stored.

        This is one fast query, because most sessions have no relatives.
        """
        exists = self._db.number(
            """SELECT EXISTS (SELECT 1 FROM session WHERE native_id = ?1 AND agent = ?2)
                   OR EXISTS (SELECT 1 FROM session WHERE parent_id = ?1 AND agent = ?2)
                   OR EXISTS (SELECT 1 FROM session WHERE started = ?3 AND agent = ?2)""",
            (session.native_id, session.agent, began),
        )
        return bool(exists)

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
    common = max(_common_length(native_id, neighbour or "") for neighbour in neighbours)
    words = _WORDS.match(native_id)
    return native_id[: max((words.end() if words else 0) + SHORTEST_ID, common + 1)]


def _common_length(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next(
        (index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


_SHOWN: Final = 3
"""Maximum number of sessions to show."""
_SIMILARITY: Final = 75
"""Minimum similarity (0 to 100) between the unknown ID and the beginning of a session ID."""
_SHORTEST: Final = 3
"""Minimum length of an unknown ID for which similar IDs are searched."""
_ID: Final = 100
"""Maximum length of an ID to show. Some IDs of sub-agents are long because they contain the ID of their session."""


def similar_sessions(sessions: SessionTable, unknown_id: str) -> str:
    """Return a question that suggests sessions with similar IDs, such as `Did you mean 1a2b (shop)? `.

    Return an empty text if no session ID begins similarly to `wanted`.
    """
    name = PurePath(unknown_id).stem
    if len(name) < _SHORTEST:
        return ""
    named = sessions.named()
    beginnings = dict.fromkeys(native_id[: len(name)] for native_id, _, _ in named)
    similar = similar_names(name, beginnings, least=_SIMILARITY, limit=_SHOWN)
    suggestions = _listed([session for start in similar for session in named if session[0].startswith(start)])
    return f"Did you mean {suggestions}? " if suggestions else ""


def ambiguous_session(sessions: SessionTable, start: str) -> InvalidInput:
    """Return the error for a prefix that matches several session IDs. The hint lists the newest of these sessions."""
    matches = [session for session in sessions.named() if session[0].startswith(start) or f"/{start}" in session[0]]
    suggestions = _listed(matches)
    hint = f"Give more characters of the ID: {suggestions}." if suggestions else "Give more characters of the ID."
    return InvalidInput(f"{len(matches):,} session IDs begin with {start}", hint=hint)


def _listed(sessions: list[tuple[str, str, int | None]]) -> str:
    """Format a list of sessions: the first `_SHOWN` with their projects and days, and the number of other sessions."""
    descriptions = [
        _described(*session)
        for session in sessions
        if all(is_one_word(part, longest=_ID) for part in session[0].split("/"))
    ]
    descriptions = descriptions[:_SHOWN]
    if descriptions and len(sessions) > len(descriptions):
        return f"{', '.join(descriptions)} or {many(len(sessions) - len(descriptions), 'other')}"
    return " or ".join(descriptions)


def _described(native_id: str, project: str, at: int | None) -> str:
    facts = [project, show_day(at)] if is_one_word(project) else [show_day(at)]
    return f"{native_id} ({', '.join(facts)})"


_CONVERSATION: Final = f"""
WITH main AS ({MAIN_SOURCE}), part AS (
    SELECT id FROM main UNION SELECT t.id FROM source t JOIN main ON t.id <> main.id
    WHERE t.session = ?1 AND NOT t.superseded
        AND NOT EXISTS (SELECT 1 FROM repetition r WHERE r.source = t.id AND r.repeated_in = main.id)
        AND NOT EXISTS (SELECT 1 FROM repetition r WHERE r.source = main.id AND r.repeated_in = t.id)
), found AS (
    SELECT e.item, part.id AS part, i.at, coalesce(r.start_line, e.start_line) AS line,
        coalesce(r.end_line, e.end_line) AS end_line, e.ordinal
    FROM part JOIN item i ON i.session = ?1 JOIN exchange e ON e.item = i.key
        LEFT JOIN repetition r ON (r.source, r.ordinal, r.repeated_in) = (e.source, e.ordinal, part.id)
    WHERE e.source = part.id OR r.repeated_in = part.id
), placed AS (
    SELECT *, min(latest) FROM (
        SELECT *, max(at) OVER (PARTITION BY part ORDER BY line, ordinal) AS latest FROM found
    ) GROUP BY item
)"""
"""SQL query for the exchanges of session `?1`. Within a file, an exchange follows all exchanges before it, even if its
time is earlier."""


class SummaryTable:
    """Table of the summaries of sessions."""

    def __init__(self, database: Database, observations: ObservationTable) -> None:
        self._db, self._observations = database, observations

    def newest_exchanges(self, session: int) -> list[int]:
        """Return the keys of a session's exchanges in its newest source, in order.

        A summary cites the lines of one source, so it covers only these.
        """
        rows = self._db.rows(
            """SELECT e.item, e.source FROM exchange e JOIN item i ON i.key = e.item
               WHERE i.session = ? ORDER BY e.source DESC, e.ordinal""",
            (session,),
        )
        return [key for key, source in rows if source == rows[0][1]]

    def conversation(self, session: int) -> list[int]:
        """Return the exchanges of a session in order of time, including those stored for other copies of its files.

        The main source is the most complete of several copies. The exchanges of a growing copy that an earlier copy
        contains are stored only once, for the earlier copy. Other files of the session that share no line with the main
        source contain further parts of the conversation.
        """
        return self._db.numbers(f"{_CONVERSATION} SELECT item FROM placed ORDER BY latest, part, line", (session,))

    def places(self, session: int) -> list[tuple[str, int, int]]:
        """Return the archive path and the first and last line of each exchange of `conversation`, in the same order."""
        rows = self._db.rows(
            f"""{_CONVERSATION} SELECT archived, line, end_line FROM placed JOIN source t ON t.id = part
                ORDER BY latest, part, line""",
            (session,),
        )
        return [(archived, start, end) for archived, start, end in rows]

    def summarised(self, exchanges: Sequence[int]) -> list[StoredObservation]:
        """Return the observations of these exchanges in order, without summaries."""
        observations = self._observations.of_exchanges(exchanges)
        return [
            observation for key in exchanges for observation in observations.get(key, ()) if not observation.summary
        ]

    def of_session(self, session: int) -> StoredObservation | None:
        """Return the summary of a session, or None if it has no summary."""
        row = self._db.one(f"SELECT {COLUMNS} {FROM} JOIN summary s ON s.item = i.key WHERE s.session = ?", (session,))
        return stored_of(row) if row else None

    def of_sessions(self, sessions: Collection[int]) -> dict[int, StoredObservation]:
        """Return the summaries of these sessions, by session."""
        rows = self._db.rows(
            f"SELECT {COLUMNS} {FROM} JOIN summary s ON s.item = i.key WHERE s.session {AMONG}", (listed(sessions),)
        )
        return {summary.session: summary for summary in map(stored_of, rows)}

    def single_titles(self, sessions: Collection[int]) -> dict[int, str]:
        """Return the title of the observation of each of these sessions that has exactly one, by session."""
        rows = self._db.rows(
            f"""SELECT i.session, o.title {FROM} WHERE i.session {AMONG}
                GROUP BY i.session HAVING count(*) = 1 AND o.scope <> 'session'""",
            (listed(sessions),),
        )
        return dict(rows)

    def without_change(self, sessions: Collection[int]) -> set[int]:
        """Return those of these sessions that have neither an observation nor an edited file."""
        rows = self._db.rows(
            f"""SELECT id FROM session s WHERE id {AMONG}
                AND NOT EXISTS (SELECT 1 FROM item i JOIN observation ON item = i.key WHERE i.session = s.id)
                AND NOT EXISTS (SELECT 1 FROM item i JOIN edited_file ON exchange = i.key WHERE i.session = s.id)""",
            (listed(sessions),),
        )
        return {number for (number,) in rows}

    def drop(self, sessions: Collection[int]) -> None:
        """Delete the summaries of these sessions, and schedule new ones.

        Call this after a change to content that the summaries may quote. The findings of a model, which may quote
        several exchanges too, are deleted with them.
        """
        findings = [
            key
            for session in sessions
            for key in self._db.numbers(
                """SELECT i.key FROM item i JOIN observation o ON o.item = i.key
                    WHERE i.session = ? AND o.extractor LIKE ?""",
                (session, f"{FINDING_PREFIX}%"),
            )
        ]
        self._db.run(
            f"""UPDATE exchange SET observed = NULL
                WHERE item IN (SELECT exchange FROM observation WHERE item {AMONG})""",
            (listed(findings),),
        )
        self._db.run(f"DELETE FROM item WHERE key {AMONG}", (listed(findings),))
        rows = self._db.rows(f"SELECT session, item FROM summary WHERE session {AMONG}", (listed(sessions),))
        for session, item in rows:
            self._db.run("DELETE FROM item WHERE key = ?", (item,))
            self.outdate(session)

    def outdate(self, session: int) -> None:
        """Schedule a new summary for a session."""
        self._db.run("INSERT OR IGNORE INTO summary_due VALUES (?)", (session,))

    def due(self) -> list[int]:
        """Return the sessions that have exchanges and need a new summary."""
        return self._db.numbers(
            """SELECT session FROM summary_due WHERE session IN (
                   SELECT i.session FROM exchange e JOIN item i ON i.key = e.item WHERE i.session = summary_due.session
               ) ORDER BY session"""
        )

    def put(self, session: int, exchange: int, summary: Observation | None) -> None:
        """Store the summary of a session as an observation of `exchange`, or delete it if `summary` is None."""
        self._db.run("DELETE FROM summary_due WHERE session = ?", (session,))
        stored = self.of_session(session)
        if stored is not None and summary is not None and stored.exchange == exchange:
            reworded = replace(stored.observation, extractor="") != replace(summary, extractor="")
            self._observations.rewrite(stored.key, summary, reworded=reworded)
            return
        if stored is not None:
            self._db.run("DELETE FROM item WHERE key = ?", (stored.key,))
        if summary is not None:
            key = self._observations.insert(exchange, session, summary, summary=True)
            self._db.run("INSERT OR REPLACE INTO summary (session, item) VALUES (?, ?)", (session, key))
