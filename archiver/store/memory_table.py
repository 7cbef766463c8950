"""Memories: what is held to be true, item by item."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TypeAlias, cast

import orjson
from msgspec.structs import replace

from ...core.conversation import Milliseconds
from ...core.memory import GOLDEN_FROM, Memory, MemoryState, MemoryStats, StoredMemory
from ...core.memory_filter import MemoryFilter, MemoryOrder
from ...core.memory_types import GOLDEN_RULE, Family, family_of
from ...core.origin import Origin
from .database import AMONG, Database, Row, Value, listed

_SAID = (
    "content, type, title, namespace, project, level, importance, tags, metadata, source, origin, session_id, path, "
    "pinned, valid_from, valid_until"
)
_EARNED = "confidence, successes, failures, strikes, promoted_from"
_NUMBERS = set(
    "item importance pinned valid_from valid_until confidence successes failures strikes created updated accessed "
    "accesses decayed".split()
)
"""Columns that are no text."""
_COLUMNS = f"item, {_SAID}, {_EARNED}, state, created, updated, accessed, accesses, decayed"

# The columns as SQLite keeps them, a group each.
_Words: TypeAlias = tuple[str, str, str, str, str, str, float, str, str]
_Terms: TypeAlias = tuple[str, str, str, str, int, int | None, int | None]
_Earned: TypeAlias = tuple[float, int, int, int, str]
_Times: TypeAlias = tuple[str, int, int, int | None, int, int | None]


class MemoryTable:
    """Reads and writes memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def insert(self, memory: Memory, at: Milliseconds, rules: str = "") -> int:
        """Hold a new memory; its key. `rules` is the version of those by which secrets were taken out of it."""
        key = self._db.run("INSERT INTO item (kind, at) VALUES ('memory', ?)", (at,))
        names = f"item, {_SAID}, family, hash, {_EARNED}, state, created, updated, rules"
        values = (key, *_said(memory), *_claim(memory, ""), *_earned(MemoryStats()), MemoryState.ACTIVE, at, at, rules)
        self._db.run(f"INSERT INTO memory ({names}) VALUES ({','.join('?' * len(values))})", values)
        self._tag(key, memory.tags)
        return key

    def rewrite(self, held: StoredMemory) -> None:
        """Make a stored memory what this one says and has earned. Its text is embedded anew where it changed."""
        before = self.load([held.key])[held.key].memory
        memory, stats = held.memory, held.stats
        names = f"{_SAID}, family, hash, {_EARNED}, state, updated, accessed, accesses, decayed"
        settings = ", ".join(f"{name} = ?" for name in names.split(", "))
        reached = (held.state, held.updated, held.accessed, held.accesses, held.decayed)
        values = (*_said(memory), *_claim(memory, stats.promoted_from), *_earned(stats), *reached)
        self._db.run(f"UPDATE memory SET {settings} WHERE item = ?", (*values, held.key))
        if before.tags != memory.tags:
            self._db.run("DELETE FROM memory_tag WHERE memory = ?", (held.key,))
            self._tag(held.key, memory.tags)
        if (before.title, before.content) != (memory.title, memory.content):
            self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (held.key,))

    def earn(self, key: int, stats: MemoryStats, decayed: Milliseconds | None = None) -> None:
        """Write what a memory has earned. No index holds it, so nothing is logged."""
        settings = ", ".join(f"{name} = ?" for name in _EARNED.split(", "))
        values = (*_earned(stats), decayed, key)
        self._db.run(f"UPDATE memory SET {settings}, decayed = coalesce(?, decayed) WHERE item = ?", values)

    def touch(self, keys: Iterable[int], at: Milliseconds) -> None:
        """Count a recall of each. No index holds it, so nothing is logged."""
        rows: list[tuple[Value, ...]] = [(at, key) for key in keys]
        self._db.run_many("UPDATE memory SET accessed = ?, accesses = accesses + 1 WHERE item = ?", rows)

    def load(self, keys: Sequence[int]) -> dict[int, StoredMemory]:
        """The memories with these keys, whatever their state; unknown keys are left out."""
        rows = self._db.rows_among(f"SELECT {_COLUMNS} FROM memory WHERE item {AMONG}", keys)
        return {held.key: held for held in map(_held, rows)}

    def all(self) -> list[StoredMemory]:
        """Every memory, whatever its state, by key."""
        return [_held(row) for row in self._db.rows(f"SELECT {_COLUMNS} FROM memory ORDER BY item")]

    def outdated(self, rules: str, limit: int) -> list[int]:
        """Memories that secrets were taken out of by other rules than these, by key."""
        rows = self._db.rows("SELECT item FROM memory WHERE rules != ? ORDER BY item LIMIT ?", (rules, limit))
        return [cast(int, row[0]) for row in rows]

    def renewed(self, keys: Iterable[int], rules: str) -> None:
        """Note that these rules took the secrets out of these memories."""
        rows: list[tuple[Value, ...]] = [(rules, key) for key in keys]
        self._db.run_many("UPDATE memory SET rules = ? WHERE item = ?", rows)

    def erase(self, keys: Sequence[int]) -> None:
        """Delete memories with their history and their edges."""
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in keys])

    def previews(self, keys: Sequence[int], length: int) -> dict[int, tuple[str, str]]:
        """Type and the first characters of each memory's content."""
        rows = self._db.rows(
            f"SELECT item, type, substr(content, 1, ?) FROM memory WHERE item {AMONG}", (length, listed(keys))
        )
        return {cast(int, key): (str(name), str(text)) for key, name, text in rows}

    def claimed(self, memory: Memory, promoted_from: str = "", *, superseded: bool = False) -> int | None:
        """Return the active memory that says the same, in the same namespace and family; None for one kept in a file.

        Where none does, and `superseded` ones are wanted, return such a one.
        """
        if memory.path:
            return None
        row = self._db.one(
            """SELECT item FROM memory WHERE namespace = ? AND family = ? AND hash = ? AND path = ''
               AND (state = 'active' OR ? AND state = 'superseded') ORDER BY state, item DESC LIMIT 1""",
            (memory.namespace, *_claim(memory, promoted_from), superseded),
        )
        return cast(int, row[0]) if row else None

    def at_path(self, path: str) -> int | None:
        """The active memory that is kept in this file."""
        row = self._db.one("SELECT item FROM memory WHERE path = ? AND path != '' AND state = 'active'", (path,))
        return cast(int, row[0]) if row else None

    def select(
        self,
        wanted: MemoryFilter,
        order: MemoryOrder = MemoryOrder.CREATED,
        *,
        descending: bool = True,
        limit: int = -1,
        offset: int = 0,
    ) -> list[StoredMemory]:
        """The memories that satisfy a filter, in order; equal ones by age."""
        where, values = _where(wanted)
        column, way = _ORDER[order], "DESC" if descending else "ASC"
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM memory WHERE {where} ORDER BY {column} {way}, item {way} LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [_held(row) for row in rows]

    def count(self, wanted: MemoryFilter) -> int:
        """How many memories satisfy a filter."""
        where, values = _where(replace(wanted, valid_at=None))
        every = f"SELECT count(*) FROM memory WHERE {where}"
        if (at := wanted.valid_at) is None:
            return self._db.number(every, values)
        termed = "memory INDEXED BY memory_term WHERE (valid_until IS NOT NULL OR valid_from IS NOT NULL)"
        invalid = f"SELECT count(*) FROM {termed} AND (valid_until <= ? OR valid_from > ?) AND {where}"
        return self._db.number(f"SELECT ({every}) - ({invalid})", (*values, at, at, *values))

    def count_by(self, column: str, wanted: MemoryFilter) -> dict[str, int]:
        """How many there are of each `namespace`, `type`, `level`, `project` or `state`, most first."""
        assert column in {"namespace", "type", "level", "project", "state"}
        where, values = _where(wanted)
        rows = self._db.rows(
            f"SELECT {column}, count(*) FROM memory WHERE {where} GROUP BY {column} ORDER BY 2 DESC, 1", values
        )
        return {str(name): cast(int, count) for name, count in rows}

    def _tag(self, key: int, tags: Sequence[str]) -> None:
        self._db.run_many("INSERT OR IGNORE INTO memory_tag VALUES (?, ?)", [(tag, key) for tag in tags])


