"""Table of sources: archived files and the position of the parser.

Each source also counts its lines by outcome: parsed, repeated, deleted, or skipped for a reason.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import asdict, astuple

from ...core.conversation import UNINDEXED, Milliseconds, ResumePoint, SessionKind, now
from ..formats import is_extracted
from ..redaction import VERSION
from .database import AMONG, Database, PathSeal, Row, Value, listed

SourceLine: TypeAlias = tuple[int, int]
"""Source ID and line number (1-based) of a copy."""

NO_DEVICE: Final = 0
"""Device number of the sessions of containers."""
DELETED: Final = "forgotten"
"""Outcome of a line that the user deleted. It is a key of `Source.coverage`."""


class Source(Struct):
    """File of an agent and its raw copy.

    `size` is the size of the file. `parsed` and `pending` count bytes of its content, which is longer than `size` if
    the file is compressed. `parsed` bytes belong to complete lines. The `pending` bytes after them belong to a last
    line that is still being written.

    `coverage` maps each outcome of a line, such as `parsed`, to the number of its lines. The sum of these numbers is
    always `lines`. `rules` is the version of the redaction rules that were applied when the copy was parsed.

    `head` and `tail` are digests of the first and the last 4 KiB that were archived. They show whether the agent
    appended to the file or rewrote it. `sums` contains the packed checksums of the copy. It is empty if the checksums
    have not been computed.
    """

    agent: str
    path: Path
    archived: str
    device: int
    inode: int
    mtime: int
    size: int
    head: bytes
    tail: bytes
    session: int | None = None
    parsed: int = 0
    pending: int = 0
    lines: int = 0
    coverage: dict[str, int] = field(default_factory=dict[str, int])
    resume: ResumePoint = field(default_factory=ResumePoint)
    rules: str = VERSION
    sums: bytes = b""
    id: int | None = None

    @property
    def is_contained(self) -> bool:
        """True if the source is a session of a container, which has no file of its own."""
        return self.device == NO_DEVICE


_COLUMNS: Final = Source.__struct_fields__
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM source"
_ORIGINS_FIRST: Final = """(
    WITH RECURSIVE before (name) AS (
        SELECT parent_id FROM session WHERE id = source.session
        UNION SELECT s.parent_id FROM before JOIN session s ON (s.agent, s.native_id) = (source.agent, name)
    ) SELECT count(*) FROM before
)"""
"""SQL expression for the number of sessions from which the session of a source was forked."""
MAIN_SOURCE: Final = """
SELECT id FROM source WHERE session = ?1 AND (
    EXISTS (SELECT 1 FROM exchange e WHERE e.source = source.id) OR
    EXISTS (SELECT 1 FROM repetition r WHERE r.repeated_in = source.id)
) ORDER BY superseded, NOT EXISTS (SELECT 1 FROM exchange e WHERE e.source = source.id), lines DESC, id DESC LIMIT 1
"""
"""SQL query for the main source of session `?1`: of copies that repeat each other's lines, the most complete one.

