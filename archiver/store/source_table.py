"""Sources: one row for each archived file, with how far it was read and what became of every line."""

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from ...core.clock import now
from ...core.conversation import UNINDEXED, Milliseconds, ResumePoint, SessionKind
from ..redaction import VERSION
from .database import AMONG, Database, Row, listed

Place = tuple[int, int]
"""A source's id and a line in its copy."""

DELETED: Final = "forgotten"
"""Outcome of a line that the user deleted."""


class Source(Struct):
    """A file of an agent and its copy in the archive.

    `size` counts bytes of the file, `parsed` and `pending` bytes of its content, which is more where the file is
    compressed. Always `lines == sum(coverage.values())`; the `pending` bytes after `parsed` are a line still being
    written.
    `rules` is the version of the rules by which secrets were taken out of what it says.
    `head` and `tail` are digests of the first and the last 4 KiB archived, by which an append is told from a rewrite.
    `sums` are the packed checksums of the copy, empty where none were computed yet.
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


_COLUMNS = (
    "id, agent, path, archived, device, inode, mtime, size, head, tail, session, parsed, pending, lines, coverage, "
    "resume, rules, sums"
)


class SourceTable:
    """Reads and writes `Source` rows."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def by_path(self) -> dict[Path, Source]:
        """Every current source; those replaced by a rewritten file are left out."""
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM source WHERE NOT superseded")
        return {source.path: source for source in map(_source, rows)}

    def all(self) -> list[Source]:
        """Every source, those replaced by a rewritten file included."""
        return [_source(row) for row in self._db.rows(f"SELECT {_COLUMNS} FROM source ORDER BY id")]

    def of_session(self, native_id: str) -> list[Source]:
        """The sources of a session, by the id that its agent gave it, and of the sub-agents that worked for it."""
        rows = self._db.rows(
            f"""SELECT {_COLUMNS} FROM source WHERE session IN (
                    SELECT id FROM session WHERE native_id = ? OR (parent_id = ? AND kind = ?)
                ) ORDER BY id""",
            (native_id, native_id, SessionKind.SUBAGENT),
        )
        return [_source(row) for row in rows]

    def load(self, number: int) -> Source:
        """The source with this id, which must exist."""
        row = self._db.one(f"SELECT {_COLUMNS} FROM source WHERE id = ?", (number,))
        if row is None:
            raise KeyError(number)
        return _source(row)

    def at(self, path: Path) -> Source | None:
        """The current source of a path."""
        row = self._db.one(f"SELECT {_COLUMNS} FROM source WHERE path = ? AND NOT superseded", (os.fsencode(path),))
        return _source(row) if row else None

    def by_archived(self, archived: str) -> Source | None:
        """The source whose copy has this path below the archive folder, replaced ones included."""
        row = self._db.one(f"SELECT {_COLUMNS} FROM source WHERE archived = ?", (archived,))
        return _source(row) if row else None

    def save(self, source: Source) -> int:
        """Insert a source without an id, or update the one it has; the id."""
        values = _values(source)
        names = _COLUMNS.split(", ")[1:]
        if source.id is None:
            marks = ",".join("?" * len(names))
            source.id = self._db.run(f"INSERT INTO source ({', '.join(names)}) VALUES ({marks})", values)
        else:
            settings = ", ".join(f"{name} = ?" for name in names)
            self._db.run(f"UPDATE source SET {settings} WHERE id = ?", (*values, source.id))
        return source.id

    def supersede(self, source: Source) -> None:
        """Keep a source's copy and rows, but let its path belong to a new source."""
        self._db.run("UPDATE source SET superseded = 1 WHERE id = ?", (source.id,))

    def outdated(self, *, marked: bool = False) -> list[Source]:
        """Return sources to read again, each after those that its session was forked from, then the oldest first.

        These are the `marked` ones (`outdate`, `TombstoneTable.reread`); unless only they are wanted, also those that
        other rules for secrets read, and those of sessions that are archived but not indexed.
        """
        rows = self._db.rows(
            f"""SELECT {_COLUMNS} FROM source WHERE rules = '' OR NOT ? AND (rules <> ? OR
                    session IN (
                        SELECT s.id FROM session s LEFT JOIN session p
                        ON p.agent = s.agent AND p.native_id = s.parent_id AND s.parent_id <> ''
                        WHERE coalesce(s.links ->> '$.{UNINDEXED}', p.links ->> '$.{UNINDEXED}') NOT NULL
                    ) AND EXISTS (SELECT 1 FROM exchange WHERE source = source.id)
                ) ORDER BY (
                    WITH RECURSIVE before (name) AS (
                        SELECT parent_id FROM session WHERE id = source.session
                        UNION SELECT s.parent_id FROM before
                            JOIN session s ON (s.agent, s.native_id) = (source.agent, name)
                    ) SELECT count(*) FROM before
                ), id""",
            (marked, VERSION),
        )
        return [_source(row) for row in rows]

    def is_first(self, source: Source) -> bool:
        """Whether no older source belongs to its session."""
        row = self._db.one("SELECT min(id) FROM source WHERE session = ?", (source.session,))
        return row is not None and row[0] == source.id

    def inspected(self, source: int, at: Milliseconds, fault: str) -> None:
        """Record that a copy was verified; `fault` is what is wrong with it, empty for nothing.

        Nothing is recorded for a source that was deleted meanwhile.
        """
        self._db.run("INSERT OR REPLACE INTO inspection SELECT id, ?, ? FROM source WHERE id = ?", (at, fault, source))

    def to_inspect(self, before: Milliseconds, faulty: Milliseconds) -> list[int]:
        """Return the ids of sources whose copies are due for verification, the least recently verified first.

        Due are copies last verified before `before`, and damaged ones last verified before `faulty`.
        """
        rows = self._db.rows(
            """SELECT s.id FROM source s LEFT JOIN inspection i ON i.source = s.id
               WHERE i.at IS NULL OR i.at < iif(i.fault = '', ?, ?) ORDER BY i.at, s.id""",
            (before, faulty),
        )
        return [cast(int, number) for (number,) in rows]

    def keep_sums(self, source: int, sums: bytes = b"") -> None:
        """Store the checksums of a copy; by default none, before the copy is rewritten.

        A process killed between the rewrite and the next call leaves a copy without checksums, not one with wrong ones.
        """
        self._db.run("UPDATE source SET sums = ? WHERE id = ?", (sums, source))

    def faulty(self) -> list[tuple[str, str]]:
        """Return the copies that were damaged when they were last verified: the archive path and the damage."""
        rows = self._db.rows(
            "SELECT archived, fault FROM inspection JOIN source ON id = source WHERE fault <> '' ORDER BY archived"
        )
        return [(str(name), str(fault)) for name, fault in rows]

    def inspection(self) -> tuple[int, Milliseconds | None]:
        """Return how many copies have been verified, and when the least recently verified one was."""
        row = self._db.one("SELECT count(*), min(at) FROM inspection")
        return (cast(int, row[0]), cast("int | None", row[1])) if row else (0, None)

    def coverage(self) -> Counter[str]:
        """All archived lines by outcome."""
        total: Counter[str] = Counter()
        for (text,) in self._db.rows("SELECT coverage FROM source"):
            total.update(json.loads(str(text)))
        return total

    def unaccounted(self) -> list[tuple[str, int, int]]:
        """The copies whose lines do not add up: name, lines, and how many of them have an outcome. None is expected."""
        rows = self._db.rows(
            """SELECT archived, lines, told FROM (
                   SELECT id, archived, lines, (SELECT total(value) FROM json_each(coverage)) AS told FROM source
               ) WHERE lines != told ORDER BY id"""
        )
        return [(str(name), cast(int, lines), int(cast(float, told))) for name, lines, told in rows]

    def totals(self) -> tuple[int, int, int, int]:
        """Files, bytes, lines, and bytes of lines still being written."""
        row = self._db.one("SELECT count(*), total(size), total(lines), total(pending) FROM source")
        files, size, lines, pending = cast("tuple[float, ...]", row)
        return int(files), int(size), int(lines), int(pending)

    def outdate(self, sources: Collection[int] | None = None) -> None:
        """Have the copies of these sources read again; every copy where none is named."""
        if sources is None:
            self._db.run("UPDATE source SET rules = ''")
        else:
            self._db.run(f"UPDATE source SET rules = '' WHERE id {AMONG}", (listed(sources),))

    def count_to_read(self) -> int:
        """How many copies were to be read again and were not yet; not those that only newer rules would read again, nor
        those that are damaged.
        """
        return self._db.number(
            """SELECT count(*) FROM source WHERE rules = ''
               AND id NOT IN (SELECT source FROM inspection WHERE fault <> '')"""
        )

    def archived_names(self) -> set[str]:
        """The names of all copies, those of replaced sources included."""
        return {str(row[0]) for row in self._db.rows("SELECT archived FROM source")}

    def places(self, records: Collection[str]) -> dict[str, Place]:
        """Where these record ids were first seen; unknown ones are left out."""
        rows = self._db.rows(f"SELECT id, source, line FROM record WHERE id {AMONG}", (listed(records),))
        return {str(record): (cast(int, source), cast(int, line)) for record, source, line in rows}

    def records_of(self, source: int) -> dict[str, int]:
        """The records that a source brought first, and the lines they stand on."""
        rows = self._db.rows("SELECT id, line FROM record WHERE source = ?", (source,))
        return {str(record): cast(int, line) for record, line in rows}

    def own(self, source: int, lines: dict[str, int]) -> None:
        """This source brought these records first, on these lines."""
        self._db.run_many(
            "INSERT OR IGNORE INTO record VALUES (?, ?, ?)", [(record, source, line) for record, line in lines.items()]
        )

    def disown(self, sources: Collection[int], records: Collection[str]) -> None:
        """Others brought these records before these sources did."""
        self._db.run(f"DELETE FROM record WHERE id {AMONG} AND source {AMONG}", (listed(records), listed(sources)))

    def session_of(self, source: int) -> int | None:
        """The number of the session a source belongs to."""
        row = self._db.one("SELECT session FROM source WHERE id = ?", (source,))
        return cast("int | None", row[0]) if row else None

    def report(self, path: Path, reason: str | None) -> None:
        """Remember why a file could not be read, or forget it when it could."""
        if reason is None:
            self._db.run("DELETE FROM problem WHERE path = ?", (os.fsencode(path),))
        else:
            self._db.run("INSERT OR REPLACE INTO problem VALUES (?, ?, ?)", (os.fsencode(path), reason, now()))

    def problems(self) -> list[tuple[Path, str]]:
        """Files that could not be read at the last attempt."""
        rows = self._db.rows("SELECT path, reason FROM problem ORDER BY path")
        return [(Path(os.fsdecode(cast(bytes, path))), str(reason)) for path, reason in rows]


