"""Ids as callers give them, resolved by looking them up."""

from ...archiver.store import Store
from ...core import ids
from ...core.errors import MemoryNotFound
from ...core.memory import HeldMemory


def held_memory(store: Store, memory_id: str) -> HeldMemory:
    """The memory with this id, whatever its state; raises `MemoryNotFound`."""
    key = ids.key(memory_id, "memory")
    found = store.memories.load([key]) if key is not None else {}
    if key is None or key not in found:
        raise MemoryNotFound(memory_id)
    return found[key]
