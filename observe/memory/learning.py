"""Learning: what was tried with a memory and how it went, by which it earns confidence or loses it."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.memory import VALIDATION, EventKind, HeldMemory, MemoryEvent
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import GOLDEN_RULE
from .changes import told
from .confidence import IDLE, after_failure, after_success, faded, fades
from .lookup import held_memory
from .secrecy import Secrecy


class Outcome(Struct, frozen=True):
    """What an outcome did. `counted` is False where this session had reported the same before: once is enough."""

    before: HeldMemory
    after: HeldMemory
    counted: bool

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
        """Note how it went, and move the confidence; raises `MemoryNotFound`.

        A named session counts once for success and once for failure, so that none can talk a memory up by itself.
        """
        error, session_id = map(self._secrecy.text, (error, session_id))
        kind = EventKind.SUCCEEDED if success else EventKind.FAILED
        with self._store.transaction():
            held, at = held_memory(self._store, memory_id), self._clock()
            counted = not (session_id and self._store.memory_events.told(held.key, kind, session_id))
            self._store.memory_events.add(MemoryEvent(held.key, kind, at, error, session_id))
            if not counted:
                return Outcome(held, held, counted=False)
            after = after_success(held) if success else after_failure(held)
            self._write(held, after, at)
        return Outcome(held, after, counted=True)

    def validation(self, memory_id: str, kinds: Sequence[EventKind] = VALIDATION, limit: int = 50) -> Validation:
        """What was tried with a memory; raises `MemoryNotFound`."""
        held = held_memory(self._store, memory_id)
        counts = self._store.memory_events.count(held.key)
        return Validation(
            tuple(self._store.memory_events.of(held.key, kinds, limit)),
            *(counts.get(kind, 0) for kind in VALIDATION),
        )

    def decay(self) -> list[HeldMemory]:
        """Let the confidence of what nobody used for 30 days fade by one step; those that did, as they are now."""
        at = self._clock()
        with self._store.transaction():
            due = [
                held for held in self._store.memories.select(MemoryFilter(created_before=at - IDLE)) if fades(held, at)
            ]
            for held in due:
                self._store.memories.earn(held.key, faded(held.standing), at)
                self._store.memory_events.add(MemoryEvent(held.key, EventKind.DECAYED, at))
        return [replace(held, standing=faded(held.standing), decayed=at) for held in due]

    def _write(self, before: HeldMemory, after: HeldMemory, at: Milliseconds) -> None:
        if before.memory.type == after.memory.type:
            self._store.memories.earn(after.key, after.standing)
            return
        self._store.memories.rewrite(replace(after, updated=at))
        kind = EventKind.PROMOTED if after.memory.type == GOLDEN_RULE else EventKind.DEMOTED
        self._store.memory_events.add(MemoryEvent(after.key, kind, at, before=told(before)))
