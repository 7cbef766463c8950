"""Memories: statements that the user or an agent stored, one row each."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import asdict, replace

from ...core.context_level import LEVEL_OF, Category, ContextLevel, category_of, families_of, level_of
from ...core.conversation import Milliseconds
from ...core.memory import GOLDEN_FROM, PROJECT, Memory, MemoryState, MemoryStats, StoredMemory
from ...core.memory_filter import MemoryFilter, MemoryOrder
from ...core.memory_types import GOLDEN_RULE, Family, family_of
from ...core.origin import Origin
from .database import AMONG, Database, Row, Value, listed, placeholders

_MEMORY: Final = Memory.__struct_fields__
_STATS: Final = MemoryStats.__struct_fields__
_REST: Final = ("item", "state", "created", "updated", "accessed", "accesses", "decayed")
_COLUMNS: Final = (*_MEMORY, *_STATS, *_REST)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM memory"

_ORDER: Final = {
    MemoryOrder.CREATED: "created",
    MemoryOrder.UPDATED: "updated",
    MemoryOrder.ACCESSED: "accessed",
    MemoryOrder.IMPORTANCE: "importance",
    MemoryOrder.CONFIDENCE: "confidence",
}
_PARTS_MAX: Final = 12
"""Maximum number of filters into which `_parts` splits one filter."""
_GOLDEN: Final = f"(type = '{GOLDEN_RULE}' OR confidence >= {GOLDEN_FROM})"


class MemoryTable:
    """Table of memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def insert(self, memory: Memory, at: Milliseconds, rules: str = "") -> int:
        """Store a new memory, and return its key.

        `rules` is the version of the redaction rules with which the memory was redacted.
        """
        key = self._db.run("INSERT INTO item (kind, at) VALUES ('memory', ?)", (at,))
        self._db.insert("memory", _new(key, memory, at) | {"rules": rules})
        self._tag(key, memory.tags)
        return key

    def rewrite(self, stored: StoredMemory) -> None:
        """Replace a stored memory and its statistics. If the text changed, the memory is embedded again."""
        before, memory = self.load([stored.key])[stored.key].memory, stored.memory
        rest = {name: getattr(stored, name) for name in ("state", "updated", "accessed", "accesses", "decayed")}
        self._db.update("memory", "item", stored.key, _values(memory, stored.stats) | rest)
        if before.tags != memory.tags:
            self._db.run("DELETE FROM memory_tag WHERE memory = ?", (stored.key,))
            self._tag(stored.key, memory.tags)
        if (before.title, before.content) != (memory.title, memory.content):
            self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (stored.key,))

    def save_stats(self, key: int, stats: MemoryStats, decayed: Milliseconds | None = None) -> None:
        """Replace the statistics of a memory. Statistics are not indexed, so the change is not logged."""
        times: dict[str, Value] = {} if decayed is None else {"decayed": decayed}
        self._db.update("memory", "item", key, asdict(stats) | times)

    def touch(self, keys: Iterable[int], at: Milliseconds) -> None:
        """Record a recall of each memory at the time `at`.

        The number and the time of recalls are not indexed, so the change is not logged.
        """
        self._db.run_many(
            "UPDATE memory SET accessed = ?, accesses = accesses + 1 WHERE item = ?", [(at, key) for key in keys]
        )

    def delete(self, keys: Sequence[int]) -> None:
        """Delete memories with their events and their edges."""
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in keys])

    def load(self, keys: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the memories with these keys, in any state. Unknown keys and damaged memories are omitted."""
        rows = self._db.rows_among(f"{_SELECT} WHERE item {AMONG}", keys)
        found: dict[int, StoredMemory] = {}
        for row in rows:
            try:
                stored = _stored(row)
            except ValueError:  # An overflow page full of zeros, with a valid checksum, produces invalid JSON.
                self._db.unreadable.add(row[_COLUMNS.index("item")])
            else:
                found[stored.key] = stored
        return found

    def all(self) -> list[StoredMemory]:
        """Return every memory, in any state, in key order."""
        return [_stored(row) for row in self._db.rows(f"{_SELECT} ORDER BY item")]

    def to_redact(self, rules: str, limit: int) -> list[int]:
        """Return the keys of memories not yet redacted with this version of the rules, in ascending order."""
        return self._db.numbers("SELECT item FROM memory WHERE rules != ? ORDER BY item LIMIT ?", (rules, limit))

    def mark_redacted(self, keys: Iterable[int], rules: str) -> None:
        """Record that these memories were redacted with this version of the rules."""
        self._db.run_many("UPDATE memory SET rules = ? WHERE item = ?", [(rules, key) for key in keys])

    def previews(self, keys: Sequence[int], length: int) -> dict[int, tuple[str, str]]:
        """Return the type and the first `length` characters of the content of each memory."""
        rows = self._db.rows(
            f"SELECT item, type, substr(content, 1, ?) FROM memory WHERE item {AMONG}", (length, listed(keys))
        )
        return {key: (kind, text) for key, kind, text in rows}

    def find_same(self, memory: Memory, promoted_from: str = "", *, superseded: bool = False) -> int | None:
        """Return the key of an active memory with the same content and namespace, and a type of the same family.

        If `promoted_from` is not empty, this type is compared instead of the type of `memory`. With `superseded`,
        return a superseded memory if no active memory matches. Memories that are mirrored from files are ignored.
        Return None if there is no such memory, or if `memory` itself is mirrored from a file.
        """
        if memory.path:
            return None
        same = (memory.namespace, family_of(promoted_from or memory.type), memory.content_hash)
        # Two queries, because no index serves a condition for both states.
        for state in ("active", "superseded") if superseded else ("active",):
            row = self._db.one(
                f"""SELECT item FROM memory WHERE namespace = ? AND family = ? AND hash = ? AND path = ''
                    AND state = '{state}' ORDER BY item DESC LIMIT 1""",
                same,
            )
            if row:
                return int(row[0])
        return None

    def at_path(self, path: str) -> int | None:
        """Return the key of the active memory that is mirrored from this file."""
        row = self._db.one("SELECT item FROM memory WHERE path = ? AND path != '' AND state = 'active'", (path,))
        return row[0] if row else None

    def select(
        self,
        wanted: MemoryFilter,
        order: MemoryOrder = MemoryOrder.CREATED,
        *,
        descending: bool = True,
        limit: int = -1,
        offset: int = 0,
    ) -> list[StoredMemory]:
        """Return the memories that satisfy a filter, sorted by `order` and then by key."""
        way = "DESC" if descending else "ASC"
        sorted_by = f"ORDER BY {_ORDER[order]} {way}, item {way} LIMIT ?"
        parts = _parts(wanted) if limit >= 0 else [wanted]
        values: list[Value] = []
        selects: list[str] = []
        for part in parts:
            where, given = _where(part)
            selects.append(f"SELECT * FROM ({_SELECT} WHERE {where} {sorted_by})")
            values += [*given, limit + offset if limit >= 0 else -1]
        every = " UNION ALL ".join(selects)
        rows = self._db.rows(f"SELECT * FROM ({every}) {sorted_by} OFFSET ?", (*values, limit, offset))
        return [_stored(row) for row in rows]

    def count(self, wanted: MemoryFilter) -> int:
        """Count the memories that satisfy a filter."""
        where, values = _where(replace(wanted, valid_at=None))
        every = f"SELECT count(*) FROM memory WHERE {where}"
        if (at := wanted.valid_at) is None:
            return self._db.number(every, values)
        termed = "memory INDEXED BY memory_term WHERE (valid_until IS NOT NULL OR valid_from IS NOT NULL)"
        invalid = f"SELECT count(*) FROM {termed} AND (valid_until <= ? OR valid_from > ?) AND {where}"
        return self._db.number(f"SELECT ({every}) - ({invalid})", (*values, at, at, *values))

    def count_by(self, column: str, wanted: MemoryFilter) -> dict[str, int]:
        """Count the memories of each `namespace`, `type`, `level`, `project` or `state`, the most frequent first."""
        assert column in {"namespace", "type", "level", "project", "state"}
        where, values = _where(wanted)
        return dict(
            self._db.rows(
                f"SELECT {column}, count(*) FROM memory WHERE {where} GROUP BY {column} ORDER BY 2 DESC, 1", values
            )
        )

    def count_kinds(self, wanted: MemoryFilter) -> list[tuple[Category, ContextLevel, int]]:
        """Count the memories that satisfy a filter for each pair of category and context level."""
        where, values = _where(wanted)
        rows = self._db.rows(
            f"SELECT type, family, level, count(*) FROM memory WHERE {where} GROUP BY type, family, level", values
        )
        return [
            (category, level_of(level, category), number)
            for memory_type, family, level, number in rows
            for category in [category_of(memory_type, Family(family))]
        ]

    def _tag(self, key: int, tags: Sequence[str]) -> None:
        self._db.run_many("INSERT OR IGNORE INTO memory_tag VALUES (?, ?)", [(tag, key) for tag in tags])


def _parts(wanted: MemoryFilter) -> list[MemoryFilter]:
    """Split a filter into filters with a single state and namespace, which together match the same memories.

    For a single state and namespace, an index yields the rows in order, so SQLite reads only the first rows. For
    several values, SQLite would read and sort all rows.
    """
    namespaces: list[tuple[str, ...]] = [(name,) for name in dict.fromkeys(wanted.namespaces)] or [()]
    states: list[tuple[MemoryState, ...]] = [(state,) for state in dict.fromkeys(wanted.states)] or [()]
    if len(namespaces) * len(states) > _PARTS_MAX:
        return [wanted]
    return [replace(wanted, states=state, namespaces=name) for state in states for name in namespaces]


def _where(wanted: MemoryFilter) -> tuple[str, tuple[Value, ...]]:
    clauses: list[str] = []
    values: list[Value] = []
    columns = {"state": wanted.states, "namespace": wanted.namespaces, "type": wanted.types}
    for column, named in columns.items():
        if named:
            clauses.append(f"{column} IN ({placeholders(named)})")
            values += named
    for clause, needed, given in _limits(wanted):
        if needed:
            clauses.append(clause)
            values += given
    return " AND ".join(clauses) or "1", tuple(values)


def _in_categories(categories: Sequence[Category]) -> tuple[str, tuple[Value, ...]]:
    """Return an SQL condition for memories of these categories, and the values of its parameters."""
    families = [family for category in categories for family in families_of(category)]
    clause = f"""(type IN ({placeholders(categories)})
        OR type NOT IN ({placeholders(Category)}) AND family IN ({placeholders(families)}))"""
    return clause, (*categories, *Category, *families)


def _in_levels(levels: Sequence[ContextLevel]) -> tuple[str, tuple[Value, ...]]:
    """Return an SQL condition for memories of these context levels, and the values of its parameters."""
    default, values = _in_categories([each for each, level in LEVEL_OF.items() if level in levels])
    clause = f"(level IN ({placeholders(levels)}) OR level NOT IN ({placeholders(ContextLevel)}) AND {default})"
    return clause, (*levels, *ContextLevel, *values)


def _limits(wanted: MemoryFilter) -> tuple[tuple[str, bool, tuple[Value, ...]], ...]:
    """Return triples for the optional SQL clauses of a filter: the clause, whether it applies, and its values."""
    tagged = f"item IN (SELECT memory FROM memory_tag WHERE tag IN ({placeholders(wanted.tags)}))"
    valid, at = "(valid_until IS NULL OR valid_until > ?) AND (valid_from IS NULL OR valid_from <= ?)", wanted.valid_at
    golden = _GOLDEN if wanted.protected else f"NOT {_GOLDEN}"
    (categories, of_categories), (levels, of_levels) = _in_categories(wanted.categories), _in_levels(wanted.levels)
    named = f"(namespace GLOB '{PROJECT}*' OR project IN ({placeholders(wanted.projects)}))"
    return (
        (named, bool(wanted.projects), wanted.projects),
        (categories, bool(wanted.categories), of_categories),
        (levels, bool(wanted.levels), of_levels),
        (tagged, bool(wanted.tags), wanted.tags),
        ("importance >= ?", wanted.min_importance > 0, (wanted.min_importance,)),
        ("confidence >= ?", wanted.min_confidence > 0, (wanted.min_confidence,)),
        ("pinned = ?", wanted.pinned is not None, (int(bool(wanted.pinned)),)),
        (golden, wanted.protected is not None, ()),
        ("created < ?", wanted.created_before is not None, (wanted.created_before,)),
        ("created >= ?", wanted.created_from is not None, (wanted.created_from,)),
        (valid, at is not None, (at, at)),
    )


def verified(row: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return the columns of a memory read from a damaged page, or None if its content does not match its SHA-256.

    If another column is damaged, combine the content with the default values of a new memory.
    """
    content = row["content"]
    if not isinstance(content, str) or sha256(content.encode("utf-8", "surrogatepass")).hexdigest() != row["hash"]:
        return None
    with suppress(ValueError, TypeError):
        msgspec.convert(msgspec.to_builtins(decoded(row)), StoredMemory)
        return dict(row)
    updated = row["updated"]
    return {**dict.fromkeys(row), **_new(row["item"], Memory(content), updated if isinstance(updated, int) else 0)}


def decoded(row: Mapping[str, Value]) -> StoredMemory:
    """Create a memory from its columns."""
    return _stored(tuple(row[name] for name in _COLUMNS))


def _new(key: Value, memory: Memory, at: Milliseconds) -> dict[str, Value]:
    rest = {"item": key, "state": MemoryState.ACTIVE, "created": at, "updated": at, "accesses": 0, "rules": ""}
    return _values(memory, MemoryStats()) | rest


def _values(memory: Memory, stats: MemoryStats) -> dict[str, Value]:
    encoded: dict[str, Value] = {
        "tags": orjson.dumps(memory.tags).decode(),
        "metadata": orjson.dumps(memory.metadata, option=orjson.OPT_NON_STR_KEYS).decode(),
        "family": family_of(stats.promoted_from or memory.type),
        "hash": memory.content_hash,
    }
    return asdict(memory) | encoded | asdict(stats)


def _stored(row: Row) -> StoredMemory:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    decoded: dict[str, Any] = {
        "tags": tuple(orjson.loads(values["tags"])),
        "metadata": orjson.loads(values["metadata"]),
        "origin": Origin(values["origin"]),
        "pinned": bool(values["pinned"]),
    }
    memory = Memory(**{name: values[name] for name in _MEMORY} | decoded)
    stats = MemoryStats(**{name: values[name] for name in _STATS})
    key, state, *times = (values[name] for name in _REST)
    return StoredMemory(key, memory, stats, MemoryState(state), *times)
