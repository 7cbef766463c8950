"""Superseding: a newer memory replaces an older one, which stays stored and found at half its importance.

Only memories that are not forgotten supersede: forgetting the newer one reinstates the older one, and restoring the
newer one supersedes it again. A forgotten memory has the importance and confidence from before it was superseded.
"""

from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, EventKind, MemoryEvent, MemoryState, Relation, StoredMemory
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin
from .changes import confidence_told, retold, told

_CONFIDENCE_AT_MOST = 0.1


def supersede(store: Store, newer: StoredMemory, older: StoredMemory, edge: Edge, at: Milliseconds) -> Edge:
    """Draw the edge inside a transaction and mark the older memory as superseded; return the edge with its id.

    The importance is halved and the confidence is at most 0.1. Where the older memory is a golden rule or archived, the
    edge is only proposed; so it is where the older one is proven, except to the user's own words. A proposed edge
    changes no memory.
    """
    proof = older.protected and newer.memory.origin is not Origin.HUMAN
    protected = proof or older.memory.type == GOLDEN_RULE
    spared = edge.proposed or protected or older.state is MemoryState.ARCHIVED
    edge = replace(edge, proposed=spared and older.state is not MemoryState.SUPERSEDED)
    number, new = store.memory_edges.add(edge)
    edge = replace(edge, id=number)
    if not new:
        store.memory_edges.rewrite(edge)
    if edge.proposed or older.state is not MemoryState.ACTIVE:
        return edge
    reason = f"by {newer.id}: {edge.reason}" if edge.reason else f"by {newer.id}"
    store.memories.rewrite(_fallen(store, older, reason, at))
    return edge


def _fallen(store: Store, held: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Return an active memory as superseded, and log the event."""
    store.memory_events.add(MemoryEvent(held.key, EventKind.SUPERSEDED, at, reason, before=told(held)))
    return replace(
        held,
        memory=replace(held.memory, importance=round(held.memory.importance / 2, 4)),
        stats=replace(held.stats, confidence=min(_CONFIDENCE_AT_MOST, held.stats.confidence)),
        state=MemoryState.SUPERSEDED,
        updated=at,
    )


def _risen(store: Store, held: StoredMemory) -> StoredMemory:
    """Return a superseded memory with the importance and confidence that it had before; any other unchanged."""
    if held.state is not MemoryState.SUPERSEDED:
        return held
    [event] = store.memory_events.of(held.key, [EventKind.SUPERSEDED], 1)
    return replace(
        held,
        memory=replace(held.memory, importance=retold(event.before).importance),
        stats=replace(held.stats, confidence=max(held.stats.confidence, confidence_told(event.before))),
    )


def superseding(store: Store, key: int) -> list[Edge]:
    """Return the edges that supersede a memory; proposed ones are left out."""
    return [each for each in replacements(store, key) if not each.proposed]


def replacements(store: Store, *keys: int) -> list[Edge]:
    """Return the `supersedes` edges from memories that are not forgotten to these, proposed ones included."""
    drawn = [edge for edge in store.memory_edges.reaching(keys) if edge.relation is Relation.SUPERSEDES]
    newer = store.memories.load([edge.source for edge in drawn])
    return [edge for edge in drawn if newer[edge.source].state is not MemoryState.ARCHIVED]


def superseded_by(store: Store, key: int) -> list[Edge]:
    """Return the edges by which a memory supersedes others; proposed ones are left out."""
    leaving = store.memory_edges.leaving([key])
    return [edge for edge in leaving if edge.relation is Relation.SUPERSEDES and not edge.proposed]


def reinstate(store: Store, held: StoredMemory, at: Milliseconds) -> StoredMemory:
    """Give a superseded memory its importance, confidence and state back, inside a transaction; return it.

    Raises `InvalidInput` where the same is stored again.
    """
    active = replace(_risen(store, held), state=MemoryState.ACTIVE, updated=at)
    check_free(store, active)
    store.memories.rewrite(active)
    store.memory_events.add(MemoryEvent(held.key, EventKind.RESTORED, at, "was superseded", before=told(held)))
    return active


def release(store: Store, edges: Iterable[Edge], at: Milliseconds) -> None:
    """Reinstate the targets of these removed or ineffective edges, inside a transaction.

    A memory that another one supersedes, or of which the same is stored again, stays as it is.
    """
    targets = sorted({edge.target for edge in edges if edge.relation is Relation.SUPERSEDES})
    for key, held in store.memories.load(targets).items():
        if held.state is MemoryState.SUPERSEDED and not superseding(store, key):
            with suppress(InvalidInput):
                reinstate(store, held, at)


def archive(store: Store, held: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Forget a memory inside a transaction and reinstate what it superseded; return it."""
    gone = replace(_risen(store, held), state=MemoryState.ARCHIVED, updated=at)
    store.memories.rewrite(gone)
    store.memory_events.add(MemoryEvent(held.key, EventKind.ARCHIVED, at, reason, before=told(held)))
    release(store, superseded_by(store, held.key), at)
    return gone


def restore(store: Store, held: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Restore a forgotten or expired memory inside a transaction; return it.

    It supersedes again what it superseded, and is superseded where another memory supersedes it. Raises `InvalidInput`
    where the same is stored again.
    """
    back = replace(held, state=MemoryState.ACTIVE, updated=at)
    if edges := superseding(store, held.key):
        back = _fallen(store, back, f"by {edges[0].source_id}", at)
    else:
        check_free(store, back)
    store.memories.rewrite(back)
    store.memory_events.add(MemoryEvent(held.key, EventKind.RESTORED, at, reason, before=told(held)))
    for edge in superseded_by(store, held.key):
        older = store.memories.load([edge.target])[edge.target]
        if older.state is MemoryState.ACTIVE:
            supersede(store, back, older, edge, at)
    return back


def check_free(store: Store, held: StoredMemory) -> None:
    """Raise `InvalidInput` where another active memory says the same, or is stored in the same file."""
    memories = store.memories
    other = memories.at_path(held.memory.path) or memories.claimed(held.memory, held.stats.promoted_from)
    if other is not None and other != held.key:
        taken = ids.show("memory", other)
        raise InvalidInput(f"The same is already held as {taken}", hint=f"Edit {taken}, or forget it first.")
