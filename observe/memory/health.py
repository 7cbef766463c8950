"""Health: memories that somebody should look at."""

from collections.abc import Callable

from msgspec import Struct

from ...archiver.store import Store
from ...core.amount import many
from ...core.conversation import Milliseconds
from ...core.memory import StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter
from ...search.rank.memory_finder import MemoryFinder

LOW_CONFIDENCE = 0.3
"""Below what every memory starts with: only what failed, or was not used for long, is."""
_DAY = 86_400_000


class Contradiction(Struct, frozen=True):
    """Two memories that an edge says contradict. `similarity` is a true cosine, None where a vector is missing."""

    one: StoredMemory
    other: StoredMemory
    similarity: float | None


class Health(Struct, frozen=True):
    """What was found. `stale` has when each was last validated, or None; `recommendations` are sentences."""

    contradictions: tuple[Contradiction, ...]
    low_confidence: tuple[StoredMemory, ...]
    stale: tuple[tuple[StoredMemory, Milliseconds | None], ...]
    recommendations: tuple[str, ...]


class HealthCheck:
    """Looks at the memories of a store, at most so many of them."""

    def __init__(self, store: Store, finder: MemoryFinder, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock

    def check(
        self,
        namespace: str | None = None,
        *,
        stale_days: int = 30,
        limit: int = 1_000,
        contradictions: bool = True,
        low_confidence: bool = True,
        stale: bool = True,
    ) -> Health:
        """What contradicts, what is little trusted, and what was neither used nor validated for `stale_days` days; each
        unless it is switched off.

        Contradictions are those that edges tell of; golden rules are never stale.
        """
        at = self._clock()
        wanted = MemoryFilter(namespaces=(namespace,) if namespace else (), states=ACTIVE, valid_at=at)
        memories = self._store.memories.select(wanted, limit=limit)
        weak = sorted(
            (held for held in memories if low_confidence and held.stats.confidence < LOW_CONFIDENCE),
            key=lambda held: held.stats.confidence,
        )
        idle = self._stale(memories, at - stale_days * _DAY) if stale else []
        pairs = self._contradictions(wanted) if contradictions else []
        return Health(tuple(pairs), tuple(weak), tuple(idle), _recommendations(len(pairs), len(weak), len(idle)))

    def _stale(
        self, memories: list[StoredMemory], before: Milliseconds
    ) -> list[tuple[StoredMemory, Milliseconds | None]]:
        validated = self._store.memory_events.last_validated([held.key for held in memories])
        return [
            (held, validated.get(held.key))
            for held in memories
            if not held.protected and max(held.created, held.accessed or 0, validated.get(held.key, 0)) <= before
        ]

    def _contradictions(self, wanted: MemoryFilter) -> list[Contradiction]:
        edges = self._store.memory_edges.disagreeing()
        held = self._store.memories.load([key for edge in edges for key in (edge.source, edge.target)])
        admitted = {key: one for key, one in held.items() if wanted.admits(one)}
        pairs = [(edge.source, edge.target) for edge in edges if edge.source in admitted and edge.target in admitted]
        cosines = self._finder.cosines(pairs)
        return [
            Contradiction(admitted[one], admitted[other], cosine)
            for (one, other), cosine in zip(pairs, cosines, strict=True)
        ]


def _recommendations(contradictions: int, weak: int, stale: int) -> tuple[str, ...]:
    found = (
        (contradictions, "Resolve", "contradiction", "contradictions"),
        (weak, "Review", "low-confidence memory", "low-confidence memories"),
        (stale, "Validate or archive", "stale memory", "stale memories"),
    )
    return tuple(f"{verb} {many(count, one, several)}" for count, verb, one, several in found if count)