_ORDER = {
    MemoryOrder.CREATED: "created",
    MemoryOrder.UPDATED: "updated",
    MemoryOrder.ACCESSED: "accessed",
    MemoryOrder.IMPORTANCE: "importance",
    MemoryOrder.CONFIDENCE: "confidence",
}
_GOLDEN = f"(type = '{GOLDEN_RULE}' OR confidence >= {GOLDEN_FROM})"


def _where(wanted: MemoryFilter) -> tuple[str, tuple[Value, ...]]:
    clauses: list[str] = []
    values: list[Value] = []
    for column, named in _named(wanted):
        if named:
            clauses.append(f"{column} IN ({','.join('?' * len(named))})")
            values += named
    for clause, needed, given in _limits(wanted):
        if needed:
            clauses.append(clause)
            values += given
    return " AND ".join(clauses) or "1", tuple(values)


def _named(wanted: MemoryFilter) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("state", wanted.states),
        ("namespace", wanted.namespaces),
        ("type", wanted.types),
        ("project", wanted.projects),
    )


def _limits(wanted: MemoryFilter) -> tuple[tuple[str, bool, tuple[Value, ...]], ...]:
    """Each further clause, whether it is needed, and its values."""
    tagged = f"item IN (SELECT memory FROM memory_tag WHERE tag IN ({','.join('?' * len(wanted.tags))}))"
    valid, at = "(valid_until IS NULL OR valid_until > ?) AND (valid_from IS NULL OR valid_from <= ?)", wanted.valid_at
    golden = _GOLDEN if wanted.protected else f"NOT {_GOLDEN}"
    return (
        (tagged, bool(wanted.tags), wanted.tags),
        ("importance >= ?", wanted.min_importance > 0, (wanted.min_importance,)),
        ("confidence >= ?", wanted.min_confidence > 0, (wanted.min_confidence,)),
        ("pinned = ?", wanted.pinned is not None, (int(bool(wanted.pinned)),)),
        (golden, wanted.protected is not None, ()),
        ("created < ?", wanted.created_before is not None, (wanted.created_before,)),
        (valid, at is not None, (at, at)),
    )


