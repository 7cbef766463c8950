"""Conflicts: memories that disagree, and which of them has been overtaken."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, MemoryState, Relation, StoredMemory
from ...search.rank.memory_finder import MemoryFinder
from .comparing import JUDGED_FROM, Compared, Comparing, explained, judged_by
from .judging import Judge, Judgement, Verdict
from .lookup import by_id, contradicting, held_memory
from .superseding import supersede

_LOOKED_AT, _OVERTAKEN_AMONG = 20, 10
_PROVEN = 2
"""Successes that a memory needs before it may overtake another."""


class Conflict(Struct, frozen=True):
    """A memory that disagrees with the one asked about. `edge` is the one that says so; `new` whether it was drawn now.

    `judge` names who judged, `similarity` is a true cosine.
    """

    held: StoredMemory
    similarity: float
    reason: str
    judge: str
    edge: Edge | None
    new: bool


class Conflicts:
    """Looks for disagreement among what is near in meaning. `judge` names who judges."""

    def __init__(self, store: Store, finder: MemoryFinder, judge: Judge, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._clock, self.judge = store, clock, judge.name
        self._comparing = Comparing(finder, judge, clock)

    def detect(self, memory_id: str, *, at_least: float = JUDGED_FROM, draw: bool = True) -> list[Conflict]:
        """Return the nearest memories of its namespace that disagree, nearest first; with `draw` link them as well.

        `at_least` is the lowest cosine; a memory that is linked already is reported below it too. Raises
        `MemoryNotFound` or `InvalidInput`.
        """
        if not 0 <= at_least <= 1:
            raise InvalidInput(f"Invalid similarity threshold: {at_least}", hint="Give a number from 0.0 to 1.0.")
        held = held_memory(self._store, memory_id)
        near = self._comparing.with_held(held.memory, held=held, limit=_LOOKED_AT, at_least=min(at_least, JUDGED_FROM))
        known = {
            edge.source if edge.target == held.key else edge.target for edge in self._edges(held.key) if edge.disagrees
        }
        found = [each for each in near if each.conflict and (each.similarity >= at_least or each.held.key in known)]
        with self._store.transaction():
            return [self._conflict(held, each, draw=draw) for each in found]

    def renew(self, held: StoredMemory) -> None:
        """Judge anew what this judge said of a memory that says something else now: a contradiction that is none any
        more goes, and a new one is linked.
        """
        with self._store.transaction():
            mine = [edge for edge in self._edges(held.key) if edge.disagrees and judged_by(self.judge, edge)]
            for edge in mine:
                self._renew(edge)
        self.detect(held.id)

    def _renew(self, edge: Edge) -> None:
        ends = self._store.memories.load([edge.source, edge.target])
        older, newer = sorted(ends.values(), key=lambda held: (held.created, held.key))
        judgement = self._comparing.judged(older.memory, newer.memory)
        if judgement.conflict:
            self._store.memory_edges.rewrite(replace(edge, reason=explained(judgement)))
        else:
            self._store.memory_edges.delete([edge.id])

    def among(self, memories: Sequence[StoredMemory]) -> tuple[tuple[str, str], ...]:
        """The ids of those of these that are known to contradict each other, in pairs."""
        known = {held.key: held.id for held in memories}
        return by_id(contradicting(self._store, known), known)

    def overtaken_by(self, memory_id: str, *, draw: bool = True) -> Conflict | None:
        """The first memory that this one supersedes by its record: it has two successes or more, the other is older,
        trusted less and failed more, and both disagree or say the same. With `draw` it is superseded. Raises
        `MemoryNotFound`.
        """
        held = held_memory(self._store, memory_id)
        if held.stats.successes < _PROVEN or held.state is not MemoryState.ACTIVE:
            return None
        for each in self._comparing.with_held(held.memory, held=held, limit=_OVERTAKEN_AMONG):
            if each.held.protected or not _worse(each.held, held):
                continue
            if each.conflict or each.judgement.verdict is Verdict.SAME:
                edge = self._overtake(held, each, each.judgement) if draw else None
                return Conflict(
                    each.held, each.similarity, each.judgement.reason, each.judgement.judge, edge, edge is not None
                )
        return None

    def _overtake(self, held: StoredMemory, each: Compared, judgement: Judgement) -> Edge:
        edge = Edge(held.key, each.held.key, Relation.SUPERSEDES, 1.0, explained(judgement), inferred=True)
        with self._store.transaction():
            return supersede(self._store, held, held_memory(self._store, each.held.id), edge, self._clock())

    def _edges(self, key: int) -> list[Edge]:
        return self._store.memory_edges.leaving([key]) + self._store.memory_edges.reaching([key])

    def _conflict(self, held: StoredMemory, each: Compared, *, draw: bool) -> Conflict:
        judgement = each.judgement
        known = [
            edge for edge in self._edges(held.key) if edge.disagrees and each.held.key in {edge.source, edge.target}
        ]
        edge, new = (known[0] if known else None), False
        if edge is None and draw:
            edge = Edge(held.key, each.held.key, Relation.CONTRADICTS, 1.0, explained(judgement), inferred=True)
            number, new = self._store.memory_edges.add(edge)
            edge = replace(edge, id=number)
        return Conflict(each.held, each.similarity, judgement.reason, judgement.judge, edge, new)


def _worse(other: StoredMemory, held: StoredMemory) -> bool:
    older = (other.created, other.key) < (held.created, held.key)
    trusted_less = other.stats.confidence < held.stats.confidence
    return older and trusted_less and other.stats.failures > held.stats.failures
