"""Ids as callers give them, resolved by looking them up; and which of several memories disagree."""

from collections.abc import Iterable, Mapping

from ...archiver.store import Store
from ...core import ids
from ...core.errors import MemoryNotFound
from ...core.memory import Edge, MemoryState, StoredMemory


def held_memory(store: Store, memory_id: str, *, forgotten: bool = False) -> StoredMemory:
    """Return the memory with this id. Every call that takes an id looks it up here.

    With `forgotten`, include forgotten memories: only showing, forgetting and restoring may use them.

    Raises:
        MemoryNotFound: The id is unknown, or the memory is forgotten.
    """
    key = ids.key(memory_id, "memory")
    held = store.memories.load([key]).get(key) if key is not None else None
    if held is None or (held.state is MemoryState.ARCHIVED and not forgotten):
        raise MemoryNotFound(memory_id)
    return held


def live_edges(store: Store, edges: Iterable[Edge]) -> list[Edge]:
    """Return the edges without those that begin or end at a forgotten memory."""
    found = list(edges)
    ends = store.memories.load(list({key for edge in found for key in (edge.source, edge.target)}))
    gone = {key for key, held in ends.items() if held.state is MemoryState.ARCHIVED}
    return [edge for edge in found if gone.isdisjoint((edge.source, edge.target))]


def contradicting(store: Store, memories: Iterable[int]) -> list[tuple[int, int]]:
    """Those of these memories, by key, that are known to contradict each other, in pairs, each once."""
    keys = set(memories)
    edges = store.memory_edges.leaving(sorted(keys))
    drawn = (edge for edge in edges if edge.disagrees and edge.target in keys)
    return sorted({(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in drawn})


def by_id(pairs: Iterable[tuple[int, int]], known: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    """Those of these pairs of keys of which both are known, by their ids."""
    return tuple((known[one], known[other]) for one, other in pairs if one in known and other in known)