A source that only repeats another one is not preferred, because its lines can have less detail.
"""


class SourceTable:
    """Tables of sources, of unreadable files, and of the first source of each record."""

    def __init__(self, database: Database) -> None:
        self._db, self._paths = database, PathSeal(database)

    def load(self, number: int) -> Source:
        """Return the source with this ID. Raises `KeyError`."""
        row = self._db.one(f"{_SELECT} WHERE id = ?", (number,))
        if row is None:
            raise KeyError(number)
        return self._source(row)

    def all(self) -> list[Source]:
        """Return every source, including sources superseded by a rewritten file."""
        return [self._source(row) for row in self._db.rows(f"{_SELECT} ORDER BY id")]

    def by_path(self) -> dict[Path, Source]:
        """Return every current source by path. Sources superseded by a rewritten file are omitted."""
        return {source.path: source for source in map(self._source, self._db.rows(f"{_SELECT} WHERE NOT superseded"))}

    def at(self, path: Path) -> Source | None:
        """Return the current source for a path."""
        row = self._db.one(f"{_SELECT} WHERE path = ? AND NOT superseded", (self._paths.stored(path),))
        return self._source(row) if row else None

    def by_archived(self, archived: str) -> Source | None:
        """Return the source with this archive path, including superseded sources."""
        row = self._db.one(f"{_SELECT} WHERE archived = ?", (archived,))
        return self._source(row) if row else None

    def of_session(self, native_id: str) -> list[Source]:
        """Return the sources of a session and of its sub-agents.

        `native_id` is the agent's ID of the session, alone or after its scope or the agent's name: `codex/1234`.
        """
        rows = self._db.rows(
            f"""{_SELECT} WHERE session IN (
                    SELECT id FROM session
                    WHERE ?1 IN (native_id, scope || '/' || native_id, agent || '/' || native_id)
                        OR (?1 IN (parent_id, agent || '/' || parent_id) AND kind = ?2)
                ) ORDER BY id""",
            (native_id, SessionKind.SUBAGENT),
        )
        return [self._source(row) for row in rows]

    def paths(self, session: int) -> list[Path]:
        """Return the paths of the sources of a session, including superseded sources."""
        rows = self._db.rows("SELECT path FROM source WHERE session = ?", (session,))
        return [self._paths.path(path) for (path,) in rows]

    def of_sessions(self, sessions: Sequence[int]) -> list[int]:
        """Return the IDs of the sources of these sessions, in the order of the sessions."""
        rows = self._db.rows(
            """SELECT t.id FROM json_each(?) AS wanted JOIN source t ON t.session = wanted.value
               ORDER BY wanted.key, t.id""",
            (listed(sessions),),
        )
        return [number for (number,) in rows]

    def with_exchanges(self, session: int) -> list[Source]:
        """Return the current sources of a session that have exchanges, in the order of their first exchange."""
        rows = self._db.rows(
            f"""{_SELECT} WHERE session = ? AND NOT superseded
                AND EXISTS (SELECT 1 FROM exchange e WHERE e.source = source.id)
                ORDER BY (SELECT min(item) FROM exchange e WHERE e.source = source.id)""",
            (session,),
        )
        return [self._source(row) for row in rows]

    def main(self, session: int) -> Source | None:
        """Return the most complete source of a session, or None if the session has no exchange."""
        row = self._db.one(f"{_SELECT} WHERE id = ({MAIN_SOURCE})", (session,))
        return self._source(row) if row else None

    def save(self, source: Source) -> int:
        """Insert a source without an ID, or update the source with the same ID. Return the ID."""
        values = self._values(source)
        if source.id is None:
            source.id = self._db.insert("source", values)
        else:
            self._db.update("source", "id", source.id, values)
        return source.id

    def supersede(self, source: Source) -> None:
        """Mark a source as superseded, so that a new source can have its path. Its raw copy and its rows are kept."""
        self._db.run("UPDATE source SET superseded = 1 WHERE id = ?", (source.id,))

    def outdated(self, *, scheduled_only: bool = False) -> list[Source]:
        """Return the sources to read again, oldest first. A fork follows the sessions from which it was forked.

        Sources scheduled by `outdate` are included. Unless `scheduled_only`, also include sources that were read with
        other redaction rules, and indexed sources whose session the user excluded from the index.
        """
        rows = self._db.rows(
            f"""{_SELECT} WHERE rules = '' OR NOT ? AND (rules <> ? OR
                    session IN (
                        SELECT s.id FROM session s LEFT JOIN session p
                        ON p.agent = s.agent AND p.native_id = s.parent_id AND s.parent_id <> ''
                        WHERE coalesce(s.links ->> '$.{UNINDEXED}', p.links ->> '$.{UNINDEXED}') NOT NULL
                    ) AND EXISTS (SELECT 1 FROM exchange e WHERE e.source = source.id)
                ) ORDER BY {_ORIGINS_FIRST}, id""",
            (scheduled_only, VERSION),
        )
        return [self._source(row) for row in rows]

    def outdate(self, sources: Collection[int] | None = None) -> None:
        """Schedule the copies of these sources to be read again. By default, schedule the copies of all sources."""
        if sources is None:
            self._db.run("UPDATE source SET rules = ''")
        else:
            self._db.run(f"UPDATE source SET rules = '' WHERE id {AMONG}", (listed(sources),))

    def count_to_read(self) -> int:
        """Count the undamaged copies that are scheduled to be read again."""
        return self._db.number(
            """SELECT count(*) FROM source WHERE rules = ''
               AND id NOT IN (SELECT source FROM verification WHERE fault <> '')"""
        )

    def extracted(self, sources: Collection[int]) -> list[int]:
        """Return the given sources that were extracted from the transcript of another session."""
        rows = self._db.rows(f"SELECT id, path FROM source WHERE id {AMONG}", (listed(sources),))
        return [number for number, path in rows if is_extracted(self._paths.path(path))]

    def unextracted(self, outcome: str) -> list[Source]:
        """Return the sources with lines of this outcome that changed since `ContainerTable.keep` was called for them.

        A fork follows the sessions from which it was forked.
        The state of such a source is the number of its parsed bytes, and its path is the name of its copy.
        """
        rows = self._db.rows(
            f"""{_SELECT} WHERE coverage ->> ? > 0
                AND parsed IS NOT (SELECT state FROM container WHERE path = CAST(archived AS BLOB))
                ORDER BY {_ORIGINS_FIRST}, id""",
            (f'$."{outcome}"',),
        )
        return [self._source(row) for row in rows]

    def is_first(self, source: Source) -> bool:
        """Return whether this source is the oldest source of its session."""
        row = self._db.one("SELECT min(id) FROM source WHERE session = ?", (source.session,))
        return row is not None and row[0] == source.id

    def record_verification(self, source: int, at: Milliseconds, fault: str) -> None:
        """Record that a copy was verified. `fault` describes its damage and is empty for an intact copy.

        A source that was deleted in the meantime is ignored.
        """
        self._db.run(
            "INSERT OR REPLACE INTO verification SELECT id, ?, ? FROM source WHERE id = ?", (at, fault, source)
        )

    def due_for_verification(self, at: Milliseconds, intact: Milliseconds, damaged: Milliseconds) -> list[int]:
        """Return the IDs of sources whose copies are due for verification, the least recently verified first.

        A copy is due if it was last verified more than a period before `at`: `intact` or `damaged`. A verification
        after `at`, by a wrong clock, does not count.
        """
        return self._db.numbers(
            """SELECT s.id FROM source s LEFT JOIN verification i ON i.source = s.id
               WHERE i.at IS NULL OR i.at > ?1 OR i.at < ?1 - iif(i.fault = '', ?2, ?3) ORDER BY i.at, s.id""",
            (at, intact, damaged),
        )

    def damaged(self) -> list[tuple[str, str]]:
        """Return the archive path and the damage of each copy that was damaged at its last verification."""
        rows = self._db.rows(
            "SELECT archived, fault FROM verification JOIN source ON id = source WHERE fault <> '' ORDER BY archived"
        )
        return [(name, fault) for name, fault in rows]

    def ended_before(self, time: Milliseconds) -> set[int]:
        """Return the IDs of the sources whose session has no line of this time or later."""
        sql = "SELECT s.id FROM source s JOIN session t ON t.id = s.session WHERE t.ended < ?"
        return set(self._db.numbers(sql, (time,)))

    def verification_state(self) -> tuple[int, Milliseconds | None]:
        """Return the number of verified copies, and the time of the least recent verification."""
        [(count, oldest)] = self._db.rows("SELECT count(*), min(at) FROM verification")
        return count, oldest

    def save_checksums(self, source: int, sums: bytes = b"") -> None:
        """Store the checksums of a copy. Without `sums`, delete the stored checksums."""
        self._db.run("UPDATE source SET sums = ? WHERE id = ?", (sums, source))

    def coverage(self) -> Counter[str]:
        """Return the number of archived lines with each outcome, such as `parsed`, for all sources."""
        total: Counter[str] = Counter()
        for (text,) in self._db.rows("SELECT coverage FROM source"):
            total.update(json.loads(text))
        return total

    def coverage_by_version(self) -> list[tuple[str, str, str, int]]:
        """Return the number of lines with each outcome, by agent and version of its program.

        Each tuple contains the agent, the version, the outcome and the number. The versions of an agent are in the
        order in which they were first used.
        """
        rows = self._db.rows(
            """SELECT s.agent, e.version, c.key, sum(c.value) FROM source s JOIN session e ON e.id = s.session,
                   json_each(s.coverage) c
               GROUP BY s.agent, e.version, c.key
               ORDER BY s.agent, (SELECT min(started) FROM session WHERE agent = s.agent AND version = e.version)"""
        )
        return [(agent, version, outcome, int(count)) for agent, version, outcome, count in rows]

    def with_outcome(self, agent: str, version: str, outcome: str) -> str:
        """Return the archive path of the smallest copy that has lines with an outcome, or an empty text."""
        rows = self._db.rows(
            """SELECT s.archived FROM source s JOIN session e ON e.id = s.session, json_each(s.coverage) c
               WHERE s.agent = ? AND e.version = ? AND c.key = ? ORDER BY s.size LIMIT 1""",
            (agent, version, outcome),
        )
        return rows[0][0] if rows else ""

    def newest_without_exchanges(self, lines: int, newest: int) -> list[tuple[str, int]]:
        """Return the agents of whose `newest` sources none has an exchange, with the number of their lines.

        Only sources with at least a number of `lines` count, and only agents with an older source with an exchange.
        """
        rows = self._db.rows(
            """WITH listed AS (
                   SELECT s.agent, s.lines, EXISTS (SELECT 1 FROM exchange x WHERE x.source = s.id)
                           OR s.coverage LIKE '%"repeated"%' OR s.coverage LIKE '%"deleted"%' AS has,
                       row_number() OVER (PARTITION BY s.agent ORDER BY s.mtime DESC, s.id DESC) AS place
                   FROM source s WHERE s.lines >= ?1)
               SELECT agent, sum(lines) FROM listed WHERE place <= ?2
               GROUP BY agent HAVING NOT max(has) AND count(*) = ?2
               AND EXISTS (SELECT 1 FROM listed o WHERE o.agent = listed.agent AND o.has)""",
            (lines, newest),
        )
        return [(agent, int(count)) for agent, count in rows]

    def grown_by(self, outcome: str, lines: int, share: float) -> list[tuple[str, int]]:
        """Return the agents with a source that only grew by lines with an outcome, with the number of these lines.

        A source counts if it has at least a number of `lines` since the start of its last exchange, and if at least a
        `share` of them has the outcome.
        """
        rows = self._db.rows(
            """SELECT agent, sum(found) FROM (
                   SELECT agent, lines - (resume ->> 0) + 1 AS added,
                       coalesce(coverage ->> ?1, 0) - coalesce(resume -> 3 ->> ?1, 0) AS found FROM source)
               WHERE added >= ?2 AND found >= ?3 * added GROUP BY agent ORDER BY agent""",
            (outcome, lines, share),
        )
        return [(agent, int(count)) for agent, count in rows]

    def unaccounted(self) -> list[tuple[str, int, int]]:
        """Return the copies whose number of lines differs from the number of lines with an outcome.

        Each tuple contains the archive path and these two numbers.
        """
        rows = self._db.rows(
            """SELECT archived, lines, counted FROM (
                   SELECT id, archived, lines, (SELECT total(value) FROM json_each(coverage)) AS counted FROM source
               ) WHERE lines != counted ORDER BY id"""
        )
        return [(name, lines, int(counted)) for name, lines, counted in rows]

    def totals(self) -> tuple[int, int, int, int]:
        """Return four totals: files, their bytes, lines, and the bytes of incomplete last lines."""
        rows = self._db.rows("SELECT count(*), total(size), total(lines), total(pending) FROM source")
        files, size, lines, pending = map(int, rows[0])
        return files, size, lines, pending

    def archived_names(self) -> set[str]:
        """Return the archive paths of all copies, including those of superseded sources."""
        return {name for (name,) in self._db.rows("SELECT archived FROM source")}

    def session_of(self, source: int) -> int | None:
        """Return the ID of the session that a source belongs to."""
        row = self._db.one("SELECT session FROM source WHERE id = ?", (source,))
        return row[0] if row else None

    def native_id(self, source: int) -> str:
        """Return the agent's ID of the session that a source belongs to, or an empty string."""
        row = self._db.one(
            "SELECT native_id FROM session WHERE id = (SELECT session FROM source WHERE id = ?)", (source,)
        )
        return row[0] if row else ""

    def locate(self, records: Collection[str]) -> dict[str, SourceLine]:
        """Map each record ID to the source and line that contained the record first. Unknown IDs are omitted."""
        rows = self._db.rows(f"SELECT id, source, line FROM record WHERE id {AMONG}", (listed(records),))
        return {record: (source, line) for record, source, line in rows}

    def records_of(self, source: int) -> dict[str, int]:
        """Map the IDs of records whose first occurrence is in this source to their line numbers."""
        return dict(self._db.rows("SELECT id, line FROM record WHERE source = ?", (source,)))

    def add_records(self, source: int, lines: dict[str, int]) -> None:
        """Store the line numbers of records whose first occurrence is in this source."""
        self._db.run_many(
            "INSERT OR IGNORE INTO record VALUES (?, ?, ?)", [(record, source, line) for record, line in lines.items()]
        )

    def remove_records(self, places: Iterable[SourceLine]) -> None:
        """Delete the records on these lines, because an earlier source contains them too."""
        lines = json.dumps(list(places))
        self._db.run(
            "DELETE FROM record WHERE (source, line) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))", (lines,)
        )

    def report(self, path: Path, reason: str | None) -> None:
        """Record why a file could not be read. If the reason is None, delete the record."""
        if reason is None:
            self._db.run("DELETE FROM problem WHERE path = ?", (self._paths.stored(path),))
        else:
            self._db.run("INSERT OR REPLACE INTO problem VALUES (?, ?, ?)", (self._paths.stored(path), reason, now()))

    def problems(self) -> list[tuple[Path, str]]:
        """Return the path of each file that could not be read at the last attempt, with the reason."""
        rows = self._db.rows("SELECT path, reason FROM problem ORDER BY path")
        return [(self._paths.path(path), reason) for path, reason in rows]

    def _values(self, source: Source) -> dict[str, Value]:
        encoded: dict[str, Value] = {
            "path": self._paths.stored(source.path),
            "coverage": json.dumps(source.coverage),
            "resume": json.dumps(astuple(source.resume)),
        }
        return {column: value for column, value in (asdict(source) | encoded).items() if column != "id"}

    def _source(self, row: Row) -> Source:
        values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
        decoded: dict[str, Any] = {
            "path": self._paths.path(values["path"]),
            "coverage": json.loads(values["coverage"]),
            "resume": ResumePoint(*json.loads(values["resume"])),
        }
        return Source(**values | decoded)


class ContainerTable:
    """Table of the state of each container (a file or database with many sessions) at its last complete ingest."""

    def __init__(self, database: Database) -> None:
        self._db, self._paths = database, PathSeal(database)

    def state(self, path: Path) -> int | None:
        """Return the state of a container at its last ingest, or None if it was never ingested."""
        row = self._db.one("SELECT state FROM container WHERE path = ?", (self._paths.stored(path),))
        return row[0] if row and isinstance(row[0], int) else None

    def keep(self, path: Path, state: int) -> None:
        """Record the state of a container whose sessions were all ingested."""
        self._db.run("INSERT OR REPLACE INTO container VALUES (?, ?)", (self._paths.stored(path), state))
