"""Rows of memories in replies: one set of fields, which each toolset shows under the names of its specification.

The toolsets rag and fabric show UUIDs of memories instead of IDs such as `mem_7`, which they also accept.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from msgspec import Struct

from ..core import ids
from ..core.conversation import Milliseconds, Trust, show_instant, show_millisecond
from ..core.errors import InvalidInput, MemoryNotFound
from ..core.memory import MemoryState, StoredMemory
from ..observe.memory import MemoryCore
from ..templates.quote import clean
from .toolset import Rows

_VERSION: Final = 8 << 76
"""Version of UUIDs with a custom layout (RFC 9562, section 5.8)."""
_VARIANT: Final = 2 << 62
_KEY: Final = (1 << 62) - 1


def uuid_of(stored: StoredMemory) -> str:
    """Return the UUID of a memory: 48 bits of its creation time in milliseconds, and 62 bits of its key."""
    return str(UUID(int=(stored.created & (1 << 48) - 1) << 80 | _VERSION | _VARIANT | stored.key & _KEY))


def find_by_uuid(core: MemoryCore, memory_id: str) -> StoredMemory:
    """Return the memory with this UUID or public ID, even if it is forgotten.

    Raises:
        MemoryNotFound: No memory has this ID.
        InvalidInput: The text is neither a UUID nor a public ID.
    """
    if ids.canonical(memory_id):
        return core.get(memory_id)
    try:
        uuid = UUID(memory_id)
    except ValueError:
        raise InvalidInput("memory_id must be a UUID", hint="Use a memory_id from a reply of this server.") from None
    stored = core.get(ids.show("memory", uuid.int & _KEY))
    if uuid_of(stored) != str(uuid):
        raise MemoryNotFound(memory_id)
    return stored


def instant(at: Milliseconds | None) -> str | None:
    """Return a time as ISO 8601, such as 2026-01-26T12:00:00Z, or None if there is no time."""
    return None if at is None else show_instant(at)


def rounded(similarity: float | None) -> float | None:
    """Return the similarity rounded to four decimals, or None if there is none."""
    return None if similarity is None else round(similarity, 4)


class _Row(Struct):
    """Memory with the memories that superseded it, and those that are proposed to supersede it."""

    stored: StoredMemory
    newer: list[StoredMemory] = []
    proposed: list[StoredMemory] = []

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the memory, including tags, title, source, project path and weight."""
        memory = self.stored.memory
        texts = {"title": memory.title, "source": memory.source, "projectPath": memory.project}
        present = {name: text for name, text in texts.items() if text}
        return {**memory.metadata, "tags": list(memory.tags), **present, "weight": memory.weight}


_FIELDS: Final[Mapping[str, Callable[[_Row], object]]] = {
    "id": lambda row: row.stored.id,
    "uuid": lambda row: uuid_of(row.stored),
    "content": lambda row: clean(row.stored.memory.content),
    "type": lambda row: row.stored.memory.type,
    "category": lambda row: row.stored.category,
    "level": lambda row: row.stored.level,
    "namespace": lambda row: row.stored.memory.namespace,
    "confidence": lambda row: row.stored.stats.confidence,
    "importance": lambda row: row.stored.memory.importance,
    "origin": lambda row: row.stored.memory.origin,
    "tags": lambda row: list(row.stored.memory.tags),
    "pinned": lambda row: row.stored.memory.pinned,
    "accesses": lambda row: row.stored.accesses,
    "metadata": lambda row: row.stored.memory.metadata,
    "full_metadata": lambda row: row.metadata,
    "created": lambda row: instant(row.stored.created),
    "created_exact": lambda row: show_millisecond(row.stored.created),
    "created_ms": lambda row: row.stored.created,
    "updated": lambda row: instant(row.stored.updated),
    "updated_exact": lambda row: show_millisecond(row.stored.updated),
    "updated_ms": lambda row: row.stored.updated,
    "accessed": lambda row: instant(row.stored.accessed),
    "path": lambda row: clean(row.stored.memory.path),
    "untrusted": lambda row: row.stored.memory.origin.trust is Trust.LOW,
    "superseded": lambda row: row.stored.state is MemoryState.SUPERSEDED,
    "superseded_by": lambda row: [newer.id for newer in row.newer],
    "superseded_by_uuids": lambda row: (
        row.stored.state is MemoryState.SUPERSEDED and [uuid_of(newer) for newer in row.newer]
    ),
    "proposed_superseded_by": lambda row: [newer.id for newer in row.proposed],
}
_OF_EDGES: Final = frozenset({"superseded_by", "superseded_by_uuids", "proposed_superseded_by"})
_OPTIONAL: Final = _OF_EDGES | {"path", "untrusted", "superseded"}
"""Fields that a row omits if their value is false or empty."""

