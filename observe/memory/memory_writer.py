"""Writer of memories: redact, find duplicates, compare and link new memories; revise, forget, restore and undo.

No edit deletes a memory permanently. Stored memories are redacted again when newer rules detect more secrets.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import VERSION, Redactor
from ...archiver.redaction import VERSION as RULES
from ...archiver.store import Store
from ...core.conversation import Milliseconds, Origin
from ...core.errors import InvalidNamespace, MemoryProtected, NothingToUndo
from ...core.memory import (
    GOLDEN_RULE,
    STARTS_AT,
    Edge,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryRevision,
    MemoryState,
    MemoryStats,
    Relation,
    StoredMemory,
    state_label,
)
from ...core.runtime import Progress, silent
from ...core.text import readable, visible
from ...search.rank.item_finder import MemoryFinder
from .contradictions import Comparison, Contradictions, Judgement, Verdict, differ_in_subject
from .supersession import (
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

_SECONDS_MAX: Final = 20.0
"""Maximum seconds that one ingest run spends on stored memories. The next run continues."""
_BATCH: Final = 200
_TEXT_FIELDS: Final = ("content", "title", "project", "level", "source", "session_id")
"""Text fields that are redacted. A namespace that contains a secret is rejected. A path is never changed."""

_Json: TypeAlias = str | Mapping[Any, Any] | tuple[Any, ...] | list[Any] | float | None


class MemoryRedactor:
    """Redactor that replaces each secret in a memory with a placeholder. Redacting again changes nothing."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def memory(self, memory: Memory) -> Memory:
        """Return the memory without secrets.

        Raises:
            InvalidNamespace: The namespace contains a secret.
        """
        return replace(memory, **self._fields(memory))

    def revision(self, revision: MemoryRevision) -> MemoryRevision:
        """Return the revision without secrets. Raises the errors of `memory`."""
        return replace(revision, **self._fields(revision))

    def text(self, text: str) -> str:
        """Return a text without secrets and invisible characters. Invalid bytes become U+FFFD."""
        return self._redactor.redact(visible(readable(text))).text

    def snapshot(self, text: str) -> str:
        """Return a snapshot of a memory without secrets."""
        memory, confidence = parse_snapshot(text)
        clean = self.memory(memory)
        return text if clean == memory else snapshot(clean, confidence)

    def _fields(self, source: Memory | MemoryRevision) -> dict[str, Any]:
        if source.namespace and (clean := self.text(source.namespace)) != source.namespace:
            raise InvalidNamespace(clean)
        given = {name: getattr(source, name, None) for name in (*_TEXT_FIELDS, "tags", "metadata")}
        return {name: self._value(value) for name, value in given.items() if value is not None}

    def _value(self, value: _Json) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self._value(name): self._named_value(name, each) for name, each in value.items()}
            case tuple():
                return tuple(map(self._value, value))
            case list():
                return list(map(self._value, value))
            case _:
                return value

    def _named_value(self, name: object, value: Any) -> Any:
        """Return a value without secrets. After a key such as `password`, the whole value is a secret."""
        clean = self._value(value)
        if clean != value or not isinstance(value, str) or not isinstance(name, str):
            return clean
        found = self._redactor.redact(f'{name} = "{value}"').findings
        return str(found[0]) if found and not self._redactor.redact(name).findings else clean


def redact_stored_memories(store: Store, redactor: Redactor, progress: Progress = silent) -> int:
    """Redact memories that were last checked with older rules. Return the number of memories with a secret.

    A redaction is not an edit: `updated` stays unchanged and no event is added, because the event would contain the
    secret. The user's own file in `.mnemonics` stays unchanged.
    """
    memory_redactor, end, found, done = MemoryRedactor(redactor), time.monotonic() + _SECONDS_MAX, 0, 0
    while time.monotonic() < end and (keys := store.memories.to_redact(VERSION, _BATCH)):
        with store.transaction():
            found += sum(_redact(store, memory_redactor, stored) for stored in store.memories.load(keys).values())
            store.memories.mark_redacted(keys, VERSION)
        done += len(keys)
        progress(done, done + len(store.memories.to_redact(VERSION, _BATCH)))
    return found


def _redact(store: Store, redactor: MemoryRedactor, stored: StoredMemory) -> bool:
    """Redact a memory, its events and its edges inside a transaction. Return whether they contained a secret."""
    memory = redactor.memory(stored.memory)
    found = memory != stored.memory
    if found:
        store.memories.rewrite(replace(stored, memory=memory, state=_state(store, stored, memory)))
        store.mnemonics.rehash(stored.key, stored.memory.content_hash, memory.content_hash)
    for event in store.memory_events.of(stored.key):
        clean = replace(
            event,
            context=redactor.text(event.context),
            session_id=redactor.text(event.session_id),
            before=redactor.snapshot(event.before) if event.before else "",
        )
        if clean != event:
            store.memory_events.redact(clean)
            found = True
    for edge in store.memory_edges.outgoing([stored.key]):
        if (reason := redactor.text(edge.reason)) != edge.reason:
            store.memory_edges.put(replace(edge, reason=reason))
            found = True
    return found


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


UNDONE = "undone"
"""Value of the field `context` of an event that records an undo of an edit."""


