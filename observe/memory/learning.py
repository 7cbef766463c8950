"""Learning: what was tried with a memory and how it went, by which it earns confidence or loses it."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import VALIDATION, EventKind, MemoryEvent, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin
from .changes import told
from .confidence import DECAY_FLOOR, IDLE, SESSIONS, after_failure, after_success, decayed, promoted, proven
from .lookup import held_memory
from .secrecy import Secrecy


class Outcome(Struct, frozen=True):
    """A memory before and after an outcome."""

    before: StoredMemory
    after: StoredMemory

    @property
    def promoted(self) -> bool:
        """Whether it became a golden rule by this."""
        return self.after.memory.type == GOLDEN_RULE != self.before.memory.type

    @property
    def demoted(self) -> bool:
        """Whether it is a golden rule no longer."""
        return self.before.memory.type == GOLDEN_RULE != self.after.memory.type


class Validation(Struct, frozen=True):
    """What was tried, newest first, and the counts of all times. `success_rate` is None before the first outcome."""

    events: tuple[MemoryEvent, ...]
    applications: int
    successes: int
    failures: int

    @property
    def success_rate(self) -> float | None:
        """Successes among the outcomes."""
        outcomes = self.successes + self.failures
        return self.successes / outcomes if outcomes else None


class Learning:
    """Records applications and outcomes. Each is one transaction, so that no count is lost between processes."""

    def __init__(self, store: Store, secrecy: Secrecy, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._secrecy, self._clock = store, secrecy, clock

    def apply(self, memory_id: str, context: str, session_id: str = "") -> int:
        """Note that a memory is tried; the event's id. Raises `MemoryNotFound`."""
        context, session_id = map(self._secrecy.text, (context, session_id))
        with self._store.transaction():
            held = held_memory(self._store, memory_id)
            event = MemoryEvent(held.key, EventKind.APPLIED, self._clock(), context, session_id)
            return self._store.memory_events.add(event)

    def outcome(self, memory_id: str, *, success: bool, error: str = "", session_id: str = "") -> Outcome:
        """Record an outcome and move the confidence; raises `MemoryNotFound`.

        Only a memory in the user's own words becomes a golden rule by success alone: once it is proven, and as many
        archived sessions as `SESSIONS` reported a success. Any other waits for the user's approval.
        """
        error, session_id = map(self._secrecy.text, (error, session_id))
        kind = EventKind.SUCCEEDED if success else EventKind.FAILED
        with self._store.transaction():
            held, at = held_memory(self._store, memory_id), self._clock()
            self._store.memory_events.add(MemoryEvent(held.key, kind, at, error, session_id))
            after = after_success(held) if success else after_failure(held)
            if success and proven(after) and self._confirmed(after):
                after = promoted(after)
            self._write(held, after, at)
        return Outcome(held, after)

    def _confirmed(self, held: StoredMemory) -> bool:
        own = held.memory.origin is Origin.HUMAN
        return own and self._store.memory_events.successful_sessions(held.key) >= SESSIONS

    def approvable(self) -> list[StoredMemory]:
        """Return the proven memories that the user neither approved nor declined as golden rules, oldest first."""
        declined = self._store.memory_events.memories_with(EventKind.DECLINED)
        wanted = MemoryFilter(protected=True, valid_at=self._clock())
        found = self._store.memories.select(wanted, descending=False)
        return [held for held in found if proven(held) and held.key not in declined]

    def approve(self, memory_id: str) -> StoredMemory:
        """Make a proven memory a golden rule because the user says so.

        Raises:
            MemoryNotFound: There is no such memory.
            InvalidInput: It is not proven.
        """
        with self._store.transaction():
            held = self._reviewed(memory_id)
            after = promoted(held)
            self._write(held, after, self._clock(), "approved by the user")
        return after

    def decline(self, memory_id: str) -> StoredMemory:
        """Never propose this proven memory as a golden rule again; raises like `approve`."""
        with self._store.transaction():
            held = self._reviewed(memory_id)
            self._store.memory_events.add(MemoryEvent(held.key, EventKind.DECLINED, self._clock(), "as a golden rule"))
        return held

    def _reviewed(self, memory_id: str) -> StoredMemory:
        held = held_memory(self._store, memory_id)
        if not proven(held):
            raise InvalidInput(f"{memory_id} is not waiting for a review", hint="Run `palaver memories review`.")
        return held

    def validation(self, memory_id: str, kinds: Sequence[EventKind] = VALIDATION, limit: int = 50) -> Validation:
        """What was tried with a memory; raises `MemoryNotFound`."""
        held = held_memory(self._store, memory_id)
        counts = self._store.memory_events.count(held.key)
        return Validation(
            tuple(self._store.memory_events.of(held.key, kinds, limit)),
            *(counts.get(kind, 0) for kind in VALIDATION),
        )

    def decay(self) -> list[StoredMemory]:
        """Lower the confidence of memories that were not used for 30 days; return them as they are now."""
        at = self._clock()
        idle = MemoryFilter(created_before=at - IDLE + 1, protected=False, pinned=False, min_confidence=DECAY_FLOOR)
        with self._store.transaction():
            held = self._store.memories.select(idle)
            used = self._store.memory_events.last_validated([each.key for each in held])
            lower = [decayed(each, used.get(each.key, 0), at) for each in held]
            due = [after for before, after in zip(held, lower, strict=True) if after is not before]
            for each in due:
                self._store.memories.earn(each.key, each.stats, each.decayed)
                self._store.memory_events.add(MemoryEvent(each.key, EventKind.DECAYED, at))
        return due

    def _write(self, before: StoredMemory, after: StoredMemory, at: Milliseconds, context: str = "") -> None:
        if before.memory.type == after.memory.type:
            self._store.memories.earn(after.key, after.stats)
            return
        self._store.memories.rewrite(replace(after, updated=at))
        kind = EventKind.PROMOTED if after.memory.type == GOLDEN_RULE else EventKind.DEMOTED
        self._store.memory_events.add(MemoryEvent(after.key, kind, at, context, before=told(before)))
