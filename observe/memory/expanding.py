"""Expanding: what edges lead to from the memories that were recalled, with the reason for each."""

from collections.abc import Callable, Sequence
from math import prod

from msgspec import Struct, field

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.memory import Edge, Relation, StoredMemory
from ...core.memory_filter import MemoryFilter
from .lookup import live_edges
from .recalling import Recalled

EXPANDED_MAX = 20
"""How many memories are added at most."""
_NODES_MAX, _EDGES_EACH, _HOPS_MAX = 200, 10, 3
"""Memories visited at most, edges followed from each, the strongest first, and how far from what was recalled."""
_DECAY = 0.7
_STRENGTH = {Relation.SUPERSEDES: 1.0, Relation.CAUSED_BY: 0.9, Relation.RELATES_TO: 0.7, Relation.CONTRADICTS: 0.5}
_WORDS = {
    Relation.RELATES_TO: ("is related to", "is related to"),
    Relation.SUPERSEDES: ("supersedes", "was superseded by"),
    Relation.CAUSED_BY: ("was caused by", "led to"),
    Relation.CONTRADICTS: ("contradicts", "contradicts"),
}


class Expanded(Struct, frozen=True):
    """A memory that was not found itself. `score` (0-1) says how much the way to it carries, `hops` how many edges it
    has, and `explanation` tells it in a sentence.
    """

    held: StoredMemory
    score: float
    hops: int
    explanation: str


class _Way(Struct, frozen=True):
    """The edges from a recalled memory on; each with whether it was followed along its arrow."""

    start: int
    steps: tuple[tuple[Edge, bool], ...] = ()

    @property
    def score(self) -> float:
        """0.7 for each edge, times their weights, times the geometric mean of what their relations carry."""
        hops = len(self.steps)
        carried = prod(_STRENGTH[edge.relation] for edge, _ in self.steps) ** (1 / hops) if hops else 1.0
        return _DECAY**hops * prod(edge.weight for edge, _ in self.steps) * carried

    def told(self) -> str:
        """As in `mem_3 is related to mem_7, which led to mem_9.`"""
        told = ids.show("memory", self.start)
        for place, (edge, along) in enumerate(self.steps):
            words = _WORDS[edge.relation][0 if along else 1]
            told += f"{', which' if place else ''} {words} {edge.target_id if along else edge.source_id}"
        return f"{told}."


class _Walk(Struct):
    """The best way to each memory that was reached, and those whose edges are followed next."""

    ways: dict[int, _Way]
    frontier: list[int] = field(default_factory=list[int])


class Expanding:
    """Follows edges both ways. Writes nothing, and counts no access."""

    def __init__(self, store: Store, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._clock = store, clock

    def expand(
        self, found: Sequence[Recalled], wanted: MemoryFilter | None = None, *, limit: int = EXPANDED_MAX
    ) -> list[Expanded]:
        """What lies up to three edges from what was recalled, is valid and satisfies the filter; best way first.

        At most `limit` memories, and never more than 20.
        """
        starts = {each.held.key: _Way(each.held.key) for each in found}
        walk = _Walk(starts, list(starts))
        for _ in range(_HOPS_MAX):
            self._step(walk)
        reached = [key for key in walk.ways if key not in {each.held.key for each in found}]
        held, at = self._store.memories.load(reached), self._clock()
        kept = [
            Expanded(one, round(way.score, 4), len(way.steps), way.told())
            for key, way in walk.ways.items()
            if (one := held.get(key)) is not None and one.is_valid_at(at) and (wanted or MemoryFilter()).admits(one)
        ]
        kept.sort(key=lambda each: (-each.score, each.held.key))
        return kept[: min(limit, EXPANDED_MAX)]

    def _step(self, walk: _Walk) -> None:
        """Follow the edges of the memories that were reached last."""
        at, new = walk.frontier, dict[int, None]()
        edges = [*self._store.memory_edges.leaving(at), *self._store.memory_edges.reaching(at)]
        known = {edge.id: edge for edge in live_edges(self._store, edges)}
        by_end: dict[int, list[Edge]] = {key: [] for key in at}
        for edge in sorted(known.values(), key=lambda edge: (-edge.weight * _STRENGTH[edge.relation], edge.id)):
            for end in {edge.source, edge.target} & by_end.keys():
                by_end[end].append(edge)
        for here in at:
            for edge in by_end[here][:_EDGES_EACH]:
                along = edge.source == here
                there = edge.target if along else edge.source
                way = _Way(walk.ways[here].start, (*walk.ways[here].steps, (edge, along)))
                seen = walk.ways.get(there)
                if seen is None and len(walk.ways) >= _NODES_MAX:
                    continue
                if seen is None or way.score > seen.score:
                    walk.ways[there] = way
                    new[there] = None
        walk.frontier = list(new)