class ForgottenMemories(Struct, frozen=True):
    """Forgotten memories, and protected memories that were kept."""

    forgotten: tuple[StoredMemory, ...]
    protected: tuple[StoredMemory, ...]


class UndoneChange(Struct, frozen=True):
    """Memory after an undo, and the event that records the undo."""

    stored: StoredMemory
    event: MemoryEvent


class MemoryEditor:
    """Editor of stored memories. `contradictions` compares a memory again after an edit of its content."""

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

    def revise(self, memory_id: str, revision: MemoryRevision, *, force: bool = False) -> StoredMemory:
        """Edit a memory after redacting the revision, and return the memory.

        If someone other than the user edits the content, a higher confidence is lowered to that of a new memory.

        Raises:
            MemoryNotFound: The memory does not exist.
            MemoryProtected: Someone other than the user edits the content, type or expiry of a protected memory without
                `force`.
            InvalidInput: Another memory with the same content or file is stored.
        """
        first, revision = find_memory(self._store, memory_id), self._redactor.revision(revision)
        changed = revision.applied_to(first)
        vectors = self._finder.embed(changed) if _text(changed) != _text(first.memory) else None
        with self._store.transaction():
            stored = find_memory(self._store, memory_id)
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
                self._store.vectors.replace(vectors.model, {stored.key: vectors.parts})
        self._judge_again(stored, after)
        return after

    def rescope(self, memory_id: str, namespace: str) -> StoredMemory:
        """Move a memory to another namespace and remove its expiry time. Return the memory, whose ID is unchanged.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: The namespace is invalid, or has a memory with the same content.
        """
        with self._store.transaction():
            stored = find_memory(self._store, memory_id)
            memory = replace(stored.memory, namespace=namespace, valid_until=None).checked()
            return self._write(stored, memory, stored.stats, "moved")

    def forget(self, memory_ids: Sequence[str], *, force: bool = False, reason: str = "") -> ForgottenMemories:
        """Forget these memories. Protected memories are forgotten only with `force`. All of them can be restored.

        Raises:
            MemoryNotFound: One of the memories does not exist. No memory is forgotten.
        """
        with self._store.transaction():
            found = {stored.key: stored for stored in map(self._find, memory_ids)}.values()
            current = [stored for stored in found if stored.state is not MemoryState.ARCHIVED]
            protected = [stored for stored in current if stored.protected and not force]
            forgotten = [
                archive(self._store, stored, reason, self._clock()) for stored in current if stored not in protected
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
        with self._store.transaction():
            return self._restore(self._find(memory_id))

    def undo(self, memory_ids: Sequence[str]) -> list[UndoneChange]:
        """Undo the last edit of each memory. If a memory is forgotten, superseded or expired, restore it.

        Each further call undoes the edit before that one. If an error occurs, no memory changes.

        Raises:
            MemoryNotFound: One of the memories does not exist.
            NothingToUndo: One of the memories has no edit to undo.
        """
        with self._store.transaction():
            before = list({stored.key: stored for stored in map(self._find, memory_ids)}.values())
            undone = list(map(self._undo, before))
        for stored, after in zip(before, undone, strict=True):
            self._judge_again(stored, after.stored)
        return undone

    def _find(self, memory_id: str) -> StoredMemory:
        return find_memory(self._store, memory_id, forgotten=True)

    def _restore(self, stored: StoredMemory) -> StoredMemory:
        expired = self._is_expired(stored)
        if stored.state is MemoryState.ACTIVE and not expired:
            return stored
        reason = "expired" if stored.state is MemoryState.ACTIVE else state_label(stored.state)
        if expired:
            stored = replace(stored, memory=replace(stored.memory, valid_until=None))
        if stored.state is MemoryState.SUPERSEDED:
            edges = superseding(self._store, stored.key)
            self._store.memory_edges.delete([edge.id for edge in edges])
            return reinstate(self._store, stored, self._clock())
        return restore(self._store, stored, f"was {reason}", self._clock())

    def _is_expired(self, stored: StoredMemory) -> bool:
        return stored.memory.valid_until is not None and stored.memory.valid_until <= self._clock()

    def _undo(self, stored: StoredMemory) -> UndoneChange:
        current = stored.state is MemoryState.ACTIVE and not self._is_expired(stored)
        after = self._undo_edit(stored) if current else self._restore(stored)
        [event] = self._store.memory_events.of(stored.key, limit=1)
        return UndoneChange(after, event)

    def _undo_edit(self, stored: StoredMemory) -> StoredMemory:
        """Undo the newest edit that has not been undone yet. Raises `NothingToUndo` if there is none."""
        undone, after = 0, stored.memory
        for event in self._store.memory_events.of(stored.key, [EventKind.EDITED]):
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
            check_unique(self._store, after)
        self._store.memories.rewrite(after)
        event = MemoryEvent(stored.key, EventKind.EDITED, at, context, before=snapshot_of(stored))
        self._store.memory_events.add(event)
        return after

    def _judge_again(self, before: StoredMemory, after: StoredMemory) -> None:
        if after.memory.content != before.memory.content and after.state is MemoryState.ACTIVE:
            self._contradictions.update(after)


def _text(memory: Memory) -> tuple[str, str]:
    return memory.title, memory.content


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
