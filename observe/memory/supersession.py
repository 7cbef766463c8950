"""Supersession: a newer memory replaces an older memory, which stays searchable at half its importance.

A forgotten memory does not supersede others. When the newer memory is forgotten, the older memory is reinstated. When
the newer memory is restored, it supersedes the older memory again. Forgetting a superseded memory restores its former
importance and confidence.

Other functions find memories by ID, find their known contradictions, and take snapshots of them.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import orjson
from msgspec import convert
from msgspec.structs import asdict, replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds, Origin
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.memory import GOLDEN_RULE, Edge, EventKind, Memory, MemoryEvent, MemoryState, Relation, StoredMemory


def find_memory(store: Store, memory_id: str, *, forgotten: bool = False) -> StoredMemory:
    """Return the memory with this public ID. With `forgotten`, return it even if it is forgotten.

    Raises:
        MemoryNotFound: The ID is unknown, or the memory is forgotten.
    """
    key = ids.key(memory_id, "memory")
    stored = store.memories.load([key]).get(key) if key is not None else None
    if stored is None or (stored.state is MemoryState.ARCHIVED and not forgotten):
        raise MemoryNotFound(memory_id)
    return stored


def edges_at(store: Store, keys: Sequence[int]) -> list[Edge]:
    """Return all edges that start or end at one of these memories, without duplicates."""
    edges = [*store.memory_edges.outgoing(keys), *store.memory_edges.incoming(keys)]
    return list({edge.id: edge for edge in edges}.values())


def contradicting(store: Store, memories: Iterable[StoredMemory]) -> tuple[tuple[str, str], ...]:
    """Return pairs of IDs of these memories that are linked as contradicting."""
    ids_by_key = {stored.key: stored.id for stored in memories}
    edges = [
        edge for edge in store.memory_edges.outgoing(sorted(ids_by_key)) if edge.disagrees and edge.target in ids_by_key
    ]
    pairs = {(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in edges}
    return tuple((ids_by_key[first], ids_by_key[second]) for first, second in sorted(pairs))


def snapshot(memory: Memory, confidence: float) -> str:
    """Return a memory and its confidence as JSON, in the format of `MemoryEvent.before`."""
    return orjson.dumps({**asdict(memory), "confidence": confidence}).decode()


def snapshot_of(stored: StoredMemory) -> str:
    """Return the snapshot of a stored memory."""
    return snapshot(stored.memory, stored.stats.confidence)


def parse_snapshot(text: str) -> tuple[Memory, float]:
    """Return the memory and the confidence of a snapshot."""
    values = orjson.loads(text)
    confidence = float(values.pop("confidence"))
    return convert(values, Memory), confidence


_CONFIDENCE_MAX = 0.1
"""Highest confidence of a superseded memory."""


def supersede(store: Store, newer: StoredMemory, older: StoredMemory, edge: Edge, at: Milliseconds) -> Edge:
    """Add the edge inside a transaction, mark the older memory as superseded, and return the edge with its ID.

    The importance of the older memory is halved and its confidence limited to 0.1. The edge is only proposed, and no
    memory changes, if the older memory is forgotten or a golden rule. The same applies if the older memory is protected
    and the newer memory is not in the user's own words.
    """
    protected = older.protected and newer.memory.origin is not Origin.HUMAN
    protected |= older.memory.type == GOLDEN_RULE or older.state is MemoryState.ARCHIVED
    edge = replace(edge, proposed=(edge.proposed or protected) and older.state is not MemoryState.SUPERSEDED)
    edge = store.memory_edges.put(edge)
    if not edge.proposed and older.state is MemoryState.ACTIVE:
        reason = f"by {newer.id}: {edge.reason}" if edge.reason else f"by {newer.id}"
        store.memories.rewrite(_superseded(store, older, reason, at))
    return edge


def superseding(store: Store, *keys: int, proposed: bool = False) -> list[Edge]:
    """Return the `supersedes` edges that lead to these memories and start at memories that are not forgotten.

    With `proposed`, include proposed edges.
    """
    edges = [edge for edge in store.memory_edges.incoming(keys) if edge.relation is Relation.SUPERSEDES]
    newer = store.memories.load([edge.source for edge in edges])
    return [
        edge
        for edge in edges
        if newer[edge.source].state is not MemoryState.ARCHIVED and (proposed or not edge.proposed)
    ]


def superseded_by(store: Store, key: int) -> list[Edge]:
    """Return the edges from a memory to the memories that it supersedes, without proposed edges."""
    outgoing = store.memory_edges.outgoing([key])
    return [edge for edge in outgoing if edge.relation is Relation.SUPERSEDES and not edge.proposed]


def reinstate(store: Store, stored: StoredMemory, at: Milliseconds) -> StoredMemory:
    """Make a superseded memory active again inside a transaction, with its former importance and confidence.

    Raises:
        InvalidInput: Another memory with the same content or file is stored.
    """
    active = replace(_with_former_values(store, stored), state=MemoryState.ACTIVE, updated=at)
    check_unique(store, active)
    store.memories.rewrite(active)
    event = MemoryEvent(stored.key, EventKind.RESTORED, at, "was superseded", before=snapshot_of(stored))
    store.memory_events.add(event)
    return active


def reinstate_targets(store: Store, edges: Iterable[Edge], at: Milliseconds) -> None:
    """Reinstate the targets of edges that were removed, or whose source was forgotten, inside a transaction.

    A target stays superseded if another memory supersedes it, or if another active memory has its content.
    """
    targets = sorted({edge.target for edge in edges if edge.relation is Relation.SUPERSEDES})
    for key, stored in store.memories.load(targets).items():
        if stored.state is MemoryState.SUPERSEDED and not superseding(store, key):
            with suppress(InvalidInput):
                reinstate(store, stored, at)


def archive(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Forget a memory inside a transaction and return it. The memories that it superseded are reinstated."""
    forgotten = replace(_with_former_values(store, stored), state=MemoryState.ARCHIVED, updated=at)
    store.memories.rewrite(forgotten)
    store.memory_events.add(MemoryEvent(stored.key, EventKind.ARCHIVED, at, reason, before=snapshot_of(stored)))
    reinstate_targets(store, superseded_by(store, stored.key), at)
    return forgotten