class ContainerTable:
    """Reads and writes the state in which each file or database of many sessions was last ingested as a whole."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def state(self, path: Path) -> int | None:
        """Return the state in which a container was last ingested; None if it never was."""
        row = self._db.one("SELECT state FROM container WHERE path = ?", (os.fsencode(path),))
        return row[0] if row and isinstance(row[0], int) else None

    def keep(self, path: Path, state: int) -> None:
        """Record that all sessions of a container were ingested in this state."""
        self._db.run("INSERT OR REPLACE INTO container VALUES (?, ?)", (os.fsencode(path), state))


def _values(source: Source) -> tuple[str | bytes | int | None, ...]:
    resume = source.resume
    return (
        source.agent,
        os.fsencode(source.path),
        source.archived,
        source.device,
        source.inode,
        source.mtime,
        source.size,
        source.head,
        source.tail,
        source.session,
        source.parsed,
        source.pending,
        source.lines,
        json.dumps(source.coverage),
        json.dumps([resume.line, resume.byte, resume.ordinal, resume.coverage, resume.entitles]),
        source.rules,
        source.sums,
    )


def _source(row: Row) -> Source:
    number, agent, path, archived, device, inode, mtime, size, head, tail, session, *read = row
    parsed, pending, lines, coverage, resume, rules, sums = read
    return Source(
        id=cast(int, number),
        agent=str(agent),
        path=Path(os.fsdecode(cast(bytes, path))),
        archived=str(archived),
        device=cast(int, device),
        inode=cast(int, inode),
        mtime=cast(int, mtime),
        size=cast(int, size),
        head=cast(bytes, head),
        tail=cast(bytes, tail),
        session=cast("int | None", session),
        parsed=cast(int, parsed),
        pending=cast(int, pending),
        lines=cast(int, lines),
        coverage=json.loads(str(coverage)),
        resume=ResumePoint(*json.loads(str(resume))),
        rules=str(rules),
        sums=cast(bytes, sums),
    )