Names: TypeAlias = Mapping[str, str]
"""Field of a memory for each name in a row of a toolset."""

SUPERSEDED: Final[Names] = {"superseded_by": "superseded_by", "proposed_superseded_by": "proposed_superseded_by"}
HISTORIAN_ROW: Final[Names] = {**SUPERSEDED, "untrusted": "untrusted"}
THEO_ROW: Final[Names] = {
    "id": "id",
    "content": "content",
    "memory_type": "type",
    "namespace": "namespace",
    "confidence": "confidence",
    "importance": "importance",
    "untrusted": "untrusted",
    "origin": "origin",
    **SUPERSEDED,
}
THEO_LIST_ROW: Final[Names] = {
    **THEO_ROW,
    "created_at": "created",
    "updated_at": "updated",
    "accessed_at": "accessed",
    "metadata": "metadata",
}
THEO_METADATA: Final[Names] = {
    "memory_type": "type",
    "confidence": "confidence",
    "importance": "importance",
    "source_file": "path",
    **SUPERSEDED,
}
"""Names below `metadata` of a search result."""
RAG_ROW: Final[Names] = {
    "memory_id": "uuid",
    "content": "content",
    "category": "category",
    "context_level": "level",
    "importance": "importance",
    "created_at": "created",
    "untrusted": "untrusted",
    "superseded_by": "superseded_by_uuids",
}
FABRIC_DATED_ROW: Final[Names] = {
    "id": "uuid",
    "type": "type",
    "content": "content",
    "metadata": "full_metadata",
    "createdAt": "created_exact",
    "updatedAt": "updated_exact",
    "untrusted": "untrusted",
    "superseded": "superseded",
}
FABRIC_ROW: Final[Names] = {
    "id": "uuid",
    "type": "type",
    "content": "content",
    "metadata": "full_metadata",
    "tags": "tags",
    "pinned": "pinned",
    "createdAt": "created_ms",
    "updatedAt": "updated_ms",
    "accessCount": "accesses",
    "untrusted": "untrusted",
    "superseded": "superseded",
}


def memory_rows(core: MemoryCore, memories: Sequence[StoredMemory], names: Names) -> Rows:
    """Return a row for each memory, with the fields of a toolset under its names."""
    rows = {stored.key: _Row(stored) for stored in memories}
    if memories and not _OF_EDGES.isdisjoint(names.values()):
        edges = core.superseding(memories)
        newer = core.store.memories.load([edge.source for edge in edges])
        for edge in edges:
            row = rows[edge.target]
            (row.proposed if edge.proposed else row.newer).append(newer[edge.source])
    return [_named(rows[stored.key], names) for stored in memories]


def memory_row(core: MemoryCore, stored: StoredMemory, names: Names) -> dict[str, Any]:
    """Return the row of one memory."""
    return memory_rows(core, [stored], names)[0]


def _named(row: _Row, names: Names) -> dict[str, Any]:
    values = {name: _FIELDS[field](row) for name, field in names.items()}
    return {name: value for name, value in values.items() if value or names[name] not in _OPTIONAL}
