"""Health check of memories: contradictions, low confidence and unused memories."""

from collections.abc import Callable

from msgspec import Struct

from ...archiver.store import Store
from ...core.amount import many
from ...core.conversation import Milliseconds
from ...core.memory import StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter
from ...search.rank.item_finder import MemoryFinder

LOW_CONFIDENCE = 0.3
"""Confidence below which a memory is reported. It is the initial confidence, which failures and disuse lower."""
_CHECKED_MAX = 1_000
_DAY = 86_400_000


class ContradictingPair(Struct, frozen=True):
    """Two memories linked as contradicting. `similarity` is a cosine, or None if a vector is missing."""

    one: StoredMemory
    other: StoredMemory
    similarity: float | None


class MemoryHealth(Struct, frozen=True):
    """Result of a health check.

    `stale` pairs each unused memory with the time of its last outcome, or None. `recommendations` are sentences.
    """

    contradictions: tuple[ContradictingPair, ...]
    low_confidence: tuple[StoredMemory, ...]
    stale: tuple[tuple[StoredMemory, Milliseconds | None], ...]
    recommendations: tuple[str, ...]


class MemoryHealthCheck:
    """Health check of the active memories of a store."""

    def __init__(self, store: Store, finder: MemoryFinder, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock

    def check(
        self,
        namespace: str | None = None,
        *,
        stale_days: int = 30,
        contradictions: bool = True,
        low_confidence: bool = True,
        stale: bool = True,
    ) -> MemoryHealth:
        """Return linked contradictions, memories of low confidence, and memories unused for `stale_days` days.

        Protected memories are never stale. Low confidence and disuse are checked for the newest 1,000 memories.
        """
        at = self._clock()
        wanted = MemoryFilter(namespaces=(namespace,) if namespace else (), states=ACTIVE, valid_at=at)
        memories = self._store.memories.select(wanted, limit=_CHECKED_MAX)
        weak = [stored for stored in memories if low_confidence and stored.stats.confidence < LOW_CONFIDENCE]
        weak.sort(key=lambda stored: stored.stats.confidence)
        idle = self._stale(memories, at - stale_days * _DAY) if stale else []
        pairs = self._contradictions(wanted) if contradictions else []
        return MemoryHealth(tuple(pairs), tuple(weak), tuple(idle), _recommendations(len(pairs), len(weak), len(idle)))

    def _stale(
        self, memories: list[StoredMemory], before: Milliseconds
    ) -> list[tuple[StoredMemory, Milliseconds | None]]:
        validated = self._store.memory_events.last_validated([stored.key for stored in memories])
        return [
            (stored, validated.get(stored.key))
            for stored in memories
            if not stored.protected
            and max(stored.created, stored.accessed or 0, validated.get(stored.key, 0)) <= before
        ]

    def _contradictions(self, wanted: MemoryFilter) -> list[ContradictingPair]:
        pairs = [(edge.source, edge.target) for edge in self._store.memory_edges.contradictions()]
        stored = self._store.memories.load([key for pair in pairs for key in pair])
        admitted = [pair for pair in pairs if all(wanted.admits(stored[key]) for key in pair)]
        return [
            ContradictingPair(stored[one], stored[other], cosine)
            for (one, other), cosine in zip(admitted, self._finder.cosines(admitted), strict=True)
        ]


def _recommendations(contradictions: int, weak: int, stale: int) -> tuple[str, ...]:
    found = (
        (contradictions, "Resolve", "contradiction", "contradictions"),
        (weak, "Review", "low-confidence memory", "low-confidence memories"),
        (stale, "Validate or archive", "stale memory", "stale memories"),
    )
    return tuple(f"{verb} {many(count, one, several)}" for count, verb, one, several in found if count)
