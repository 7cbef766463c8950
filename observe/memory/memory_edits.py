"""Edits of memories: revise, forget, restore and undo. No edit deletes a memory permanently."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import MemoryProtected, NothingToUndo
from ...core.memory import (
    STARTS_AT,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryRevision,
    MemoryState,
    MemoryStats,
    StoredMemory,
    state_label,
)
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin
from ...search.rank.item_finder import MemoryFinder
from .contradictions import Contradictions
from .memory_records import find_memory, parse_snapshot, snapshot_of
from .memory_redaction import MemoryRedactor
from .supersession import archive, check_unique, reinstate, restore, superseding

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
