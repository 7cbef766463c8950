"""Comparing: which held memories are near another in meaning, and whether they agree."""

from collections.abc import Callable

from msgspec import Struct

from ...core.conversation import Milliseconds
from ...core.memory import Edge, Memory, Relation, StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter
from ...search.rank.memory_finder import MemoryFinder, MemoryVectors
from .judging import Judge, Judgement, Pair, Verdict

NEIGHBOURS = 5
"""How many of the nearest memories a new one is compared with."""
RELATED_FROM, JUDGED_FROM = 0.6, 0.35
"""Cosine from which memories are related, and from which they are judged: other words for the same lower it."""


class Compared(Struct, frozen=True):
    """Stored memory that another was compared with. `similarity` is a true cosine."""

    held: StoredMemory
    similarity: float
    judgement: Judgement

    @property
    def conflict(self) -> bool:
        """Return whether both cannot be true at once."""
        return self.judgement.conflict


class Comparing:
    """Compares memories with those that are held in their namespace."""

    def __init__(self, finder: MemoryFinder, judge: Judge, clock: Callable[[], Milliseconds]) -> None:
        self._finder, self._judge, self._clock = finder, judge, clock

    def with_held(
        self,
        memory: Memory,
        vectors: MemoryVectors | None = None,
        *,
        held: StoredMemory | None = None,
        limit: int = NEIGHBOURS,
        at_least: float = JUDGED_FROM,
    ) -> list[Compared]:
        """Return the nearest valid memories of the namespace, judged, nearest first; none without a model.

        `held` is the memory itself where it is held already: it is left out, and each pair is judged in the order in
        which it was said. A new one is newer than all.
        """
        wanted = MemoryFilter(namespaces=(memory.namespace,), states=ACTIVE, valid_at=self._clock())
        near = self._finder.near(memory, vectors, wanted, limit + 1, at_least)
        others = [found for found in near if held is None or found.key != held.key][:limit]
        verdicts = self._judge.judge_all([_in_order(found.held, memory, held) for found in others])
        return [
            Compared(found.held, found.similarity, verdict) for found, verdict in zip(others, verdicts, strict=True)
        ]

    def judged(self, older: Memory, newer: Memory) -> Judgement:
        """How a newer memory stands to an older one, near or not."""
        [judgement] = self._judge.judge_all([(older, newer)])
        return judgement


def _in_order(other: StoredMemory, memory: Memory, held: StoredMemory | None) -> Pair:
    newer = held is not None and other.created > held.created
    return (memory, other.memory) if newer else (other.memory, memory)


def edge_to(key: int, compared: Compared) -> Edge | None:
    """Return the edge from a memory to one that it was compared with, or None where neither near nor in conflict."""
    judgement = compared.judgement
    if not judgement.conflict:
        if compared.similarity < RELATED_FROM:
            return None
        return Edge(key, compared.held.key, Relation.RELATES_TO, round(compared.similarity, 4), "near", inferred=True)
    replaces = judgement.verdict is Verdict.SUPERSEDES
    relation = Relation.SUPERSEDES if replaces else Relation.CONTRADICTS
    proposed = replaces and not judgement.certain
    return Edge(key, compared.held.key, relation, 1.0, explained(judgement), inferred=True, proposed=proposed)


def explained(judgement: Judgement) -> str:
    """The reason, and who judged."""
    return f"{judgement.reason}{_by(judgement.judge)}"


def judged_by(judge: str, edge: Edge) -> bool:
    """Whether an edge was drawn because that judge said so."""
    return edge.inferred and edge.reason.endswith(_by(judge))


def _by(judge: str) -> str:
    return f" (judged by {judge})"
