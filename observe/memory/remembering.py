"""Remembering: a new memory is compared with what is held already before it is stored."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import VERSION as RULES
from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.memory import Edge, EventKind, HeldMemory, Memory, MemoryEvent, MemoryState, Relation
from ...core.memory_types import family_of
from ...search.memory_finder import MemoryFinder
from .changes import told
from .comparing import Compared, Comparing, edge_to
from .judging import Judge, Verdict
from .secrecy import Secrecy
from .superseding import supersede

TWIN_FROM = 0.9
"""From which cosine on two memories that are judged to say the same are held once. A full stop alone costs 0.05."""


class Remembered(Struct, frozen=True):
    """What became of it. Where it is a duplicate, `held` is the memory that was there already, and nothing was stored.

    `superseded` are found no more; `conflicts` are still held and disagree; `spared` are golden rules that the new
    memory would have replaced. `edges` are those that were drawn. `similarity` is the duplicate's cosine.
    """

    held: HeldMemory
    duplicate: bool
    similarity: float | None = None
    superseded: tuple[HeldMemory, ...] = ()
    conflicts: tuple[Compared, ...] = ()
    spared: tuple[HeldMemory, ...] = ()
    edges: tuple[Edge, ...] = ()


class Remembering:
    """Stores memories."""

    def __init__(
        self,
        store: Store,
        finder: MemoryFinder,
        judge: Judge,
        secrecy: Secrecy,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._finder, self._secrecy, self._clock = store, finder, secrecy, clock
        self._comparing = Comparing(finder, judge, clock)

    def remember(self, memory: Memory) -> Remembered:
        """Hold a memory, without the secrets in it; raises `InvalidInput` where it cannot be stored.

        The same content in one namespace and family is held once; so is the same claim in other punctuation or grammar,
        unless it is kept in a file of its own. What says that it replaces an older memory supersedes it, what
        disagrees with one is linked to it as contradicting, and what is near is linked as related.
        """
        memory = self._secrecy.memory(memory.checked()).checked().expiring(self._clock())
        if (known := self._claimed(memory)) is not None:
            return self._again(known.key, memory, 1.0)
        vectors = self._finder.embed(memory)
        compared = self._comparing.with_held(memory, vectors)
        if (twin := _twin(memory, compared)) is not None:
            return self._again(twin.held.key, memory, twin.similarity)
        with self._store.transaction():
            if (known := self._claimed(memory)) is not None:
                return Remembered(self._merged(known.key, memory), duplicate=True, similarity=1.0)
            at = self._clock()
            self._retire_expired(memory, at)
            key = self._store.memories.insert(memory, at, RULES)
            if vectors is not None:
                self._store.vectors.replace(vectors.model, {key: vectors.parts})
            self._store.memory_events.add(MemoryEvent(key, EventKind.CREATED, at, session_id=memory.session_id))
            return self._linked(key, compared, at)

    def _claimed(self, memory: Memory) -> HeldMemory | None:
        """The memory that says exactly this already, and is valid."""
        key = self._store.memories.claimed(memory)
        held = self._store.memories.load([key]).get(key) if key is not None else None
        return held if held is not None and held.holds_at(self._clock()) else None

    def _retire_expired(self, memory: Memory, at: Milliseconds) -> None:
        """Put away what said this until it expired, inside a transaction."""
        key = self._store.memories.claimed(memory)
        if key is not None:
            old = self._store.memories.load([key])[key]
            self._store.memories.rewrite(replace(old, state=MemoryState.ARCHIVED, updated=at))
            self._store.memory_events.add(MemoryEvent(key, EventKind.ARCHIVED, at, "expired", before=told(old)))

    def _again(self, key: int, memory: Memory, similarity: float) -> Remembered:
        with self._store.transaction():
            return Remembered(self._merged(key, memory), duplicate=True, similarity=similarity)

    def _merged(self, key: int, memory: Memory) -> HeldMemory:
        """A memory with what its twin knows besides, its tags and a higher importance; inside a transaction."""
        held = self._load(key)
        tags = tuple(dict.fromkeys([*held.memory.tags, *memory.tags]))
        importance = max(held.memory.importance, memory.importance)
        ends = held.memory.valid_until, memory.valid_until
        until = None if None in ends else max(filter(None, ends))
        said = replace(held.memory, tags=tags, importance=importance, valid_until=until)
        if said == held.memory:
            return held
        at = self._clock()
        merged = replace(held, memory=said, updated=at)
        self._store.memories.rewrite(merged)
        self._store.memory_events.add(MemoryEvent(key, EventKind.EDITED, at, "said again", before=told(held)))
        return merged

    def _linked(self, key: int, compared: Sequence[Compared], at: Milliseconds) -> Remembered:
        """Draw the edges to what is near, inside a transaction."""
        new, current = self._load(key), self._store.memories.load([each.held.key for each in compared])
        edges: list[Edge] = []
        superseded: list[HeldMemory] = []
        spared: list[HeldMemory] = []
        for each in compared:
            old = current.get(each.held.key)
            if old is None or old.state is not MemoryState.ACTIVE:
                continue
            drawn = edge_to(key, each)
            if drawn.relation is not Relation.SUPERSEDES:
                edges.append(self._draw(drawn))
            elif old.golden or new.memory.origin.trust < old.memory.origin.trust:
                # What is proven, or the word of somebody more trusted, is contradicted and not replaced.
                edges.append(self._draw(replace(drawn, relation=Relation.CONTRADICTS)))
                spared += [old] if old.golden else []
            else:
                edges.append(supersede(self._store, new, old, drawn, at))
                superseded.append(self._load(old.key))
        gone = {held.key for held in superseded}
        return Remembered(
            new,
            duplicate=False,
            superseded=tuple(superseded),
            conflicts=tuple(each for each in compared if each.conflict and each.held.key not in gone),
            spared=tuple(spared),
            edges=tuple(edges),
        )

    def _draw(self, drawn: Edge) -> Edge:
        return replace(drawn, id=self._store.memory_edges.add(drawn)[0])

    def _load(self, key: int) -> HeldMemory:
        return self._store.memories.load([key])[key]


def _twin(memory: Memory, compared: Sequence[Compared]) -> Compared | None:
    """The memory that makes the same claim; a file of its own, another family or a lower origin is no twin."""
    for each in compared:
        same = each.judgement is not None and each.judgement.verdict is Verdict.SAME
        alike = each.held.family is family_of(memory.type) and not (memory.path or each.held.memory.path)
        trusted = each.held.memory.origin.trust >= memory.origin.trust
        if same and alike and trusted and each.similarity >= TWIN_FROM:
            return each
    return None
