"""Contradictions and supersession of memories.

`Contradictions` compares a memory with similar memories of its namespace, and links conflicts.

A newer memory can supersede an older memory, which stays searchable at half its importance. A forgotten memory does not
supersede others. When the newer memory is forgotten, the older memory is reinstated. When the newer memory is restored,
it supersedes the older memory again. Forgetting a superseded memory restores its former importance and confidence.

Other functions find memories by ID, find their known contradictions, and take snapshots of them.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

import orjson
from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds, Origin
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.memory import (
    ACTIVE,
    GOLDEN_RULE,
    Edge,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryFilter,
    MemoryState,
    Relation,
    StoredMemory,
)
from ...search.rank.item_finder import MemoryFinder, MemoryVectors
from .rule_judge import Judgement, MemoryPair, Verdict


class Judge(Protocol):
    """Protocol for judges, which compare pairs of memories."""

    name: str

    def judge_all(self, pairs: Sequence[MemoryPair]) -> list[Judgement]:
        """Return the relation of the newer memory to the older memory, for each pair."""
        ...

    def close(self) -> None:
        """Release the resources of the judge."""
        ...


JudgeFactory: TypeAlias = Callable[[Store], Judge]
"""Function that creates a judge for an open store."""


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
        verdict, target = self.judgement.verdict, self.stored.key
        if verdict is Verdict.SUPERSEDES:
            proposed = not self.judgement.certain
            return Edge(key, target, Relation.SUPERSEDES, 1.0, self.reason, inferred=True, proposed=proposed)
        if verdict is Verdict.CONTRADICTS:
            return Edge(key, target, Relation.CONTRADICTS, 1.0, self.reason, inferred=True)
        if self.similarity >= RELATED_FROM:
            return Edge(key, target, Relation.RELATES_TO, round(self.similarity, 4), "similar", inferred=True)
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
        where = MemoryFilter(namespaces=(memory.namespace,), states=ACTIVE, valid_at=self._clock())
        similar = self._finder.near(memory, vectors, where, limit + 1, min_similarity)
        others = [neighbour for neighbour in similar if stored is None or neighbour.key != stored.key][:limit]
        judgements = self._judge.judge_all([_in_order(neighbour.stored, memory, stored) for neighbour in others])
        return [
            Comparison(neighbour.stored, neighbour.similarity, judgement)
            for neighbour, judgement in zip(others, judgements, strict=True)
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
        comparisons = self.compare(stored.memory, stored=stored, limit=_DETECT_COMPARED, min_similarity=least)
        conflicts: list[DetectedConflict] = []
        with self._store.transaction():
            edges = [edge for edge in edges_at(self._store, [stored.key]) if edge.disagrees]
            linked = {key for edge in edges for key in (edge.source, edge.target)}
            for comparison in comparisons:
                is_linked = comparison.stored.key in linked
                if not comparison.judgement.conflict or (comparison.similarity < min_similarity and not is_linked):
                    continue
                new = link and not is_linked
                if new:
                    edge = Edge(
                        stored.key, comparison.stored.key, Relation.CONTRADICTS, 1.0, comparison.reason, inferred=True
                    )
                    self._store.memory_edges.put(edge)
                conflicts.append(DetectedConflict(comparison, new))
        return conflicts

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
        for comparison in self.compare(stored.memory, stored=stored, limit=_OUTCOME_COMPARED):
            compatible = not comparison.judgement.conflict and comparison.judgement.verdict is not Verdict.SAME
            if compatible or comparison.stored.protected or not _is_worse(comparison.stored, stored):
                continue
            if not link:
                return DetectedConflict(comparison, new=False)
            edge = Edge(stored.key, comparison.stored.key, Relation.SUPERSEDES, 1.0, comparison.reason, inferred=True)
            with self._store.transaction():
                older = find_memory(self._store, comparison.stored.id)
                supersede(self._store, stored, older, edge, self._clock())
            return DetectedConflict(comparison, new=True)
        return None


def _in_order(neighbour: StoredMemory, memory: Memory, stored: StoredMemory | None) -> MemoryPair:
    is_newer = stored is not None and neighbour.created > stored.created
    return (memory, neighbour.memory) if is_newer else (neighbour.memory, memory)


def _is_worse(neighbour: StoredMemory, stored: StoredMemory) -> bool:
    older = (neighbour.created, neighbour.key) < (stored.created, stored.key)
    less_trusted = neighbour.stats.confidence < stored.stats.confidence
    return older and less_trusted and neighbour.stats.failures > stored.stats.failures


def _judged_by(judge: str) -> str:
    return f" (judged by {judge})"


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
    ids_by_key = {stored.key: stored.id for stored in memories}
    edges = [
        edge for edge in store.memory_edges.outgoing(sorted(ids_by_key)) if edge.disagrees and edge.target in ids_by_key
    ]
    pairs = {(min(edge.source, edge.target), max(edge.source, edge.target)) for edge in edges}
    return tuple((ids_by_key[first], ids_by_key[second]) for first, second in sorted(pairs))


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


_CONFIDENCE_MAX = 0.1
"""Highest confidence of a superseded memory."""


def supersede(store: Store, newer: StoredMemory, older: StoredMemory, edge: Edge, at: Milliseconds) -> Edge:
    """Add the edge inside a transaction, mark the older memory as superseded, and return the edge with its ID.

    The importance of the older memory is halved and its confidence limited to 0.1. The edge is only proposed, and no
    memory changes, if the older memory is forgotten or a golden rule. The same applies if the older memory is protected
    and the newer memory is not in the user's own words.
    """
    protected = older.protected and newer.memory.origin is not Origin.HUMAN
    protected |= older.memory.type == GOLDEN_RULE or older.state is MemoryState.ARCHIVED
    edge = replace(edge, proposed=(edge.proposed or protected) and older.state is not MemoryState.SUPERSEDED)
    edge = store.memory_edges.put(edge)
    if not edge.proposed and older.state is MemoryState.ACTIVE:
        reason = f"by {newer.id}: {edge.reason}" if edge.reason else f"by {newer.id}"
        store.memories.rewrite(_superseded(store, older, reason, at))
    return edge


def superseding(store: Store, *keys: int, proposed: bool = False) -> list[Edge]:
    """Return the `supersedes` edges that lead to these memories and start at memories that are not forgotten.

    With `proposed`, include proposed edges.
    """
    edges = [edge for edge in store.memory_edges.incoming(keys) if edge.relation is Relation.SUPERSEDES]
    newer = store.memories.load([edge.source for edge in edges])
    return [
        edge
        for edge in edges
        if newer[edge.source].state is not MemoryState.ARCHIVED and (proposed or not edge.proposed)
    ]


def superseded_by(store: Store, key: int) -> list[Edge]:
    """Return the edges from a memory to the memories that it supersedes, without proposed edges."""
    outgoing = store.memory_edges.outgoing([key])
    return [edge for edge in outgoing if edge.relation is Relation.SUPERSEDES and not edge.proposed]


def reinstate(store: Store, stored: StoredMemory, at: Milliseconds) -> StoredMemory:
    """Make a superseded memory active again inside a transaction, with its former importance and confidence.

    Raises:
        InvalidInput: Another memory with the same content or file is stored.
    """
    active = replace(_with_former_values(store, stored), state=MemoryState.ACTIVE, updated=at)
    check_unique(store, active)
    store.memories.rewrite(active)
    event = MemoryEvent(stored.key, EventKind.RESTORED, at, "was superseded", before=snapshot_of(stored))
    store.memory_events.add(event)
    return active


def reinstate_targets(store: Store, edges: Iterable[Edge], at: Milliseconds) -> None:
    """Reinstate the targets of edges that were removed, or whose source was forgotten, inside a transaction.

    A target stays superseded if another memory supersedes it, or if another active memory has its content.
    """
    targets = sorted({edge.target for edge in edges if edge.relation is Relation.SUPERSEDES})
    for key, stored in store.memories.load(targets).items():
        if stored.state is MemoryState.SUPERSEDED and not superseding(store, key):
            with suppress(InvalidInput):
                reinstate(store, stored, at)


def archive(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Forget a memory inside a transaction and return it. The memories that it superseded are reinstated.

    A superseded memory first gets back its former importance and confidence.
    """
    forgotten = replace(_with_former_values(store, stored), state=MemoryState.ARCHIVED, updated=at)
    store.memories.rewrite(forgotten)
    store.memory_events.add(MemoryEvent(stored.key, EventKind.ARCHIVED, at, reason, before=snapshot_of(stored)))
    reinstate_targets(store, superseded_by(store, stored.key), at)
    return forgotten


