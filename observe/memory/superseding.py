"""Superseding: a newer memory replaces an older one, which stays stored and found at half its importance."""

from msgspec.structs import replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, EventKind, HeldMemory, MemoryEvent, MemoryState, Relation
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin
from .changes import confidence_told, retold, told

_CONFIDENCE_AT_MOST = 0.1


def supersede(store: Store, newer: HeldMemory, older: HeldMemory, edge: Edge, at: Milliseconds) -> Edge:
    """Draw the edge inside a transaction and mark the older memory as superseded; return the edge with its id.

    The importance is halved and the confidence is at most 0.1. Where the older memory is a golden rule or archived, the
    edge is only proposed; so it is where the older one is proven, except to the user's own words. A proposed edge
    changes no memory.
    """
    proof = older.golden and newer.memory.origin is not Origin.HUMAN
    protected = proof or older.memory.type == GOLDEN_RULE
    spared = edge.proposed or protected or older.state is MemoryState.ARCHIVED
    edge = replace(edge, proposed=spared and older.state is not MemoryState.SUPERSEDED)
    number, new = store.memory_edges.add(edge)
    edge = replace(edge, id=number)
    if not new:
        store.memory_edges.rewrite(edge)
    if edge.proposed or older.state is not MemoryState.ACTIVE:
        return edge
    fallen = replace(
        older,
        memory=replace(older.memory, importance=round(older.memory.importance / 2, 4)),
        standing=replace(older.standing, confidence=min(_CONFIDENCE_AT_MOST, older.standing.confidence)),
        state=MemoryState.SUPERSEDED,
        updated=at,
    )
    store.memories.rewrite(fallen)
    reason = f"by {newer.id}: {edge.reason}" if edge.reason else f"by {newer.id}"
    store.memory_events.add(MemoryEvent(older.key, EventKind.SUPERSEDED, at, reason, before=told(older)))
    return edge


def superseding(store: Store, key: int) -> list[Edge]:
    """Return the edges that supersede a memory; proposed ones are left out."""
    return [each for each in replacements(store, key) if not each.proposed]


def replacements(store: Store, *keys: int) -> list[Edge]:
    """Return the `supersedes` edges that reach these memories, proposed ones included."""
    return [edge for edge in store.memory_edges.reaching(keys) if edge.relation is Relation.SUPERSEDES]


def reinstate(store: Store, held: HeldMemory, at: Milliseconds) -> HeldMemory:
    """Give a superseded memory its importance, confidence and state back, inside a transaction; return it.

    Raises `InvalidInput` where the same is stored again.
    """
    [event] = store.memory_events.of(held.key, [EventKind.SUPERSEDED], 1)
    active = replace(
        held,
        memory=replace(held.memory, importance=retold(event.before).importance),
        standing=replace(held.standing, confidence=max(held.standing.confidence, confidence_told(event.before))),
        state=MemoryState.ACTIVE,
        updated=at,
    )
    check_free(store, active)
    store.memories.rewrite(active)
    store.memory_events.add(MemoryEvent(held.key, EventKind.RESTORED, at, "was superseded", before=told(held)))
    return active


def check_free(store: Store, held: HeldMemory) -> None:
    """Raise `InvalidInput` where another active memory says the same, or is stored in the same file."""
    other = store.memories.at_path(held.memory.path) if held.memory.path else store.memories.claimed(held.memory)
    if other is not None and other != held.key:
        taken = ids.show("memory", other)
        raise InvalidInput(f"The same is already held as {taken}", hint=f"Edit {taken}, or forget it first.")
