"""Functions that find stored memories by ID, find their known contradictions, and take snapshots of them."""

from collections.abc import Iterable, Sequence

import orjson
from msgspec import convert
from msgspec.structs import asdict

from ...archiver.store import Store
from ...core import ids
from ...core.errors import MemoryNotFound
from ...core.memory import Edge, Memory, MemoryState, StoredMemory


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
    known = {stored.key: stored.id for stored in memories}
    edges = [edge for edge in store.memory_edges.outgoing(sorted(known)) if edge.disagrees and edge.target in known]
    pairs = {(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in edges}
    return tuple((known[one], known[other]) for one, other in sorted(pairs))


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