def verified(row: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return a memory's columns, read from a damaged page; None where its content does not have its SHA-256.

    Where another column cannot be decoded, all of them are those of a new memory with that content.
    """
    content = row["content"]
    if not isinstance(content, str) or sha256(content.encode("utf-8", "surrogatepass")).hexdigest() != row["hash"]:
        return None
    with suppress(ValueError, TypeError):
        if all(isinstance(value, str) != (name in _NUMBERS) for name, value in row.items()):
            _held(tuple(row[name] for name in _COLUMNS.split(", ")))
            return dict(row)
    memory = Memory(content)
    names = f"{_SAID}, family, hash, {_EARNED}, state, created, updated, rules, accesses, accessed, decayed".split(", ")
    at = row["updated"] if isinstance(row["updated"], int) else 0
    values = (
        *_said(memory),
        *_claim(memory, ""),
        *_earned(MemoryStats()),
        MemoryState.ACTIVE,
        at,
        at,
        "",
        0,
        None,
        None,
    )
    return {"item": row["item"], **dict(zip(names, values, strict=True))}


def decoded(row: Mapping[str, Value]) -> StoredMemory:
    """Return the memory that these columns are, as `checked` gave them."""
    return _held(tuple(row[name] for name in _COLUMNS.split(", ")))


def _said(memory: Memory) -> tuple[Value, ...]:
    return (
        memory.content,
        memory.type,
        memory.title,
        memory.namespace,
        memory.project,
        memory.level,
        memory.importance,
        orjson.dumps(memory.tags).decode(),
        orjson.dumps(memory.metadata, option=orjson.OPT_NON_STR_KEYS).decode(),
        memory.source,
        memory.origin,
        memory.session_id,
        memory.path,
        int(memory.pinned),
        memory.valid_from,
        memory.valid_until,
    )


def _claim(memory: Memory, promoted_from: str) -> tuple[Family, str]:
    return family_of(promoted_from or memory.type), memory.content_hash


def _earned(stats: MemoryStats) -> tuple[Value, ...]:
    return stats.confidence, stats.successes, stats.failures, stats.strikes, stats.promoted_from


def _held(row: Row) -> StoredMemory:
    content, kind, title, namespace, project, level, importance, tags, metadata = cast("_Words", row[1:10])
    source, origin, session_id, path, pinned, valid_from, valid_until = cast("_Terms", row[10:17])
    confidence, successes, failures, strikes, promoted_from = cast("_Earned", row[17:22])
    state, created, updated, accessed, accesses, decayed = cast("_Times", row[22:28])
    memory = Memory(
        content,
        kind,
        title,
        namespace,
        project,
        level,
        importance=importance,
        tags=tuple(orjson.loads(tags)),
        metadata=orjson.loads(metadata),
        source=source,
        origin=Origin(origin),
        session_id=session_id,
        path=path,
        pinned=bool(pinned),
        valid_from=valid_from,
        valid_until=valid_until,
    )
    return StoredMemory(
        key=cast(int, row[0]),
        memory=memory,
        stats=MemoryStats(confidence, successes, failures, strikes, promoted_from),
        state=MemoryState(state),
        created=created,
        updated=updated,
        accessed=accessed,
        accesses=accesses,
        decayed=decayed,
    )
