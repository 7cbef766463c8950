"""Detection of contradictions: compare a memory with similar memories of its namespace, and link conflicts."""

from collections.abc import Callable

from msgspec import Struct

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, Memory, MemoryState, Relation, StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter
from ...search.rank.item_finder import MemoryFinder, MemoryVectors
from .memory_records import edges_at, find_memory
from .rule_judge import Judge, Judgement, MemoryPair, Verdict
from .supersession import supersede

COMPARED = 5
"""Number of similar memories with which a new memory is compared, the most similar first."""
RELATED_FROM, JUDGED_FROM = 0.6, 0.35
"""Minimum cosine similarity of memories that are linked as related, and of memories that the judge compares.

The second value is lower, because even a paraphrase can have a low similarity.
"""
_DETECT_COMPARED, _OUTCOME_COMPARED = 20, 10
_SUCCESSES_NEEDED = 2
"""Number of successes that a memory needs before its better outcomes can make it supersede another memory."""


class Comparison(Struct, frozen=True):
    """Comparison with a stored memory: the cosine similarity of the memories, and the judgement."""

    stored: StoredMemory
    similarity: float
    judgement: Judgement

    def edge_from(self, key: int) -> Edge | None:
        """Return the edge from the memory with this key to `stored`.

        Return None if the memories do not conflict and are not similar enough to be linked.
        """
        verdict, other = self.judgement.verdict, self.stored.key
        if verdict is Verdict.SUPERSEDES:
            proposed = not self.judgement.certain
            return Edge(key, other, Relation.SUPERSEDES, 1.0, self.reason, inferred=True, proposed=proposed)
        if verdict is Verdict.CONTRADICTS:
            return Edge(key, other, Relation.CONTRADICTS, 1.0, self.reason, inferred=True)
        if self.similarity >= RELATED_FROM:
            return Edge(key, other, Relation.RELATES_TO, round(self.similarity, 4), "similar", inferred=True)
        return None

    @property
    def reason(self) -> str:
        """Reason for the judgement, with the name of the judge."""
        return f"{self.judgement.reason}{_judged_by(self.judgement.judge)}"


class DetectedConflict(Struct, frozen=True):
    """Comparison with a conflicting memory. `new` is True if an edge between both memories was added."""

    comparison: Comparison
    new: bool


class Contradictions:
    """Search for contradictions between memories of a namespace. `judge` is the name of the model or rules used."""

    def __init__(self, store: Store, finder: MemoryFinder, judge: Judge, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock
        self._judge, self.judge = judge, judge.name

    def compare(
        self,
        memory: Memory,
        vectors: MemoryVectors | None = None,
        *,
        stored: StoredMemory | None = None,
        limit: int = COMPARED,
        min_similarity: float = JUDGED_FROM,
    ) -> list[Comparison]:
        """Return comparisons with the most similar valid memories of the namespace, best first.

        Without an embedding model, the list is empty. If `memory` is already stored, pass its record as `stored`. The
        result then excludes it, and creation times determine which memory of a pair is older. Otherwise, `memory`
        counts as the newer one.
        """
        wanted = MemoryFilter(namespaces=(memory.namespace,), states=ACTIVE, valid_at=self._clock())
        near = self._finder.near(memory, vectors, wanted, limit + 1, min_similarity)
        others = [each for each in near if stored is None or each.key != stored.key][:limit]
        judgements = self._judge.judge_all([_in_order(each.stored, memory, stored) for each in others])
        return [
            Comparison(each.stored, each.similarity, judgement)
            for each, judgement in zip(others, judgements, strict=True)
        ]

    def detect(
        self, memory_id: str, *, min_similarity: float = JUDGED_FROM, link: bool = True
    ) -> list[DetectedConflict]:
        """Return the conflicts of a memory with its most similar memories, best first. With `link`, add their edges.

        Conflicts that are already linked are included even below `min_similarity`.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: `min_similarity` is not between 0 and 1.
        """
        if not 0 <= min_similarity <= 1:
            raise InvalidInput(f"Invalid similarity threshold: {min_similarity}", hint="Give a number from 0.0 to 1.0.")
        stored, least = find_memory(self._store, memory_id), min(min_similarity, JUDGED_FROM)
        near = self.compare(stored.memory, stored=stored, limit=_DETECT_COMPARED, min_similarity=least)
        found: list[DetectedConflict] = []
        with self._store.transaction():
            edges = [edge for edge in edges_at(self._store, [stored.key]) if edge.disagrees]
            linked = {key for edge in edges for key in (edge.source, edge.target)}
            for each in near:
                known = each.stored.key in linked
                if not each.judgement.conflict or (each.similarity < min_similarity and not known):
                    continue
                new = link and not known
                if new:
                    edge = Edge(stored.key, each.stored.key, Relation.CONTRADICTS, 1.0, each.reason, inferred=True)
                    self._store.memory_edges.put(edge)
                found.append(DetectedConflict(each, new))
        return found

    def update(self, stored: StoredMemory) -> None:
        """Judge an edited memory again, and replace the contradictions that this judge found earlier."""
        suffix = _judged_by(self.judge)
        with self._store.transaction():
            edges = [edge for edge in edges_at(self._store, [stored.key]) if edge.disagrees and edge.inferred]
            self._store.memory_edges.delete([edge.id for edge in edges if edge.reason.endswith(suffix)])
        self.detect(stored.id)

    def supersede_by_outcomes(self, memory_id: str, *, link: bool = True) -> DetectedConflict | None:
        """Return the most similar memory that had worse outcomes than this memory. With `link`, supersede it.

        This memory needs two successes. The other memory must be older, have a lower confidence and more failures, and
        contradict or repeat this memory.

        Raises:
            MemoryNotFound: The memory does not exist.
        """
        stored = find_memory(self._store, memory_id)
        if stored.stats.successes < _SUCCESSES_NEEDED or stored.state is not MemoryState.ACTIVE:
            return None
        for each in self.compare(stored.memory, stored=stored, limit=_OUTCOME_COMPARED):
            compatible = not each.judgement.conflict and each.judgement.verdict is not Verdict.SAME
            if compatible or each.stored.protected or not _is_worse(each.stored, stored):
                continue
            if not link:
                return DetectedConflict(each, new=False)
            edge = Edge(stored.key, each.stored.key, Relation.SUPERSEDES, 1.0, each.reason, inferred=True)
            with self._store.transaction():
                older = find_memory(self._store, each.stored.id)
                supersede(self._store, stored, older, edge, self._clock())
            return DetectedConflict(each, new=True)
        return None


def _in_order(other: StoredMemory, memory: Memory, stored: StoredMemory | None) -> MemoryPair:
    is_newer = stored is not None and other.created > stored.created
    return (memory, other.memory) if is_newer else (other.memory, memory)


def _is_worse(other: StoredMemory, stored: StoredMemory) -> bool:
    older = (other.created, other.key) < (stored.created, stored.key)
    less_trusted = other.stats.confidence < stored.stats.confidence
    return older and less_trusted and other.stats.failures > stored.stats.failures


def _judged_by(judge: str) -> str:
    return f" (judged by {judge})"