def restore(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Restore a forgotten or expired memory inside a transaction and return it.

    The memory supersedes its former targets again. If another memory supersedes it, it becomes superseded.

    Raises:
        InvalidInput: Another memory with the same content or file is stored.
    """
    restored = replace(stored, state=MemoryState.ACTIVE, updated=at)
    if edges := superseding(store, stored.key):
        restored = _superseded(store, restored, f"by {edges[0].source_id}", at)
    else:
        check_unique(store, restored)
    store.memories.rewrite(restored)
    store.memory_events.add(MemoryEvent(stored.key, EventKind.RESTORED, at, reason, before=snapshot_of(stored)))
    for edge in superseded_by(store, stored.key):
        older = store.memories.load([edge.target])[edge.target]
        if older.state is MemoryState.ACTIVE:
            supersede(store, restored, older, edge, at)
    return restored


def check_unique(store: Store, stored: StoredMemory) -> None:
    """Raise `InvalidInput` if another active memory has the same content or the same file."""
    memories = store.memories
    twin = memories.at_path(stored.memory.path) or memories.find_same(stored.memory, stored.stats.promoted_from)
    if twin is not None and twin != stored.key:
        taken = ids.show("memory", twin)
        raise InvalidInput(f"{taken} already has this content or file", hint=f"Edit {taken}, or forget it first.")


def _superseded(store: Store, stored: StoredMemory, reason: str, at: Milliseconds) -> StoredMemory:
    """Return an active memory with the state `SUPERSEDED` and the lower importance and confidence. Record the event."""
    store.memory_events.add(MemoryEvent(stored.key, EventKind.SUPERSEDED, at, reason, before=snapshot_of(stored)))
    return replace(
        stored,
        memory=replace(stored.memory, importance=round(stored.memory.importance / 2, 4)),
        stats=replace(stored.stats, confidence=min(_CONFIDENCE_MAX, stored.stats.confidence)),
        state=MemoryState.SUPERSEDED,
        updated=at,
    )


def _with_former_values(store: Store, stored: StoredMemory) -> StoredMemory:
    """Return a superseded memory with its former importance and confidence, or any other memory unchanged."""
    if stored.state is not MemoryState.SUPERSEDED:
        return stored
    [event] = store.memory_events.of(stored.key, [EventKind.SUPERSEDED], 1)
    memory, confidence = parse_snapshot(event.before)
    return replace(
        stored,
        memory=replace(stored.memory, importance=memory.importance),
        stats=replace(stored.stats, confidence=max(stored.stats.confidence, confidence)),
    )
