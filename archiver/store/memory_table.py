"""Tables of memories, their edges and events, and the state of memory files in projects.

- A memory is a statement that the user or an agent stored, one row each.
- An edge is a typed relation between two memories. Each pair has at most one edge of each type per direction.
- Events are, for example, recalls and outcomes. They are removed only when their memory is erased.
- Mnemonics are memory files in projects, with the state of each file at its last synchronisation.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from ...core.conversation import Milliseconds, Origin
from ...core.memory import (
    GOLDEN_FROM,
    GOLDEN_RULE,
    LEVEL_OF,
    PROJECT,
    Category,
    ContextLevel,
    Edge,
    EventKind,
    Family,
    Memory,
    MemoryEvent,
    MemoryFilter,
    MemoryOrder,
    MemoryState,
    MemoryStats,
    Relation,
    StoredMemory,
    category_of,
    families_of,
    family_of,
    level_of,
)
from .database import AMONG, Database, Row, Value, listed, placeholders

_EDGE_COLUMNS = "source, target, relation, weight, reason, inferred, proposed, id"
_ORPHANED = """WHERE state = 'active' AND (? IS NULL OR namespace = ?)
    AND NOT EXISTS (SELECT 1 FROM memory_edge WHERE source = item)
    AND NOT EXISTS (SELECT 1 FROM memory_edge WHERE target = item)"""


class MemoryEdgeTable:
    """Table of edges between memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, edge: Edge) -> Edge:
        """Store an edge, and return it with its ID. Update an existing edge with the same ends and relation."""
        self._db.run(
            """INSERT INTO memory_edge (source, target, relation, weight, reason, inferred, proposed)
               VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (source, target, relation) DO UPDATE SET weight = excluded.weight,
               reason = excluded.reason, inferred = excluded.inferred, proposed = excluded.proposed""",
            (edge.source, edge.target, edge.relation, edge.weight, edge.reason, int(edge.inferred), int(edge.proposed)),
        )
        key = (edge.source, edge.target, edge.relation)
        sql = "SELECT id FROM memory_edge WHERE source = ? AND target = ? AND relation = ?"
        return replace(edge, id=self._db.number(sql, key))

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete these edges."""
        self._db.run_many("DELETE FROM memory_edge WHERE id = ?", [(number,) for number in numbers])

    def load(self, number: int) -> Edge | None:
        """Return the edge with this ID."""
        row = self._db.one(f"SELECT {_EDGE_COLUMNS} FROM memory_edge WHERE id = ?", (number,))
        return _edge(row) if row else None

    def outgoing(self, memories: Sequence[int]) -> list[Edge]:
        """Return the edges that begin at these memories, in ID order."""
        return self._at("source", memories)

    def incoming(self, memories: Sequence[int]) -> list[Edge]:
        """Return the edges that end at these memories, in ID order."""
        return self._at("target", memories)

    def contradictions(self) -> list[Edge]:
        """Return the edges which state that two active memories cannot both be true, in ID order.

        These are `contradicts` edges and proposed `supersedes` edges.
        """
        rows = self._db.rows(
            f"""SELECT {_EDGE_COLUMNS} FROM memory_edge WHERE (relation = ? OR proposed)
                AND source IN (SELECT item FROM memory WHERE state = 'active')
                AND target IN (SELECT item FROM memory WHERE state = 'active') ORDER BY id""",
            (Relation.CONTRADICTS,),
        )
        return [_edge(row) for row in rows]

    def successors(self) -> dict[int, int]:
        """Return, for each superseded memory, the memory that superseded it last."""
        rows = self._db.rows(
            """SELECT target, source FROM memory_edge WHERE relation = ? AND NOT proposed
               AND source IN (SELECT item FROM memory WHERE state <> 'archived') ORDER BY id""",
            (Relation.SUPERSEDES,),
        )
        return dict(rows)

    def orphans(self, namespace: str | None, after: int, limit: int) -> list[int]:
        """Return active memories without edges and with a key above `after`, in ascending order."""
        return self._db.numbers(
            f"SELECT item FROM memory {_ORPHANED} AND item > ? ORDER BY item LIMIT ?",
            (namespace, namespace, after, limit),
        )

    def count_orphans(self, namespace: str | None) -> int:
        """Count the active memories without edges."""
        return self._db.number(f"SELECT count(*) FROM memory {_ORPHANED}", (namespace, namespace))

    def _at(self, end: str, memories: Sequence[int]) -> list[Edge]:
        rows = self._db.rows(
            f"SELECT {_EDGE_COLUMNS} FROM memory_edge WHERE {end} {AMONG} ORDER BY id", (listed(memories),)
        )
        return [_edge(row) for row in rows]


def _edge(row: Row) -> Edge:
    source, target, relation, weight, reason, inferred, proposed, number = row
    return Edge(source, target, Relation(relation), weight, reason, bool(inferred), bool(proposed), number)


_EVENT_COLUMNS = "memory, kind, at, context, session_id, before, id"


class MemoryEventTable:
    """Table of the events in the history of memories, such as edits and recalls."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, event: MemoryEvent) -> int:
        """Store an event, and return its ID."""
        return self._db.run(
            "INSERT INTO memory_event (memory, kind, at, context, session_id, before) VALUES (?, ?, ?, ?, ?, ?)",
            (event.memory, event.kind, event.at, event.context, event.session_id, event.before),
        )

    def redact(self, event: MemoryEvent) -> None:
        """Replace the texts of a stored event because they contained a secret."""
        self._db.run(
            "UPDATE memory_event SET context = ?, session_id = ?, before = ? WHERE id = ?",
            (event.context, event.session_id, event.before, event.id),
        )

    def of(self, memory: int, kinds: Sequence[EventKind] = (), limit: int = -1) -> list[MemoryEvent]:
        """Return the events of a memory, newest first. If `kinds` is not empty, return only events of these kinds."""
        where = f" AND kind IN ({placeholders(kinds)})" if kinds else ""
        rows = self._db.rows(
            f"SELECT {_EVENT_COLUMNS} FROM memory_event WHERE memory = ?{where} ORDER BY id DESC LIMIT ?",
            (memory, *kinds, limit),
        )
        return [MemoryEvent(memory, EventKind(kind), *values) for memory, kind, *values in rows]

    def in_context(self, context: str, kind: EventKind) -> list[int]:
        """Return the keys of memories that have an event of this kind whose `context` is exactly this text."""
        return self._db.numbers(
            "SELECT DISTINCT memory FROM memory_event WHERE context = ? AND kind = ?", (context, kind)
        )

    def count(self, memory: int) -> dict[EventKind, int]:
        """Return the number of events of each kind for a memory."""
        rows = self._db.rows("SELECT kind, count(*) FROM memory_event WHERE memory = ? GROUP BY kind", (memory,))
        return {EventKind(kind): count for kind, count in rows}

    def successful_sessions(self, memory: int) -> int:
        """Count the archived sessions that reported a success of a memory. Unknown session IDs are ignored."""
        return self._db.number(
            """SELECT count(DISTINCT session_id) FROM memory_event WHERE memory = ? AND kind = 'succeeded'
               AND session_id IN (SELECT native_id FROM session)""",
            (memory,),
        )

    def memories_with(self, kind: EventKind) -> set[int]:
        """Return the keys of all memories that have an event of this kind."""
        return set(self._db.numbers("SELECT DISTINCT memory FROM memory_event WHERE kind = ?", (kind,)))

    def last_validated(self, memories: Iterable[int]) -> dict[int, int]:
        """Return the time of the last event `applied`, `succeeded` or `failed` of each memory.

        Memories without such an event are omitted.
        """
        return dict(
            self._db.rows(
                f"""SELECT memory, max(at) FROM memory_event WHERE memory {AMONG}
                    AND kind IN ('applied', 'succeeded', 'failed') GROUP BY memory""",
                (listed(memories),),
            )
        )


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
        filters: MemoryFilter,
        order: MemoryOrder = MemoryOrder.CREATED,
        *,
        descending: bool = True,
        limit: int = -1,
        offset: int = 0,
    ) -> list[StoredMemory]:
        """Return the memories that satisfy a filter, sorted by `order` and then by key."""
        way = "DESC" if descending else "ASC"
        sorted_by = f"ORDER BY {_ORDER[order]} {way}, item {way} LIMIT ?"
        parts = _parts(filters) if limit >= 0 else [filters]
        values: list[Value] = []
        selects: list[str] = []
        for part in parts:
            where, given = _where(part)
            selects.append(f"SELECT * FROM ({_SELECT} WHERE {where} {sorted_by})")
            values += [*given, limit + offset if limit >= 0 else -1]
        every = " UNION ALL ".join(selects)
        rows = self._db.rows(f"SELECT * FROM ({every}) {sorted_by} OFFSET ?", (*values, limit, offset))
        return [_stored(row) for row in rows]

    def count(self, filters: MemoryFilter) -> int:
        """Count the memories that satisfy a filter."""
        where, values = _where(replace(filters, valid_at=None))
        every = f"SELECT count(*) FROM memory WHERE {where}"
        if (at := filters.valid_at) is None:
            return self._db.number(every, values)
        termed = "memory INDEXED BY memory_term WHERE (valid_until IS NOT NULL OR valid_from IS NOT NULL)"
        invalid = f"SELECT count(*) FROM {termed} AND (valid_until <= ? OR valid_from > ?) AND {where}"
        return self._db.number(f"SELECT ({every}) - ({invalid})", (*values, at, at, *values))

    def count_by(self, column: str, filters: MemoryFilter) -> dict[str, int]:
        """Count the memories of each `namespace`, `type`, `level`, `project` or `state`, the most frequent first."""
        assert column in {"namespace", "type", "level", "project", "state"}
        where, values = _where(filters)
        return dict(
            self._db.rows(
                f"SELECT {column}, count(*) FROM memory WHERE {where} GROUP BY {column} ORDER BY 2 DESC, 1", values
            )
        )

    def count_kinds(self, filters: MemoryFilter) -> list[tuple[Category, ContextLevel, int]]:
        """Count the memories that satisfy a filter for each pair of category and context level."""
        where, values = _where(filters)
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


