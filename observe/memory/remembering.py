"""Remembering: a new memory is compared with what is held already before it is stored."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import VERSION as RULES
from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.memory import Edge, EventKind, Memory, MemoryEvent, MemoryState, Relation, StoredMemory
from ...core.origin import Origin
from ...search.rank.memory_finder import MemoryFinder
from .changes import told
from .comparing import Compared, Comparing, edge_to
from .judging import Judge, Verdict, named
from .secrecy import Secrecy
from .superseding import supersede

_NAMED_FROM = 0.7
"""Cosine from which a caller's description names a memory to supersede."""


class Remembered(Struct, frozen=True):
    """Result of storing a memory. For a duplicate, `held` is the memory that was stored before.

    `superseded` were marked as replaced. `proposed` may have been replaced and are unchanged. `conflicts` are unchanged
    and disagree. `edges` are the new ones.
    """

    held: StoredMemory
    duplicate: bool
    superseded: tuple[StoredMemory, ...] = ()
    proposed: tuple[StoredMemory, ...] = ()
    conflicts: tuple[Compared, ...] = ()
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

    def remember(self, memory: Memory, *, replaces: str | None = None) -> Remembered:
        """Store a memory without its secrets; raises `InvalidInput` where it cannot be stored.

        The same content is stored once per namespace and type family, unless it has a file of its own. A memory that
        says that an older one changed supersedes it, or is proposed to where that is not certain. One that disagrees
        with an older one is linked as contradicting it, a near one as related.

        `replaces` describes the older memories to supersede: without it the content decides, empty supersedes none.
        """
        memory = self._secrecy.memory(memory.checked()).checked().expiring(self._clock())
        if (known := self._claimed(memory)) is not None:
            with self._store.transaction():
                return Remembered(self._merged(known.key, memory), duplicate=True)
        vectors = self._finder.embed(memory)
        compared = self._comparing.with_held(memory, vectors)
        if replaces is not None:
            described = self._described(memory, replaces)
            taken = {each.held.key for each in described}
            compared = [*described, *(_kept(each) for each in compared if each.held.key not in taken)]
        with self._store.transaction():
            if (known := self._claimed(memory)) is not None:
                return Remembered(self._merged(known.key, memory), duplicate=True)
            at = self._clock()
            self._retire_expired(memory, at)
            key = self._store.memories.insert(memory, at, RULES)
            if vectors is not None:
                self._store.vectors.replace(vectors.model, {key: vectors.parts})
            self._store.memory_events.add(MemoryEvent(key, EventKind.CREATED, at, session_id=memory.session_id))
            return self._linked(key, compared, at)

    def _claimed(self, memory: Memory) -> StoredMemory | None:
        """Return the valid memory that says exactly this already, also a superseded one."""
        key = self._store.memories.claimed(memory, superseded=True)
        held = self._store.memories.load([key]).get(key) if key is not None else None
        return held if held is not None and held.is_valid_at(self._clock()) else None

    def _retire_expired(self, memory: Memory, at: Milliseconds) -> None:
        """Put away what said this until it expired, inside a transaction."""
        key = self._store.memories.claimed(memory)
        if key is not None:
            old = self._store.memories.load([key])[key]
            self._store.memories.rewrite(replace(old, state=MemoryState.ARCHIVED, updated=at))
            self._store.memory_events.add(MemoryEvent(key, EventKind.ARCHIVED, at, "expired", before=told(old)))

    def _described(self, memory: Memory, replaces: str) -> list[Compared]:
        """Return the memories that a description names, judged as superseded; uncertain where it tells them apart."""
        if not replaces.strip():
            return []
        asked = replace(memory, content=replaces, title="")
        found = self._comparing.with_held(asked, at_least=_NAMED_FROM)
        return [replace(each, judgement=named(each.held.memory.content, replaces)) for each in found]

    def _merged(self, key: int, memory: Memory) -> StoredMemory:
        """Add the tags and a higher importance of a duplicate to a memory, inside a transaction; return it."""
        held = self._load(key)
        tags = tuple(dict.fromkeys([*held.memory.tags, *memory.tags]))
        importance = held.memory.importance
        if held.state is MemoryState.ACTIVE:  # a superseded one stays at half its importance
            importance = max(importance, memory.importance)
        ends = held.memory.valid_until, memory.valid_until
        until = None if None in ends else max(filter(None, ends))
        # The user who says the same makes it their own word; nobody else raises its origin.
        origin = Origin.HUMAN if memory.origin is Origin.HUMAN else held.memory.origin
        said = replace(held.memory, tags=tags, importance=importance, valid_until=until, origin=origin)
        if said == held.memory:
            return held
        at = self._clock()
        merged = replace(held, memory=said, updated=at)
        self._store.memories.rewrite(merged)
        self._store.memory_events.add(MemoryEvent(key, EventKind.EDITED, at, "said again", before=told(held)))
        return merged

    def _linked(self, key: int, compared: Sequence[Compared], at: Milliseconds) -> Remembered:
        """Draw the edges to near memories, inside a transaction."""
        new, current = self._load(key), self._store.memories.load([each.held.key for each in compared])
        edges: list[Edge] = []
        superseded: list[StoredMemory] = []
        proposed: list[StoredMemory] = []
        for each in compared:
            old = current.get(each.held.key)
            if old is None or old.state is not MemoryState.ACTIVE:
                continue
            drawn = edge_to(key, each)
            if drawn is None:
                continue
            if drawn.relation is not Relation.SUPERSEDES:
                edges.append(self._draw(drawn))
                continue
            # A less trusted statement never replaces a more trusted one.
            doubtful = drawn.proposed or new.memory.origin.trust < old.memory.origin.trust
            edge = supersede(self._store, new, old, replace(drawn, proposed=doubtful), at)
            edges.append(edge)
            (proposed if edge.proposed else superseded).append(self._load(old.key))
        gone = {held.key for held in superseded}
        return Remembered(
            new,
            duplicate=False,
            superseded=tuple(superseded),
            proposed=tuple(proposed),
            conflicts=tuple(each for each in compared if each.conflict and each.held.key not in gone),
            edges=tuple(edges),
        )

    def _draw(self, drawn: Edge) -> Edge:
        return replace(drawn, id=self._store.memory_edges.add(drawn)[0])

    def _load(self, key: int) -> StoredMemory:
        return self._store.memories.load([key])[key]


def _kept(compared: Compared) -> Compared:
    """Return the comparison with a supersession turned into a contradiction."""
    if compared.judgement.verdict is not Verdict.SUPERSEDES:
        return compared
    return replace(compared, judgement=replace(compared.judgement, verdict=Verdict.CONTRADICTS))
