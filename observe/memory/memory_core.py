"""Entry point to memories: store, recall, edit, forget, restore and list the memories of a home.

A recall does not change the confidence of a memory. No edit deletes a memory permanently. Stored memories are redacted
again when newer rules detect more secrets.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import VERSION, MemoryRedactor, Redactor
from ...archiver.store import Store
from ...core.conversation import Milliseconds, Origin, now
from ...core.errors import InvalidInput, MemoryProtected, NothingToUndo
from ...core.memory import (
    GOLDEN_RULE,
    STARTS_AT,
    STORED,
    Category,
    ContextLevel,
    Edge,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryFilter,
    MemoryOrder,
    MemoryRevision,
    MemoryState,
    MemoryStats,
    Relation,
    StoredMemory,
    state_label,
)
from ...core.query import Mode
from ...core.runtime import Closing, Progress, silent
from ...search.index.generation import Generations
from ...search.model.embedder import DEFAULT_MODEL, load
from ...search.model.embedding import Embedder
from ...search.rank.item_finder import CacheStats, FoundMemory, MemoryFinder
from .contradictions import (
    Comparison,
    Contradictions,
    Judge,
    JudgeFactory,
    archive,
    check_unique,
    find_memory,
    parse_snapshot,
    reinstate,
    restore,
    snapshot,
    snapshot_of,
    supersede,
    superseding,
)
from .feedback import Feedback, MemoryHealthCheck
from .memory_graph import MemoryGraph
from .rule_judge import Judgement, RuleJudge, Verdict, differ_in_subject
from .session_context import SessionContexts

LIST_MAX = 1_000
_CANDIDATES = 4
"""Number of candidates loaded for each result, so that importance and confidence can change their order."""
_DEPTH = 4
"""Number of text entries, and of vectors, that `similar` fuses for each candidate.

Compared with the default of the search engine, eight results take 25 % less time.
"""
_NEAREST = 3
"""Number of results that `nearest` returns."""
_STATS_SHARE = 0.2
"""Share of the score that depends on importance and confidence. Relevance determines the rest."""
_SUPERSEDED_SHARE = 0.5
"""Factor by which the score of a superseded memory is multiplied. It usually ranks below its replacement."""


UNDONE = "undone"
"""Value of the field `context` of an event that records an undo of an edit."""


_DESCRIPTION_SIMILARITY_MIN = 0.7
"""Minimum cosine similarity of a caller's description and the memory that it describes."""


class RecalledMemory(Struct, frozen=True):
    """Memory that matches a query.

    `score` is between 0 and 1, and orders the results of one query. `similarity` is a cosine, or None if none was
    computed. `calibrated` is the relevance on a scale of 0 to 1 where 0.7 is the relevance threshold of every query.
    """

    stored: StoredMemory
    score: float
    similarity: float | None
    calibrated: float = 0.0


class SimilarMemory(Struct, frozen=True):
    """Memory that is similar to a query. `similarity` is 0 to 1, and 0.7 is the relevance threshold."""

    stored: StoredMemory
    similarity: float


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


class ForgottenMemories(Struct, frozen=True):
    """Forgotten memories, and protected memories that were kept."""

    forgotten: tuple[StoredMemory, ...]
    protected: tuple[StoredMemory, ...]


class UndoneChange(Struct, frozen=True):
    """Memory after an undo, and the event that records the undo."""

    stored: StoredMemory
    event: MemoryEvent


