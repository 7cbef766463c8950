"""Sessions: one row for each conversation, however many files it lies in."""

import json
from collections.abc import Collection
from typing import cast

from ...core.conversation import UNINDEXED, Session, SessionKind
from .database import Database, Row, listed

_COLUMNS = (
    "agent, native_id, kind, parent_id, project, cwd, branch, title, title_rank, version, models, links, started, ended"
)


class SessionTable:
    """Reads and writes `Session` values under the store's own numbers."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, agent: str, native_id: str) -> int | None:
        """The number of the session that an agent calls `native_id`."""
        row = self._db.one("SELECT id FROM session WHERE agent = ? AND native_id = ?", (agent, native_id))
        return cast(int, row[0]) if row else None

    def all(self) -> dict[int, Session]:
        """Every session by its number."""
        rows = self._db.rows(f"SELECT id, {_COLUMNS} FROM session ORDER BY id")
        return {cast(int, number): _session(tuple(row)) for number, *row in rows}

    def places(self) -> list[str]:
        """The folder of every session that has exchanges."""
        rows = self._db.rows("SELECT cwd FROM session WHERE id IN (SELECT session FROM item)")
        return [str(row[0]) for row in rows]

    def whereabouts(self, native_id: str | None = None) -> set[tuple[str, str]]:
        """The project and the folder of every session; with a `native_id` those of its sessions alone, and each folder
        that their exchanges were in.
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
        return {(str(project), str(cwd)) for project, cwd in rows}

    def beginning(self, start: str) -> list[str]:
        """The ids, as their agents gave them, that begin so, of sessions that have a source."""
        rows = self._db.rows(
            """SELECT DISTINCT native_id FROM session WHERE substr(native_id, 1, length(?)) = ?
               AND id IN (SELECT session FROM source) ORDER BY native_id""",
            (start, start),
        )
        return [str(row[0]) for row in rows]

    def is_unindexed(self, agent: str, native_id: str) -> bool:
        """Whether a session is known, and its person wants it in the copies alone."""
        number = self.find(agent, native_id) if native_id else None
        return number is not None and UNINDEXED in self.load(number).links

    def descended(self, sources: Collection[int], session: Session) -> list[int]:
        """Those of these sources whose sessions were forked from this one, or from one that was; of what names each
        other in a circle, none.
        """
        rows = self._db.rows(
            """WITH RECURSIVE before (name) AS (
                    VALUES (?1)
                    UNION SELECT s.parent_id FROM before JOIN session s ON (s.agent, s.native_id) = (?2, name)
                ), origin (source, name) AS (
                    SELECT t.id, s.parent_id FROM source t JOIN session s ON s.id = t.session
                        WHERE t.id IN (SELECT value FROM json_each(?4))
                        AND s.agent = ?2 AND s.kind = ?5 AND s.native_id NOT IN (SELECT name FROM before)
                    UNION SELECT source, s.parent_id FROM origin JOIN session s ON (s.agent, s.native_id) = (?2, name)
                )
                SELECT DISTINCT source FROM origin WHERE name = ?3""",
            (session.parent_id, session.agent, session.native_id, listed(sources), SessionKind.MAIN),
        )
        return [cast(int, row[0]) for row in rows]

    def load(self, number: int) -> Session:
        """The session with this number, which must exist."""
        row = self._db.one(f"SELECT {_COLUMNS} FROM session WHERE id = ?", (number,))
        if row is None:
            raise KeyError(number)
        return _session(row)

    def save(self, session: Session) -> int:
        """Insert or update by (agent, native id); the number."""
        columns = _COLUMNS.split(", ")
        updates = ", ".join(f"{name} = excluded.{name}" for name in columns[2:])
        self._db.run(
            f"INSERT INTO session ({_COLUMNS}) VALUES ({','.join('?' * len(columns))})"
            f" ON CONFLICT (agent, native_id) DO UPDATE SET {updates}",
            (
                session.agent,
                session.native_id,
                session.kind,
                session.parent_id,
                session.project,
                session.cwd,
                session.branch,
                session.title,
                session.title_rank,
                session.version,
                json.dumps(session.models),
                json.dumps(session.links),
                session.started,
                session.ended,
            ),
        )
        number = self.find(session.agent, session.native_id)
        assert number is not None
        return number

    def date(self, number: int) -> None:
        """A session began with the first of its exchanges that is there, and ended with the last: what was taken back
        or forgotten says nothing of it.
        """
        self._db.run(
            """UPDATE session SET (started, ended) = (
                   SELECT min(i.at), max(e.ended) FROM item i JOIN exchange e ON e.item = i.key WHERE i.session = ?1
               ) WHERE id = ?1""",
            (number,),
        )

    def count(self) -> int:
        """How many sessions hold at least one exchange or are known at all."""
        return self._db.number("SELECT count(*) FROM session")


def _session(row: Row) -> Session:
    texts = [str(value) for value in row[:12]]
    return Session(
        agent=texts[0],
        native_id=texts[1],
        kind=SessionKind(texts[2]),
        parent_id=texts[3],
        project=texts[4],
        cwd=texts[5],
        branch=texts[6],
        title=texts[7],
        title_rank=int(texts[8]),
        version=texts[9],
        models=json.loads(texts[10]),
        links=json.loads(texts[11]),
        started=cast("int | None", row[12]),
        ended=cast("int | None", row[13]),
    )