def _parts(filters: MemoryFilter) -> list[MemoryFilter]:
    """Split a filter into filters with a single state and namespace, which together match the same memories.

    For a single state and namespace, an index yields the rows in order, so SQLite reads only the first rows. For
    several values, SQLite would read and sort all rows.
    """
    namespaces: list[tuple[str, ...]] = [(name,) for name in dict.fromkeys(filters.namespaces)] or [()]
    states: list[tuple[MemoryState, ...]] = [(state,) for state in dict.fromkeys(filters.states)] or [()]
    if len(namespaces) * len(states) > _PARTS_MAX:
        return [filters]
    return [replace(filters, states=state, namespaces=name) for state in states for name in namespaces]


def _where(filters: MemoryFilter) -> tuple[str, tuple[Value, ...]]:
    clauses: list[str] = []
    values: list[Value] = []
    columns = {"state": filters.states, "namespace": filters.namespaces, "type": filters.types}
    for column, named in columns.items():
        if named:
            clauses.append(f"{column} IN ({placeholders(named)})")
            values += named
    for clause, needed, clause_values in _limits(filters):
        if needed:
            clauses.append(clause)
            values += clause_values
    return " AND ".join(clauses) or "1", tuple(values)


def _in_categories(categories: Sequence[Category]) -> tuple[str, tuple[Value, ...]]:
    """Return an SQL condition for memories of these categories, and the values of its parameters."""
    families = [family for category in categories for family in families_of(category)]
    clause = f"""(type IN ({placeholders(categories)})
        OR type NOT IN ({placeholders(Category)}) AND family IN ({placeholders(families)}))"""
    return clause, (*categories, *Category, *families)


