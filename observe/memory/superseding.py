"""Superseding: a newer memory takes the place of an older one, which is kept but found no more."""

from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.memory import Edge, EventKind, HeldMemory, MemoryEvent, MemoryState
from .changes import told

_CONFIDENCE_AT_MOST = 0.1


def supersede(store: Store, newer: HeldMemory, older: HeldMemory, edge: Edge, at: Milliseconds) -> Edge:
    """Draw the edge inside a transaction and put the older memory away; the edge with its id.

    Its importance is halved and its confidence at most 0.1. A golden rule, and what was put away before, stays as it
    is.
    """
    number, _ = store.memory_edges.add(edge)
    if not older.golden and older.state is MemoryState.ACTIVE:
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
    return replace(edge, id=number)
