"""Ids as callers give them, resolved by looking them up; and which of several memories disagree."""

from collections.abc import Iterable, Mapping

from ...archiver.store import Store
from ...core import ids
from ...core.errors import MemoryNotFound
from ...core.memory import HeldMemory, Relation


def held_memory(store: Store, memory_id: str) -> HeldMemory:
    """The memory with this id, whatever its state; raises `MemoryNotFound`."""
    key = ids.key(memory_id, "memory")
    found = store.memories.load([key]) if key is not None else {}
    if key is None or key not in found:
        raise MemoryNotFound(memory_id)
    return found[key]


def contradicting(store: Store, memories: Iterable[int]) -> list[tuple[int, int]]:
    """Those of these memories, by key, that are known to contradict each other, in pairs, each once."""
    keys = set(memories)
    edges = store.memory_edges.leaving(sorted(keys))
    drawn = (edge for edge in edges if edge.relation is Relation.CONTRADICTS and edge.target in keys)
    return sorted({(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in drawn})


def by_id(pairs: Iterable[tuple[int, int]], known: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    """Those of these pairs of keys of which both are known, by their ids."""
    return tuple((known[one], known[other]) for one, other in pairs if one in known and other in known)