def _in_levels(levels: Sequence[ContextLevel]) -> tuple[str, tuple[Value, ...]]:
    """Return an SQL condition for memories of these context levels, and the values of its parameters."""
    default, values = _in_categories([category for category, level in LEVEL_OF.items() if level in levels])
    clause = f"(level IN ({placeholders(levels)}) OR level NOT IN ({placeholders(ContextLevel)}) AND {default})"
    return clause, (*levels, *ContextLevel, *values)


def _limits(filters: MemoryFilter) -> tuple[tuple[str, bool, tuple[Value, ...]], ...]:
    """Return triples for the optional SQL clauses of a filter: the clause, whether it applies, and its values."""
    tagged = f"item IN (SELECT memory FROM memory_tag WHERE tag IN ({placeholders(filters.tags)}))"
    valid, at = "(valid_until IS NULL OR valid_until > ?) AND (valid_from IS NULL OR valid_from <= ?)", filters.valid_at
    golden = _GOLDEN if filters.protected else f"NOT {_GOLDEN}"
    (categories, of_categories), (levels, of_levels) = _in_categories(filters.categories), _in_levels(filters.levels)
    named = f"(namespace GLOB '{PROJECT}*' OR project IN ({placeholders(filters.projects)}))"
    return (
        (named, bool(filters.projects), filters.projects),
        (categories, bool(filters.categories), of_categories),
        (levels, bool(filters.levels), of_levels),
        (tagged, bool(filters.tags), filters.tags),
        ("importance >= ?", filters.min_importance > 0, (filters.min_importance,)),
        ("confidence >= ?", filters.min_confidence > 0, (filters.min_confidence,)),
        ("pinned = ?", filters.pinned is not None, (int(bool(filters.pinned)),)),
        (golden, filters.protected is not None, ()),
        ("created < ?", filters.created_before is not None, (filters.created_before,)),
        ("created >= ?", filters.created_from is not None, (filters.created_from,)),
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
    defaults = {"item": key, "state": MemoryState.ACTIVE, "created": at, "updated": at, "accesses": 0, "rules": ""}
    return _values(memory, MemoryStats()) | defaults


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


class MirroredFile(Struct, frozen=True):
    """State of a memory file and its memory when they were last synchronised.

    `digest` is computed from the bytes of the file, and `content_hash` from the content of the memory. `declared` is
    the memory type that the file declares. `memory` is None if the memory was erased. `gone` is true if the file was
    deleted.
    """

    path: str
    memory: int | None
    digest: str
    content_hash: str
    declared: str = ""
    created: str = ""
    gone: bool = False


class MnemonicTable:
    """Table of mirrored files, by absolute path."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def allowed(self) -> list[str]:
        """Return the folders whose memory files the user trusts."""
        return [row[0] for row in self._db.rows("SELECT path FROM trusted_folder ORDER BY path")]

    def allow(self, folder: str) -> None:
        """Trust the memory files in a folder, including files that appear later."""
        self._db.run("INSERT OR IGNORE INTO trusted_folder VALUES (?)", (folder,))
        self._change_origin(folder, Origin.EXTERNAL, Origin.DOCUMENT)

    def disallow(self, folder: str) -> None:
        """Stop trusting the memory files in a folder."""
        self._db.run("DELETE FROM trusted_folder WHERE path = ?", (folder,))
        self._change_origin(folder, Origin.DOCUMENT, Origin.EXTERNAL)

    def _change_origin(self, folder: str, before: Origin, after: Origin) -> None:
        self._db.run(
            "UPDATE memory SET origin = ? WHERE origin = ? AND path >= ? AND path < ?", (after, before, *_range(folder))
        )

    def below(self, folder: str) -> dict[str, MirroredFile]:
        """Return the mirrored files below a folder, in path order."""
        rows = self._db.rows(
            """SELECT path, memory, digest, content_hash, declared, created, gone FROM mnemonic
               WHERE path >= ? AND path < ? ORDER BY path""",
            _range(folder),
        )
        files = (MirroredFile(*row) for row in rows)
        return {file.path: replace(file, gone=bool(file.gone)) for file in files}

    def put(self, mirrored: MirroredFile) -> None:
        """Store the state of a file, or replace its stored state."""
        file = mirrored
        self._db.run(
            "INSERT OR REPLACE INTO mnemonic VALUES (?, ?, ?, ?, ?, ?, ?)",
            (file.path, file.memory, file.digest, file.content_hash, file.declared, file.created, int(file.gone)),
        )

    def rehash(self, memory: int, before: str, after: str) -> None:
        """Record the new content hash of a redacted memory, so that the memory does not count as edited."""
        self._db.run(
            "UPDATE mnemonic SET content_hash = ? WHERE memory = ? AND content_hash = ?", (after, memory, before)
        )

    def drop(self, path: str) -> None:
        """Delete the record of a file."""
        self._db.run("DELETE FROM mnemonic WHERE path = ?", (path,))


def _range(folder: str) -> tuple[str, str]:
    """Return the first path below a folder, and the first path that sorts after all paths below it."""
    plain = folder.rstrip("/")
    return f"{plain}/", f"{plain}0"
