"""Memories one by one: look up, list, count, edit, forget, restore. Nothing is ever deleted here."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput, MemoryProtected, NothingToUndo
from ...core.memory import (
    STARTS_AT,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryState,
    MemoryStats,
    StoredMemory,
    spoken,
)
from ...core.memory_filter import STORED, MemoryFilter, MemoryOrder
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin
from ...search.rank.memory_finder import MemoryFinder
from .changes import Revision, retold, told
from .conflicts import Conflicts
from .lookup import held_memory
from .secrecy import Secrecy
from .superseding import archive, check_free, reinstate, restore, superseding

LIST_MAX = 1_000
UNDONE = "undone"
"""The context of an event that took an edit back."""


class Forgotten(Struct, frozen=True):
    """What was archived, and the golden rules that were left alone."""

    forgotten: tuple[StoredMemory, ...]
    protected: tuple[StoredMemory, ...]


class Undone(Struct, frozen=True):
    """A memory of which something was taken back, and the event that says so."""

    held: StoredMemory
    event: MemoryEvent


class Memories:
    """The memories of a store. `conflicts` judges anew what one says after an edit."""

    def __init__(
        self,
        store: Store,
        finder: MemoryFinder,
        secrecy: Secrecy,
        conflicts: Conflicts,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._finder, self._secrecy, self._clock = store, finder, secrecy, clock
        self._conflicts = conflicts

    def get(self, memory_id: str, *, forgotten: bool = True) -> StoredMemory:
        """Return the memory with this id, by default also a forgotten one; raises `MemoryNotFound`."""
        return held_memory(self._store, memory_id, forgotten=forgotten)

    def at_path(self, path: str) -> StoredMemory | None:
        """The active memory that is kept in this file."""
        key = self._store.memories.at_path(path)
        return self._store.memories.load([key])[key] if key is not None else None

    def page(
        self,
        wanted: MemoryFilter | None = None,
        *,
        order: MemoryOrder = MemoryOrder.CREATED,
        descending: bool = True,
        limit: int = 100,
        offset: int = 0,
    ) -> list[StoredMemory]:
        """At most `limit` memories (1,000 where it is more) that satisfy the filter; valid ones unless it says else."""
        if limit < 1 or offset < 0:
            raise InvalidInput(f"Invalid limit or offset: {limit}, {offset}", hint="Ask for 1 or more, from 0 on.")
        return self._store.memories.select(
            self._valid(wanted), order, descending=descending, limit=min(limit, LIST_MAX), offset=offset
        )

    def count(self, wanted: MemoryFilter | None = None) -> int:
        """How many memories satisfy the filter; valid ones unless it says else."""
        return self._store.memories.count(self._valid(wanted))

    def count_by(self, column: str, wanted: MemoryFilter | None = None) -> dict[str, int]:
        """How many there are of each `namespace`, `type`, `level`, `project` or `state`, most first."""
        return self._store.memories.count_by(column, self._valid(wanted))

    def history(self, memory_id: str, kinds: Sequence[EventKind] = (), limit: int = 50) -> list[MemoryEvent]:
        """What happened to a memory, newest first."""
        return self._store.memory_events.of(self.get(memory_id).key, kinds, limit)

    def revise(self, memory_id: str, revision: Revision, *, force: bool = False) -> StoredMemory:
        """Edit a memory, without the secrets in what is said; raises `InvalidInput` where the same is held already.

        A golden rule is given another content, type or end by a person or by `force` only; otherwise `MemoryProtected`
        is raised. What others than a person say anew starts with the confidence of the new.
        """
        first, revision = held_memory(self._store, memory_id), self._secrecy.revision(revision)
        changed = revision.applied(first)
        vectors = self._finder.embed(changed) if _text(changed) != _text(first.memory) else None
        with self._store.transaction():
            held = held_memory(self._store, memory_id)
            memory, stats = revision.applied(held), held.stats
            if revision.replaces(held) and revision.origin is not Origin.HUMAN:
                if held.protected and not force:
                    raise MemoryProtected(memory_id)
                stats, memory = _fresh(stats), _demoted(memory, stats)
            if revision.type not in {None, held.memory.type}:
                stats = replace(stats, promoted_from="", strikes=0)
            after = self._put(held, memory, stats)
            if vectors is not None and _text(memory) == _text(changed):
                self._store.vectors.replace(vectors.model, {held.key: vectors.parts})
        self._judged_anew(held, after)
        return after

    def forget(self, memory_ids: Sequence[str], *, force: bool = False, reason: str = "") -> Forgotten:
        """Archive these memories; golden rules only by `force`. What is archived is found no more but kept.

        Raises `MemoryNotFound` where one does not exist, and archives none then.
        """
        with self._store.transaction():
            found = {held.key: held for held in map(self.get, memory_ids)}.values()
            active = [held for held in found if held.state is not MemoryState.ARCHIVED]
            protected = [held for held in active if held.protected and not force]
            unprotected = [held for held in active if held not in protected]
            gone = [archive(self._store, held, reason, self._clock()) for held in unprotected]
        return Forgotten(tuple(gone), tuple(protected))

    def restore(self, memory_id: str) -> StoredMemory:
        """Restore a forgotten, superseded or expired memory; raises `InvalidInput` where the same is stored already.

        A superseded one regains its importance and confidence and loses the edges that supersede it. A forgotten one
        that an edge still supersedes is superseded again. An expired one becomes valid without end.
        """
        with self._store.transaction():
            return self._restored(self.get(memory_id))

    def _restored(self, held: StoredMemory) -> StoredMemory:
        expired = self._expired(held)
        if held.state is MemoryState.ACTIVE and not expired:
            return held
        reason = "expired" if held.state is MemoryState.ACTIVE else spoken(held.state)
        if expired:
            held = replace(held, memory=replace(held.memory, valid_until=None))
        if held.state is MemoryState.SUPERSEDED:
            edges = superseding(self._store, held.key)
            self._store.memory_edges.delete([edge.id for edge in edges])
            return reinstate(self._store, held, self._clock())
        return restore(self._store, held, f"was {reason}", self._clock())

    def _expired(self, held: StoredMemory) -> bool:
        return held.memory.valid_until is not None and held.memory.valid_until <= self._clock()

    def undo(self, memory_id: str) -> Undone:
        """Take back the last edit of a memory, or the last time it was put away; raises `NothingToUndo` for neither.

        Done again, it takes back the edit before that.
        """
        [undone] = self.undo_all([memory_id])
        return undone

    def undo_all(self, memory_ids: Sequence[str]) -> list[Undone]:
        """`undo` of several memories, once each: of all of them or, where one raises, of none."""
        with self._store.transaction():
            before = list({held.key: held for held in map(self.get, memory_ids)}.values())
            undone = list(map(self._undone, before))
        for held, after in zip(before, undone, strict=True):
            self._judged_anew(held, after.held)
        return undone

    def _undone(self, held: StoredMemory) -> Undone:
        current = held.state is MemoryState.ACTIVE and not self._expired(held)
        after = self._edited_back(held) if current else self._restored(held)
        [event] = self._store.memory_events.of(held.key, limit=1)
        return Undone(after, event)

    def _edited_back(self, held: StoredMemory) -> StoredMemory:
        before = self._undoable(held)
        if before is None:
            raise NothingToUndo(held.id)
        return self._put(held, before, held.stats, UNDONE)

    def _undoable(self, held: StoredMemory) -> Memory | None:
        """What the memory said before the newest edit that was not taken back yet."""
        undone, after = 0, held.memory
        for event in self._store.memory_events.of(held.key, [EventKind.EDITED]):
            before = _before(event, held)
            # An edit of the type alone is never taken back, so none that was undone is its counterpart.
            if before == after:
                continue
            after = before
            if event.context == UNDONE:
                undone += 1
            elif undone:
                undone -= 1
            else:
                return before
        return None

    def _valid(self, wanted: MemoryFilter | None) -> MemoryFilter:
        wanted = wanted or MemoryFilter()
        every = wanted.valid_at is not None or wanted.states != STORED
        return wanted if every else replace(wanted, valid_at=self._clock())

    def _put(self, held: StoredMemory, memory: Memory, stats: MemoryStats, context: str = "") -> StoredMemory:
        """Write what a memory says now, inside a transaction."""
        if memory == held.memory:
            return held
        at = self._clock()
        after = replace(held, memory=memory, stats=stats, updated=at)
        if held.state is MemoryState.ACTIVE:
            check_free(self._store, after)
        self._store.memories.rewrite(after)
        self._store.memory_events.add(MemoryEvent(held.key, EventKind.EDITED, at, context, before=told(held)))
        return after

    def _judged_anew(self, before: StoredMemory, after: StoredMemory) -> None:
        """After an edit of what it says, what it disagrees with."""
        if after.memory.content != before.memory.content and after.state is MemoryState.ACTIVE:
            self._conflicts.renew(after)


def _before(edit: MemoryEvent, held: StoredMemory) -> Memory:
    """What a memory said before an edit; its type stays, which it may have earned since."""
    return replace(retold(edit.before), type=held.memory.type)


def _text(memory: Memory) -> tuple[str, str]:
    return memory.title, memory.content


def _fresh(stats: MemoryStats) -> MemoryStats:
    """What is left to a memory that says something else now: its counts, not its confidence."""
    return replace(stats, confidence=min(STARTS_AT, stats.confidence), strikes=0, promoted_from="")


def _demoted(memory: Memory, stats: MemoryStats) -> Memory:
    return replace(memory, type=stats.promoted_from) if memory.type == GOLDEN_RULE else memory
