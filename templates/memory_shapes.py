"""The JSON of memories that callers may rely on. Keys are only ever added."""

from collections.abc import Mapping
from typing import Any, TypedDict

from ..core.clock import show_minute
from ..core.memory import Edge, MemoryEvent, StoredMemory
from .quote import clean


class MemoryJson(TypedDict):
    """A memory. Dates are YYYY-MM-DD HH:MM in UTC, or None; `state` is active, superseded or archived."""

    id: str
    content: str
    title: str
    type: str
    promoted_from: str
    namespace: str
    project: str
    layer: int
    importance: float
    confidence: float
    protected: bool
    successes: int
    failures: int
    tags: list[str]
    metadata: Mapping[str, Any]
    source: str
    origin: str
    pinned: bool
    state: str
    valid_from: str | None
    valid_until: str | None
    created: str
    updated: str
    accessed: str | None
    accesses: int


class MemoryEventJson(TypedDict):
    """Something that happened to a memory. `before` is what it said until then, as JSON, or empty."""

    id: int
    event: str
    date: str
    context: str
    session_id: str
    before: str


class EdgeJson(TypedDict):
    """Edge between two memories. A `proposed` one supersedes nothing until `supersedes` is drawn by hand."""

    id: int
    source: str
    target: str
    relation: str
    weight: float
    reason: str
    proposed: bool


def memory_json(held: StoredMemory) -> MemoryJson:
    """A memory as JSON."""
    memory, stats = held.memory, held.stats
    return MemoryJson(
        id=held.id,
        content=clean(memory.content),
        title=clean(memory.title),
        type=memory.type,
        promoted_from=stats.promoted_from,
        namespace=memory.namespace,
        project=clean(memory.project),
        layer=memory.layer,
        importance=memory.importance,
        confidence=stats.confidence,
        protected=held.protected,
        successes=stats.successes,
        failures=stats.failures,
        tags=[clean(tag) for tag in memory.tags],
        metadata=memory.metadata,
        source=clean(memory.source),
        origin=memory.origin,
        pinned=memory.pinned,
        state=held.state,
        valid_from=_when(memory.valid_from),
        valid_until=_when(memory.valid_until),
        created=show_minute(held.created),
        updated=show_minute(held.updated),
        accessed=_when(held.accessed),
        accesses=held.accesses,
    )


def memory_event_json(event: MemoryEvent) -> MemoryEventJson:
    """An event as JSON."""
    return MemoryEventJson(
        id=event.id,
        event=event.kind,
        date=show_minute(event.at),
        context=clean(event.context),
        session_id=clean(event.session_id),
        before=event.before,
    )


def edge_json(edge: Edge) -> EdgeJson:
    """An edge as JSON."""
    return EdgeJson(
        id=edge.id,
        source=edge.source_id,
        target=edge.target_id,
        relation=edge.relation,
        weight=edge.weight,
        reason=clean(edge.reason),
        proposed=edge.proposed,
    )


def _when(at: int | None) -> str | None:
    return None if at is None else show_minute(at)
