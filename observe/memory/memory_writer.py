"""Writer of new memories: it redacts them, finds duplicates, compares them with similar memories, and links them."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import VERSION as RULES
from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.memory import Edge, EventKind, Memory, MemoryEvent, MemoryState, Relation, StoredMemory
from ...core.origin import Origin
from ...search.rank.item_finder import MemoryFinder
from .contradictions import Comparison, Contradictions
from .memory_records import snapshot_of
from .memory_redaction import MemoryRedactor
from .rule_judge import Judgement, Verdict, differ_in_subject
from .supersession import supersede

_DESCRIPTION_SIMILARITY_MIN = 0.7
"""Minimum cosine similarity of a caller's description and the memory that it describes."""


class RememberResult(Struct, frozen=True):
    """Result of storing a memory.

    For a duplicate, `stored` is the memory that was already stored. `superseded` memories were replaced. For `proposed`
    memories, the replacement is only proposed. `conflicts` contradict the new memory and are unchanged. `edges` are the
    new edges.
    """

    stored: StoredMemory
    duplicate: bool
    superseded: tuple[StoredMemory, ...] = ()
    proposed: tuple[StoredMemory, ...] = ()
    conflicts: tuple[Comparison, ...] = ()
    edges: tuple[Edge, ...] = ()


class MemoryWriter:
    """Writer of new memories."""

    def __init__(
        self,
        store: Store,
        finder: MemoryFinder,
        redactor: MemoryRedactor,
        contradictions: Contradictions,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._finder, self._redactor, self._clock = store, finder, redactor, clock
        self._contradictions = contradictions

    def remember(self, memory: Memory, *, replaces: str | None = None) -> RememberResult:
        """Store a memory after redacting it.

        Content that is already stored for this namespace and type family is merged, unless the memory has its own file.
        A new memory that reports a change supersedes the older memory. If the change is uncertain, the supersession is
        only proposed. Other contradictions and similar memories are linked by edges.

        `replaces` is a text that describes the memories to supersede. If it is None, the content of the new memory
        determines them. If it is empty, no memory is superseded.

        Raises:
            InvalidInput: The memory cannot be stored.
        """
        memory = self._redactor.memory(memory.checked()).checked().expiring(self._clock())
        if (known := self._duplicate(memory)) is not None:
            with self._store.transaction():
                return RememberResult(self._merge(known.key, memory), duplicate=True)
        vectors = self._finder.embed(memory)
        compared = self._contradictions.compare(memory, vectors)
        if replaces is not None:
            described = self._described(memory, replaces)
            taken = {each.stored.key for each in described}
            compared = [*described, *(_without_supersession(each) for each in compared if each.stored.key not in taken)]
        with self._store.transaction():
            if (known := self._duplicate(memory)) is not None:
                return RememberResult(self._merge(known.key, memory), duplicate=True)
            at = self._clock()
            self._forget_expired(memory, at)
            key = self._store.memories.insert(memory, at, RULES)
            if vectors is not None:
                self._store.vectors.replace(vectors.model, {key: vectors.parts})
            self._store.memory_events.add(MemoryEvent(key, EventKind.CREATED, at, session_id=memory.session_id))
            return self._link(self._load(key), compared, at)

    def _duplicate(self, memory: Memory) -> StoredMemory | None:
        """Return the valid memory with exactly this content, even if it is superseded."""
        key = self._store.memories.find_same(memory, superseded=True)
        stored = self._load(key) if key is not None else None
        return stored if stored is not None and stored.is_valid_at(self._clock()) else None

    def _forget_expired(self, memory: Memory, at: Milliseconds) -> None:
        """Inside a transaction, forget the expired memory with this content, if one is stored."""
        key = self._store.memories.find_same(memory)
        if key is not None:
            old = self._load(key)
            self._store.memories.rewrite(replace(old, state=MemoryState.ARCHIVED, updated=at))
            event = MemoryEvent(key, EventKind.ARCHIVED, at, "expired", before=snapshot_of(old))
            self._store.memory_events.add(event)

    def _described(self, memory: Memory, replaces: str) -> list[Comparison]:
        """Return a comparison for each stored memory that the text `replaces` describes.

        In each comparison, the new memory supersedes the described memory. The supersession is uncertain if their
        subjects differ.
        """
        if not replaces.strip():
            return []
        described = replace(memory, content=replaces, title="")
        return [
            replace(
                each,
                judgement=Judgement(
                    Verdict.SUPERSEDES,
                    "The caller described it as replaced",
                    "caller",
                    certain=not differ_in_subject(each.stored.memory.content, replaces),
                ),
            )
            for each in self._contradictions.compare(described, min_similarity=_DESCRIPTION_SIMILARITY_MIN)
        ]

    def _merge(self, key: int, memory: Memory) -> StoredMemory:
        """Merge a duplicate into a stored memory inside a transaction: tags, importance, level, expiry and origin."""
        stored = self._load(key)
        known, importance = stored.memory, stored.memory.importance
        if stored.state is MemoryState.ACTIVE:  # A superseded memory keeps half its importance.
            importance = max(importance, memory.importance)
        expiries = known.valid_until, memory.valid_until
        merged = replace(
            known,
            tags=tuple(dict.fromkeys([*known.tags, *memory.tags])),
            importance=importance,
            level=memory.level if memory.level and memory.valid_until is None else known.level,
            valid_until=None if None in expiries else max(filter(None, expiries)),
            # If the user repeats the memory, the user becomes its origin. No other author raises the origin.
            origin=Origin.HUMAN if memory.origin is Origin.HUMAN else known.origin,
        )
        if merged == known:
            return stored
        at = self._clock()
        self._store.memories.rewrite(replace(stored, memory=merged, updated=at))
        event = MemoryEvent(key, EventKind.EDITED, at, "stored again", before=snapshot_of(stored))
        self._store.memory_events.add(event)
        return self._load(key)

    def _link(self, new: StoredMemory, compared: Sequence[Comparison], at: Milliseconds) -> RememberResult:
        """Add the edges from a new memory to the compared memories, inside a transaction."""
        current = self._store.memories.load([each.stored.key for each in compared])
        edges: list[Edge] = []
        superseded: list[StoredMemory] = []
        proposed: list[StoredMemory] = []
        for each in compared:
            old, edge = current.get(each.stored.key), each.edge_from(new.key)
            if old is None or old.state is not MemoryState.ACTIVE or edge is None:
                continue
            if edge.relation is not Relation.SUPERSEDES:
                edges.append(self._store.memory_edges.put(edge))
                continue
            # A less trusted memory never replaces a more trusted memory.
            doubtful = edge.proposed or new.memory.origin.trust < old.memory.origin.trust
            edges.append(supersede(self._store, new, old, replace(edge, proposed=doubtful), at))
            (proposed if edges[-1].proposed else superseded).append(self._load(old.key))
        replaced = {old.key for old in superseded}
        conflicts = [each for each in compared if each.judgement.conflict and each.stored.key not in replaced]
        return RememberResult(
            new,
            duplicate=False,
            superseded=tuple(superseded),
            proposed=tuple(proposed),
            conflicts=tuple(conflicts),
            edges=tuple(edges),
        )

    def _load(self, key: int) -> StoredMemory:
        return self._store.memories.load([key])[key]


def _without_supersession(compared: Comparison) -> Comparison:
    """Return the comparison with `SUPERSEDES` replaced by `CONTRADICTS`."""
    if compared.judgement.verdict is not Verdict.SUPERSEDES:
        return compared
    return replace(compared, judgement=replace(compared.judgement, verdict=Verdict.CONTRADICTS))