def restore(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Restore a forgotten or expired memory inside a transaction and return it.

    The memory supersedes its former targets again. If another memory supersedes it, it becomes superseded.

    Raises:
        InvalidInput: Another memory with the same content or file is stored.
    """
    restored = replace(stored, state=MemoryState.ACTIVE, updated=at)
    if edges := superseding(store, stored.key):
        restored = _superseded(store, restored, f"by {edges[0].source_id}", at)
    else:
        check_unique(store, restored)
    store.memories.rewrite(restored)
    store.memory_events.add(MemoryEvent(stored.key, EventKind.RESTORED, at, reason, before=snapshot_of(stored)))
    for edge in superseded_by(store, stored.key):
        older = store.memories.load([edge.target])[edge.target]
        if older.state is MemoryState.ACTIVE:
            supersede(store, restored, older, edge, at)
    return restored


def check_unique(store: Store, stored: StoredMemory) -> None:
    """Raise `InvalidInput` if another active memory has the same content or the same file."""
    memories = store.memories
    twin = memories.at_path(stored.memory.path) or memories.find_same(stored.memory, stored.stats.promoted_from)
    if twin is not None and twin != stored.key:
        taken = ids.show("memory", twin)
        raise InvalidInput(f"{taken} already has this content or file", hint=f"Edit {taken}, or forget it first.")


def _superseded(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Return an active memory with the state `SUPERSEDED` and the lower importance and confidence. Record the event."""
    store.memory_events.add(MemoryEvent(stored.key, EventKind.SUPERSEDED, at, reason, before=snapshot_of(stored)))
    return replace(
        stored,
        memory=replace(stored.memory, importance=round(stored.memory.importance / 2, 4)),
        stats=replace(stored.stats, confidence=min(_CONFIDENCE_MAX, stored.stats.confidence)),
        state=MemoryState.SUPERSEDED,
        updated=at,
    )


def _with_former_values(store: Store, stored: StoredMemory) -> StoredMemory:
    """Return a superseded memory with its former importance and confidence, or any other memory unchanged."""
    if stored.state is not MemoryState.SUPERSEDED:
        return stored
    [event] = store.memory_events.of(stored.key, [EventKind.SUPERSEDED], 1)
    memory, confidence = parse_snapshot(event.before)
    return replace(
        stored,
        memory=replace(stored.memory, importance=memory.importance),
        stats=replace(stored.stats, confidence=max(stored.stats.confidence, confidence)),
    )