class MemoryCore(Closing):
    """Memories of a home. Several processes can each open an instance, which serves one thread at a time.

    `feedback` records outcomes, `graph` links memories, `contradictions` finds conflicts, and `health` finds memories
    to review. `contexts` selects memories for a session, and `projects` contains the namespace of each project.
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
        self.store, self.projects, self._clock, self._resources = store, store.projects, clock, ExitStack()
        self._finder, self._redactor = MemoryFinder(store, generations, embedder), MemoryRedactor(redactor)
        # Edits and backfills are judged by rules only, so that they never cost money or wait for the network.
        self._by_rules = Contradictions(store, self._finder, RuleJudge(), clock)
        self.contradictions = Contradictions(store, self._finder, judge, clock) if judge else self._by_rules
        self.graph = MemoryGraph(store, self._redactor, self._by_rules, clock)
        self.feedback = Feedback(store, self._redactor, clock)
        self.health = MemoryHealthCheck(store, self._finder, clock)
        self.contexts = SessionContexts(store, self._related, clock)

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
        where: MemoryFilter | None = None,
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
            self._valid(where), order, descending=descending, limit=min(limit, LIST_MAX), offset=offset
        )

    def count(self, where: MemoryFilter | None = None) -> int:
        """Return the number of memories that satisfy the filter, by default only valid memories."""
        return self.store.memories.count(self._valid(where))

    def count_by(self, column: str, where: MemoryFilter | None = None) -> dict[str, int]:
        """Return the number of memories for each `namespace`, `type`, `project` or `state`, the most frequent first."""
        return self.store.memories.count_by(column, self._valid(where))

    def count_kinds(self) -> list[tuple[Category, ContextLevel, int]]:
        """Return the number of valid memories for each pair of category and context level."""
        return self.store.memories.count_kinds(self._valid(None))

    @property
    def cache_stats(self) -> CacheStats:
        """Hits and misses of the cache of query embeddings since the memories were opened."""
        return self._finder.cache_stats

    def superseding(self, memories: Iterable[StoredMemory]) -> list[Edge]:
        """Return the edges that supersede one of these memories, including proposed edges."""
        return superseding(self.store, *(stored.key for stored in memories), proposed=True)

    def history(self, memory_id: str, kinds: Sequence[EventKind] = (), limit: int = 50) -> list[MemoryEvent]:
        """Return the events of a memory, newest first."""
        return self.store.memory_events.of(self.get(memory_id).key, kinds, limit)

    def recall(
        self, query: str, where: MemoryFilter | None = None, *, limit: int = 5, count_access: bool = True
    ) -> list[RecalledMemory]:
        """Return the valid memories that match a query above the relevance threshold, best first.

        Each result counts as accessed, unless `count_access` is off or the store is read-only.

        Raises:
            InvalidInput: The query is empty, or the limit is below 1.
        """
        ranked = self._ranked(query, where, limit, weak=False)
        if count_access:
            self._count_access([match.stored.key for match in ranked])
        return ranked

    def similar(
        self,
        query: str,
        where: MemoryFilter | None = None,
        *,
        min_similarity: float,
        limit: int = 10,
        mode: Mode = Mode.BOTH,
        count_access: bool = True,
    ) -> list[SimilarMemory]:
        """Return the valid memories with a minimum similarity to a query.

        They are sorted by similarity times the `weight` of the memory. Raises the errors of `recall`.
        """
        _check(query, limit)
        where = replace(where or MemoryFilter(), valid_at=self._clock())
        most = limit * _CANDIDATES
        candidates = islice(self._finder.find(query, where, mode, weak=True, depth=_DEPTH * most), most)
        matches = [SimilarMemory(candidate.stored, candidate.calibrated) for candidate in candidates]
        kept = [match for match in matches if match.similarity >= min_similarity]
        kept.sort(key=lambda match: (-match.similarity * match.stored.memory.weight, match.stored.key))
        if count_access:
            self._count_access([match.stored.key for match in kept[:limit]])
        return kept[:limit]

    def nearest(self, query: str, where: MemoryFilter | None = None) -> list[RecalledMemory]:
        """Return the three most similar memories, even below the relevance threshold.

        They do not count as accessed. Raises the errors of `recall`.
        """
        return self._ranked(query, where, _NEAREST, weak=True)

    def _related(self, query: str, where: MemoryFilter, limit: int) -> list[StoredMemory]:
        return [match.stored for match in self.recall(query, where, limit=limit, count_access=False)]

    def _ranked(self, query: str, where: MemoryFilter | None, limit: int, *, weak: bool) -> list[RecalledMemory]:
        _check(query, limit)
        where = replace(where or MemoryFilter(), valid_at=self._clock())
        candidates = islice(self._finder.find(query, where, weak=weak), limit * _CANDIDATES)
        return sorted(map(_scored, candidates), key=lambda match: (-match.score, match.stored.key))[:limit]

    def _count_access(self, keys: Sequence[int]) -> None:
        if keys and not self.store.is_read_only:
            with self.store.transaction():
                self.store.memories.touch(keys, self._clock())

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
        if (duplicate := self._duplicate(memory)) is not None:
            with self.store.transaction():
                return RememberResult(self._merge(duplicate.key, memory), duplicate=True)
        vectors = self._finder.embed(memory)
        compared = self.contradictions.compare(memory, vectors)
        if replaces is not None:
            described = self._described(memory, replaces)
            taken = {comparison.stored.key for comparison in described}
            unnamed = [comparison for comparison in compared if comparison.stored.key not in taken]
            compared = [*described, *map(_without_supersession, unnamed)]
        with self.store.transaction():
            if (duplicate := self._duplicate(memory)) is not None:
                return RememberResult(self._merge(duplicate.key, memory), duplicate=True)
            at = self._clock()
            self._forget_expired(memory, at)
            key = self.store.memories.insert(memory, at, VERSION)
            if vectors is not None:
                self.store.vectors.replace(vectors.model, {key: vectors.parts})
            self.store.memory_events.add(MemoryEvent(key, EventKind.CREATED, at, session_id=memory.session_id))
            return self._link(self._load(key), compared, at)

    def _duplicate(self, memory: Memory) -> StoredMemory | None:
        """Return the valid memory with exactly this content, even if it is superseded."""
        key = self.store.memories.find_same(memory, superseded=True)
        stored = self._load(key) if key is not None else None
        return stored if stored is not None and stored.is_valid_at(self._clock()) else None

    def _forget_expired(self, memory: Memory, at: Milliseconds) -> None:
        """Inside a transaction, forget the expired memory with this content, if one is stored."""
        key = self.store.memories.find_same(memory)
        if key is not None:
            old = self._load(key)
            self.store.memories.rewrite(replace(old, state=MemoryState.ARCHIVED, updated=at))
            event = MemoryEvent(key, EventKind.ARCHIVED, at, "expired", before=snapshot_of(old))
            self.store.memory_events.add(event)

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
                comparison,
                judgement=Judgement(
                    Verdict.SUPERSEDES,
                    "The caller described it as replaced",
                    "caller",
                    certain=not differ_in_subject(comparison.stored.memory.content, replaces),
                ),
            )
            for comparison in self.contradictions.compare(described, min_similarity=_DESCRIPTION_SIMILARITY_MIN)
        ]

    def _merge(self, key: int, memory: Memory) -> StoredMemory:
        """Merge a duplicate into a stored memory inside a transaction: tags, importance, level, expiry and origin."""
        stored = self._load(key)
        earlier, importance = stored.memory, stored.memory.importance
        if stored.state is MemoryState.ACTIVE:  # A superseded memory keeps half its importance.
            importance = max(importance, memory.importance)
        expiries = earlier.valid_until, memory.valid_until
        merged = replace(
            earlier,
            tags=tuple(dict.fromkeys([*earlier.tags, *memory.tags])),
            importance=importance,
            level=memory.level if memory.level and memory.valid_until is None else earlier.level,
            valid_until=None if None in expiries else max(filter(None, expiries)),
            # If the user repeats the memory, the user becomes its origin. No other author raises the origin.
            origin=Origin.HUMAN if memory.origin is Origin.HUMAN else earlier.origin,
        )
        if merged == earlier:
            return stored
        at = self._clock()
        self.store.memories.rewrite(replace(stored, memory=merged, updated=at))
        event = MemoryEvent(key, EventKind.EDITED, at, "stored again", before=snapshot_of(stored))
        self.store.memory_events.add(event)
        return self._load(key)

    def _link(self, new: StoredMemory, compared: Sequence[Comparison], at: Milliseconds) -> RememberResult:
        """Add the edges from a new memory to the compared memories, inside a transaction."""
        current = self.store.memories.load([comparison.stored.key for comparison in compared])
        edges: list[Edge] = []
        superseded: list[StoredMemory] = []
        proposed: list[StoredMemory] = []
        for comparison in compared:
            old, edge = current.get(comparison.stored.key), comparison.edge_from(new.key)
            if old is None or old.state is not MemoryState.ACTIVE or edge is None:
                continue
            if edge.relation is not Relation.SUPERSEDES:
                edges.append(self.store.memory_edges.put(edge))
                continue
            # A less trusted memory never replaces a more trusted memory.
            doubtful = edge.proposed or new.memory.origin.trust < old.memory.origin.trust
            edges.append(supersede(self.store, new, old, replace(edge, proposed=doubtful), at))
            (proposed if edges[-1].proposed else superseded).append(self._load(old.key))
        replaced = {old.key for old in superseded}
        conflicts = [
            comparison
            for comparison in compared
            if comparison.judgement.conflict and comparison.stored.key not in replaced
        ]
        return RememberResult(
            new,
            duplicate=False,
            superseded=tuple(superseded),
            proposed=tuple(proposed),
            conflicts=tuple(conflicts),
            edges=tuple(edges),
        )

    def _load(self, key: int) -> StoredMemory:
        return self.store.memories.load([key])[key]

    def revise(self, memory_id: str, revision: MemoryRevision, *, force: bool = False) -> StoredMemory:
        """Edit a memory after redacting the revision, and return the memory.

        If someone other than the user edits the content, a higher confidence is lowered to that of a new memory.

        Raises:
            MemoryNotFound: The memory does not exist.
            MemoryProtected: Someone other than the user edits the content, type or expiry of a protected memory without
                `force`.
            InvalidInput: Another memory with the same content or file is stored.
        """
        first, revision = find_memory(self.store, memory_id), self._redactor.revision(revision)
        changed = revision.applied_to(first)
        vectors = self._finder.embed(changed) if _text(changed) != _text(first.memory) else None
        with self.store.transaction():
            stored = find_memory(self.store, memory_id)
            memory, stats = revision.applied_to(stored), stored.stats
            if revision.changes_claim(stored) and revision.origin is not Origin.HUMAN:
                if stored.protected and not force:
                    raise MemoryProtected(memory_id)
                if memory.type == GOLDEN_RULE:
                    memory = replace(memory, type=stats.promoted_from)
                confidence = min(STARTS_AT, stats.confidence)
                stats = replace(stats, confidence=confidence, strikes=0, promoted_from="")
            if revision.type not in {None, stored.memory.type}:
                stats = replace(stats, promoted_from="", strikes=0)
            after = self._write(stored, memory, stats)
            if vectors is not None and _text(memory) == _text(changed):
                self.store.vectors.replace(vectors.model, {stored.key: vectors.parts})
        self._judge_again(stored, after)
        return after

    def rescope(self, memory_id: str, namespace: str) -> StoredMemory:
        """Move a memory to another namespace and remove its expiry time. Return the memory, whose ID is unchanged.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: The namespace is invalid, or has a memory with the same content.
        """
        with self.store.transaction():
            stored = find_memory(self.store, memory_id)
            memory = replace(stored.memory, namespace=namespace, valid_until=None).checked()
            return self._write(stored, memory, stored.stats, "moved")

    def forget(self, memory_ids: Sequence[str], *, force: bool = False, reason: str = "") -> ForgottenMemories:
        """Forget these memories. Protected memories are forgotten only with `force`. All of them can be restored.

        Raises:
            MemoryNotFound: One of the memories does not exist. No memory is forgotten.
        """
        with self.store.transaction():
            named = {stored.key: stored for stored in map(self.get, memory_ids)}.values()
            current = [stored for stored in named if stored.state is not MemoryState.ARCHIVED]
            protected = [stored for stored in current if stored.protected and not force]
            forgotten = [
                archive(self.store, stored, reason, self._clock()) for stored in current if stored not in protected
            ]
        return ForgottenMemories(tuple(forgotten), tuple(protected))

    def restore(self, memory_id: str) -> StoredMemory:
        """Restore a forgotten, superseded or expired memory.

        A superseded memory regains its importance and confidence, and the edges that supersede it are removed. A
        forgotten memory that another memory still supersedes becomes superseded again. An expired memory loses its
        expiry time.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: Another memory with the same content or file is stored.
        """
        with self.store.transaction():
            return self._restore(self.get(memory_id))

    def undo(self, memory_ids: Sequence[str]) -> list[UndoneChange]:
        """Undo the last edit of each memory. If a memory is forgotten, superseded or expired, restore it.

        Each further call undoes the edit before that one. If an error occurs, no memory changes.

        Raises:
            MemoryNotFound: One of the memories does not exist.
            NothingToUndo: One of the memories has no edit to undo.
        """
        with self.store.transaction():
            before = list({stored.key: stored for stored in map(self.get, memory_ids)}.values())
            undone = list(map(self._undo, before))
        for stored, after in zip(before, undone, strict=True):
            self._judge_again(stored, after.stored)
        return undone

    def _restore(self, stored: StoredMemory) -> StoredMemory:
        expired = self._is_expired(stored)
        if stored.state is MemoryState.ACTIVE and not expired:
            return stored
        reason = "expired" if stored.state is MemoryState.ACTIVE else state_label(stored.state)
        if expired:
            stored = replace(stored, memory=replace(stored.memory, valid_until=None))
        if stored.state is MemoryState.SUPERSEDED:
            edges = superseding(self.store, stored.key)
            self.store.memory_edges.delete([edge.id for edge in edges])
            return reinstate(self.store, stored, self._clock())
        return restore(self.store, stored, f"was {reason}", self._clock())

    def _is_expired(self, stored: StoredMemory) -> bool:
        return stored.memory.valid_until is not None and stored.memory.valid_until <= self._clock()

    def _undo(self, stored: StoredMemory) -> UndoneChange:
        current = stored.state is MemoryState.ACTIVE and not self._is_expired(stored)
        after = self._undo_edit(stored) if current else self._restore(stored)
        [event] = self.store.memory_events.of(stored.key, limit=1)
        return UndoneChange(after, event)

    def _undo_edit(self, stored: StoredMemory) -> StoredMemory:
        """Undo the newest edit that has not been undone yet. Raises `NothingToUndo` if there is none."""
        undone, after = 0, stored.memory
        for event in self.store.memory_events.of(stored.key, [EventKind.EDITED]):
            # The memory may have become a golden rule, so undo keeps its type and skips edits that change only the
            # type.
            before = replace(parse_snapshot(event.before)[0], type=stored.memory.type)
            if before == after:
                continue
            after = before
            if event.context == UNDONE:
                undone += 1
            elif undone:
                undone -= 1
            else:
                return self._write(stored, before, stored.stats, UNDONE)
        raise NothingToUndo(stored.id)

    def _write(self, stored: StoredMemory, memory: Memory, stats: MemoryStats, context: str = "") -> StoredMemory:
        """Store an edited memory and its event inside a transaction."""
        if memory == stored.memory:
            return stored
        at = self._clock()
        after = replace(stored, memory=memory, stats=stats, updated=at)
        if stored.state is MemoryState.ACTIVE:
            check_unique(self.store, after)
        self.store.memories.rewrite(after)
        event = MemoryEvent(stored.key, EventKind.EDITED, at, context, before=snapshot_of(stored))
        self.store.memory_events.add(event)
        return after

    def _judge_again(self, before: StoredMemory, after: StoredMemory) -> None:
        if after.memory.content != before.memory.content and after.state is MemoryState.ACTIVE:
            self._by_rules.update(after)

    def _valid(self, where: MemoryFilter | None) -> MemoryFilter:
        where = where or MemoryFilter()
        explicit = where.valid_at is not None or where.states != STORED
        return where if explicit else replace(where, valid_at=self._clock())


def near_the_best(matches: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """Return the matches with at least half of the best score. Forgetting by a query ignores weaker matches."""
    return [match for match in matches if match.score >= matches[0].score / 2]


def _check(query: str, limit: int) -> None:
    if not query.strip():
        raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
    if limit < 1:
        raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")


def _scored(candidate: FoundMemory) -> RecalledMemory:
    stored = candidate.stored
    stats = (stored.memory.importance + stored.stats.confidence) / 2
    share = _SUPERSEDED_SHARE if stored.state is MemoryState.SUPERSEDED else 1
    score = share * candidate.relevance * (1 - _STATS_SHARE + _STATS_SHARE * stats)
    return RecalledMemory(stored, score, candidate.similarity, share * candidate.calibrated)


def _text(memory: Memory) -> tuple[str, str]:
    return memory.title, memory.content


def _without_supersession(compared: Comparison) -> Comparison:
    """Return the comparison with `SUPERSEDES` replaced by `CONTRADICTS`."""
    if compared.judgement.verdict is not Verdict.SUPERSEDES:
        return compared
    return replace(compared, judgement=replace(compared.judgement, verdict=Verdict.CONTRADICTS))


_SECONDS_MAX: Final = 20.0
"""Maximum seconds that one ingest run spends on stored memories. The next run continues."""
_BATCH: Final = 200


def redact_stored_memories(store: Store, redactor: Redactor, progress: Progress = silent) -> int:
    """Redact memories that were last checked with older rules. Return the number of memories with a secret.

    A redaction is not an edit: `updated` stays unchanged and no event is added, because the event would contain the
    secret. The user's own file in `.mnemonics` stays unchanged.
    """
    memory_redactor, end, redacted, done = MemoryRedactor(redactor), time.monotonic() + _SECONDS_MAX, 0, 0
    while time.monotonic() < end and (keys := store.memories.to_redact(VERSION, _BATCH)):
        with store.transaction():
            redacted += sum(_redact(store, memory_redactor, stored) for stored in store.memories.load(keys).values())
            store.memories.mark_redacted(keys, VERSION)
        done += len(keys)
        progress(done, done + len(store.memories.to_redact(VERSION, _BATCH)))
    return redacted


def _redact(store: Store, redactor: MemoryRedactor, stored: StoredMemory) -> bool:
    """Redact a memory, its events and its edges inside a transaction. Return whether they contained a secret."""
    memory = redactor.memory(stored.memory)
    has_secret = memory != stored.memory
    if has_secret:
        store.memories.rewrite(replace(stored, memory=memory, state=_state(store, stored, memory)))
        store.mnemonics.rehash(stored.key, stored.memory.content_hash, memory.content_hash)
    for event in store.memory_events.of(stored.key):
        clean = replace(
            event,
            context=redactor.text(event.context),
            session_id=redactor.text(event.session_id),
            before=_redacted_snapshot(redactor, event.before) if event.before else "",
        )
        if clean != event:
            store.memory_events.redact(clean)
            has_secret = True
    for edge in store.memory_edges.outgoing([stored.key]):
        if (reason := redactor.text(edge.reason)) != edge.reason:
            store.memory_edges.put(replace(edge, reason=reason))
            has_secret = True
    return has_secret


def _redacted_snapshot(redactor: MemoryRedactor, text: str) -> str:
    """Return a snapshot of a memory without secrets."""
    memory, confidence = parse_snapshot(text)
    clean = redactor.memory(memory)
    return text if clean == memory else snapshot(clean, confidence)


def _state(store: Store, stored: StoredMemory, memory: Memory) -> MemoryState:
    """Return the state that a memory gets after redaction.

    If redaction makes its content equal to the content of another memory, one of them is forgotten. This is the other
    memory if the redacted memory is protected, and otherwise the redacted memory.
    """
    same = store.memories.find_same(memory, stored.stats.promoted_from)
    if stored.state is not MemoryState.ACTIVE or same is None or same == stored.key:
        return stored.state
    if not stored.protected:
        return MemoryState.ARCHIVED
    store.memories.rewrite(replace(store.memories.load([same])[same], state=MemoryState.ARCHIVED))
    return MemoryState.ACTIVE
