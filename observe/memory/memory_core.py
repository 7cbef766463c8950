"""Entry point to memories: an object that stores, recalls, edits, links and checks the memories of a home."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol, Self

from msgspec.structs import replace

from ...archiver.redaction import Redactor
from ...archiver.store import Store
from ...core.conversation import Milliseconds, now
from ...core.errors import InvalidInput
from ...core.memory import (
    STORED,
    Category,
    ContextLevel,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryFilter,
    MemoryOrder,
    MemoryRevision,
    StoredMemory,
)
from ...core.runtime import Closing
from ...search.index.generation import Generations
from ...search.model.embedder import DEFAULT_MODEL, load
from ...search.model.embedding import Embedder
from ...search.rank.item_finder import CacheStats, MemoryFinder
from .contradictions import Contradictions, Judge, JudgeFactory, RuleJudge
from .feedback import Feedback, MemoryHealthCheck
from .memory_graph import MemoryGraph
from .memory_writer import ForgottenMemories, MemoryEditor, MemoryRedactor, MemoryWriter, RememberResult
from .recall import MemoryRecall, RecalledMemory
from .session_context import SessionContexts
from .supersession import find_memory

LIST_MAX = 1_000


class Memories(Protocol):
    """Operations on memories that every implementation provides. `tests/observe/memory/test_contract.py` checks them.

    All operations raise `InvalidInput` for invalid arguments, and `MemoryNotFound` for an unknown ID.
    """

    def remember(self, memory: Memory, /, *, replaces: str | None = None) -> RememberResult:
        """Store a memory."""
        ...

    def recall(self, query: str, wanted: MemoryFilter | None = None, /, *, limit: int = 5) -> list[RecalledMemory]:
        """Return the memories that match a query, best first."""
        ...

    def get(self, memory_id: str, /, *, forgotten: bool = True) -> StoredMemory:
        """Return the memory with this ID."""
        ...

    def revise(self, memory_id: str, revision: MemoryRevision, /, *, force: bool = False) -> StoredMemory:
        """Edit a memory and return the result."""
        ...

    def forget(self, memory_ids: Sequence[str], /, *, force: bool = False, reason: str = "") -> ForgottenMemories:
        """Forget memories, so that search does not find them."""
        ...

    def restore(self, memory_id: str, /) -> StoredMemory:
        """Restore and return a forgotten memory."""
        ...


class MemoryCore(Closing):
    """Memories of a home. Several processes can each open an instance, which serves one thread at a time.

    In addition to the operations of `Memories`, it provides `nearest`, `similar`, `expand`, `rescope`, `undo` and
    lists. `feedback` records outcomes, `graph` links memories, `contradictions` finds conflicts, and `health` finds
    memories to review.
    `contexts` selects memories for a session, and `projects` contains the namespace of each project.
    """

    def __init__(
        self,
        store: Store,
        generations: Generations,
        embedder: Embedder,
        redactor: Redactor,
        *,
        judge: Judge | None = None,
        clock: Callable[[], Milliseconds] = now,
    ) -> None:
        """Create the components on an open store. Without a `judge`, rules judge contradictions."""
        finder, redaction = MemoryFinder(store, generations, embedder), MemoryRedactor(redactor)
        # Edits and backfills are judged by rules only, so that they never cost money or wait for the network.
        by_rules = Contradictions(store, finder, RuleJudge(), clock)
        self.contradictions = Contradictions(store, finder, judge, clock) if judge else by_rules
        editor = MemoryEditor(store, finder, redaction, by_rules, clock)
        recall = MemoryRecall(store, finder, clock)
        self.store, self.projects, self._clock = store, store.projects, clock
        self.graph = MemoryGraph(store, redaction, by_rules, clock)
        self.feedback = Feedback(store, redaction, clock)
        self.health = MemoryHealthCheck(store, finder, clock)
        self.contexts = SessionContexts(store, recall, clock)
        self.remember = MemoryWriter(store, finder, redaction, self.contradictions, clock).remember
        self.recall, self.nearest, self.expand = recall.recall, recall.nearest, self.graph.expand
        self.similar, self.rescope = recall.similar, editor.rescope
        self.revise, self.forget, self.restore, self.undo = editor.revise, editor.forget, editor.restore, editor.undo
        self._finder, self._resources = finder, ExitStack()

    @classmethod
    def open(
        cls,
        store: Store,
        model: str | None = None,
        make_judge: JudgeFactory | None = None,
        clock: Callable[[], Milliseconds] = now,
    ) -> Self:
        """Open the memories in a store as a context manager, which also closes the store."""
        home = store.home
        with ExitStack() as resources:
            resources.enter_context(store)
            judge = make_judge(store) if make_judge is not None else None
            if judge is not None:
                resources.callback(judge.close)
            embedder = load(model or DEFAULT_MODEL)
            generations = Generations(home.index, read_only=home.read_only)
            core = cls(store, generations, embedder, Redactor(home.key()), judge=judge, clock=clock)
            core._resources = resources.pop_all()
        return core

    def close(self) -> None:
        """Close the judge and the store that were passed to `open`."""
        self._resources.close()

    def get(self, memory_id: str, *, forgotten: bool = True) -> StoredMemory:
        """Return the memory with this ID, by default even if it is forgotten. Raises `MemoryNotFound`."""
        return find_memory(self.store, memory_id, forgotten=forgotten)

    def at_path(self, path: str) -> StoredMemory | None:
        """Return the active memory that is stored in this file, or None."""
        key = self.store.memories.at_path(path)
        return self.store.memories.load([key])[key] if key is not None else None

    def page(
        self,
        wanted: MemoryFilter | None = None,
        *,
        order: MemoryOrder = MemoryOrder.CREATED,
        descending: bool = True,
        limit: int = 100,
        offset: int = 0,
    ) -> list[StoredMemory]:
        """Return at most `limit` memories (maximum 1,000) that satisfy the filter, by default only valid memories."""
        if limit < 1 or offset < 0:
            raise InvalidInput(
                f"Invalid limit or offset: {limit}, {offset}",
                hint="Give a limit of 1 or more and an offset of 0 or more.",
            )
        return self.store.memories.select(
            self._valid(wanted), order, descending=descending, limit=min(limit, LIST_MAX), offset=offset
        )

    def count(self, wanted: MemoryFilter | None = None) -> int:
        """Return the number of memories that satisfy the filter, by default only valid memories."""
        return self.store.memories.count(self._valid(wanted))

    def count_by(self, column: str, wanted: MemoryFilter | None = None) -> dict[str, int]:
        """Return the number of memories for each `namespace`, `type`, `project` or `state`, the most frequent first."""
        return self.store.memories.count_by(column, self._valid(wanted))

    def count_kinds(self) -> list[tuple[Category, ContextLevel, int]]:
        """Return the number of valid memories for each pair of category and context level."""
        return self.store.memories.count_kinds(self._valid(None))

    @property
    def cache_stats(self) -> CacheStats:
        """Hits and misses of the cache of query embeddings since the memories were opened."""
        return self._finder.cache_stats

    def history(self, memory_id: str, kinds: Sequence[EventKind] = (), limit: int = 50) -> list[MemoryEvent]:
        """Return the events of a memory, newest first."""
        return self.store.memory_events.of(self.get(memory_id).key, kinds, limit)

    def _valid(self, wanted: MemoryFilter | None) -> MemoryFilter:
        wanted = wanted or MemoryFilter()
        explicit = wanted.valid_at is not None or wanted.states != STORED
        return wanted if explicit else replace(wanted, valid_at=self._clock())
