"""Feedback: applications and outcomes of memories, the resulting confidence, and a health check of memories.

The confidence rules are based on those of the product Theo. A memory is proven if its confidence qualifies it as a
golden rule. `after_success`, `after_failure` and `decayed` are pure functions.

The health check lists contradictions, memories with low confidence, and unused memories.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import MemoryRedactor
from ...archiver.store import Store
from ...core.conversation import Milliseconds, Origin, Trust
from ...core.errors import InvalidInput
from ...core.memory import (
    ACTIVE,
    GOLDEN_FROM,
    GOLDEN_RULE,
    VALIDATION,
    EventKind,
    MemoryEvent,
    MemoryFilter,
    StoredMemory,
)
from ...core.reports import many
from ...search.rank.item_finder import MemoryFinder
from .contradictions import find_memory, snapshot_of

SUCCESS, FAILURE, UNUSED = 0.1, -0.15, -0.05
"""Changes of the confidence: after a success, after a failure, and after each 30 days without use."""
DECAY_FLOOR = 0.15
DEMOTED_TO = 0.7
STRIKES = 3
"""Number of consecutive failures after which a golden rule is demoted."""
UNTRUSTED_CAP = 0.85
"""Maximum confidence of a memory with low trust, below the threshold of a golden rule."""
IDLE = 30 * 86_400_000
"""Milliseconds without use after which the confidence is lowered by one step."""
SESSIONS = 6
"""Number of archived sessions that must report a success before a user's own memory becomes a golden rule."""


class ConfidenceChange(Struct, frozen=True):
    """Memory before and after its confidence changed."""

    before: StoredMemory
    after: StoredMemory

    @property
    def promoted(self) -> bool:
        """True if the memory became a golden rule."""
        return self.after.memory.type == GOLDEN_RULE != self.before.memory.type

    @property
    def demoted(self) -> bool:
        """True if the memory lost the status of a golden rule."""
        return self.before.memory.type == GOLDEN_RULE != self.after.memory.type


class ValidationHistory(Struct, frozen=True):
    """Applications and outcomes, newest first, and their total counts."""

    events: tuple[MemoryEvent, ...]
    applications: int
    successes: int
    failures: int

    @property
    def success_rate(self) -> float | None:
        """Share of successes among the outcomes, or None without outcomes."""
        outcomes = self.successes + self.failures
        return self.successes / outcomes if outcomes else None


class Feedback:
    """Recorder of applications and outcomes of memories. Each change is one transaction."""

    def __init__(self, store: Store, redactor: MemoryRedactor, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._redactor, self._clock = store, redactor, clock

    def apply(self, memory_id: str, context: str, session_id: str = "") -> int:
        """Record that a memory was applied, and return the ID of the event. Raises `MemoryNotFound`."""
        context, session_id = map(self._redactor.text, (context, session_id))
        with self._store.transaction():
            stored = find_memory(self._store, memory_id)
            event = MemoryEvent(stored.key, EventKind.APPLIED, self._clock(), context, session_id)
            return self._store.memory_events.add(event)

    def outcome(self, memory_id: str, *, success: bool, error: str = "", session_id: str = "") -> ConfidenceChange:
        """Record an outcome and change the confidence. Raises `MemoryNotFound`.

        A proven memory in the user's own words becomes a golden rule when `SESSIONS` archived sessions have reported a
        success. Any other proven memory waits for the user's approval.
        """
        error, session_id = map(self._redactor.text, (error, session_id))
        kind = EventKind.SUCCEEDED if success else EventKind.FAILED
        with self._store.transaction():
            stored, at = find_memory(self._store, memory_id), self._clock()
            self._store.memory_events.add(MemoryEvent(stored.key, kind, at, error, session_id))
            after = after_success(stored) if success else after_failure(stored)
            if success and is_proven(after) and self._is_confirmed(after):
                after = _promoted(after)
            self._write(stored, after, at)
        return ConfidenceChange(stored, after)

    def approvable(self) -> list[StoredMemory]:
        """Return the proven memories that the user has neither approved nor declined as golden rules, oldest first."""
        declined = self._store.memory_events.memories_with(EventKind.DECLINED)
        wanted = MemoryFilter(protected=True, valid_at=self._clock())
        found = self._store.memories.select(wanted, descending=False)
        return [stored for stored in found if is_proven(stored) and stored.key not in declined]

    def approve(self, memory_id: str) -> StoredMemory:
        """Make a proven memory a golden rule after the user's approval.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: The memory is not proven.
        """
        with self._store.transaction():
            stored = self._find_proven(memory_id)
            after = _promoted(stored)
            self._write(stored, after, self._clock(), "approved by the user")
        return after

    def decline(self, memory_id: str) -> StoredMemory:
        """Decline a proven memory, so that it is never proposed as a golden rule again.

        Raises the errors of `approve`.
        """
        with self._store.transaction():
            stored = self._find_proven(memory_id)
            event = MemoryEvent(stored.key, EventKind.DECLINED, self._clock(), "as a golden rule")
            self._store.memory_events.add(event)
        return stored

    def history(self, memory_id: str, kinds: Sequence[EventKind] = VALIDATION, limit: int = 50) -> ValidationHistory:
        """Return the applications and outcomes of a memory. Raises `MemoryNotFound`."""
        stored = find_memory(self._store, memory_id)
        counts = self._store.memory_events.count(stored.key)
        events = self._store.memory_events.of(stored.key, kinds, limit)
        return ValidationHistory(tuple(events), *(counts.get(kind, 0) for kind in VALIDATION))

    def decay(self) -> list[StoredMemory]:
        """Lower the confidence of memories that were not used for 30 days, and return them."""
        at = self._clock()
        idle = MemoryFilter(created_before=at - IDLE + 1, protected=False, pinned=False, min_confidence=DECAY_FLOOR)
        with self._store.transaction():
            stored = self._store.memories.select(idle)
            used = self._store.memory_events.last_validated([memory.key for memory in stored])
            lowered = [decayed(memory, used.get(memory.key, 0), at) for memory in stored]
            due = [after for before, after in zip(stored, lowered, strict=True) if after is not before]
            for memory in due:
                self._store.memories.save_stats(memory.key, memory.stats, memory.decayed)
                self._store.memory_events.add(MemoryEvent(memory.key, EventKind.DECAYED, at))
        return due

    def _is_confirmed(self, stored: StoredMemory) -> bool:
        from_user = stored.memory.origin is Origin.HUMAN
        return from_user and self._store.memory_events.successful_sessions(stored.key) >= SESSIONS

    def _find_proven(self, memory_id: str) -> StoredMemory:
        stored = find_memory(self._store, memory_id)
        if not is_proven(stored):
            raise InvalidInput(f"{memory_id} is not a proposal to review", hint="Run `palaver memories review`.")
        return stored

    def _write(self, before: StoredMemory, after: StoredMemory, at: Milliseconds, context: str = "") -> None:
        if before.memory.type == after.memory.type:
            self._store.memories.save_stats(after.key, after.stats)
            return
        self._store.memories.rewrite(replace(after, updated=at))
        kind = EventKind.PROMOTED if after.memory.type == GOLDEN_RULE else EventKind.DEMOTED
        event = MemoryEvent(after.key, kind, at, context, before=snapshot_of(before))
        self._store.memory_events.add(event)


def is_proven(stored: StoredMemory) -> bool:
    """Return whether a memory qualifies as a golden rule and is not a golden rule yet."""
    return stored.stats.confidence >= GOLDEN_FROM and stored.memory.type != GOLDEN_RULE and stored.family.promotes


def after_success(stored: StoredMemory) -> StoredMemory:
    """Return the memory with one more success."""
    stats = stored.stats
    cap = UNTRUSTED_CAP if stored.memory.origin.trust is Trust.LOW else 1.0
    confidence = max(stats.confidence, min(cap, _adjusted(stats.confidence, SUCCESS)))
    return replace(stored, stats=replace(stats, confidence=confidence, successes=stats.successes + 1, strikes=0))


def after_failure(stored: StoredMemory) -> StoredMemory:
    """Return the memory with one more failure. After three failures in a row, a golden rule regains its former type."""
    stats = stored.stats
    failed = replace(stats, confidence=_adjusted(stats.confidence, FAILURE), failures=stats.failures + 1)
    if stored.memory.type != GOLDEN_RULE:
        return replace(stored, stats=failed)
    if stats.strikes + 1 < STRIKES:
        return replace(stored, stats=replace(failed, strikes=stats.strikes + 1))
    demoted = replace(failed, confidence=DEMOTED_TO, strikes=0, promoted_from="")
    return replace(stored, memory=replace(stored.memory, type=stats.promoted_from), stats=demoted)


def decayed(stored: StoredMemory, used: Milliseconds, at: Milliseconds) -> StoredMemory:
    """Return the memory with its confidence lowered by one step for each 30 days without use.

    `used` is the time of the last application or outcome, or 0 if the memory was never used. The number of steps
    depends only on the stored times, so a second call changes nothing. Protected and pinned memories do not decay.
    """
    since = max(stored.created, stored.accessed or 0, used, stored.decayed or 0)
    steps, confidence = (at - since) // IDLE, stored.stats.confidence
    if steps < 1 or confidence <= DECAY_FLOOR or stored.protected or stored.memory.pinned:
        return stored
    lower = max(DECAY_FLOOR, _adjusted(confidence, UNUSED * steps))
    return replace(stored, stats=replace(stored.stats, confidence=lower), decayed=since + steps * IDLE)


def _promoted(stored: StoredMemory) -> StoredMemory:
    """Return the memory as a golden rule that keeps its former type."""
    stats = replace(stored.stats, promoted_from=stored.memory.type, strikes=0)
    return replace(stored, memory=replace(stored.memory, type=GOLDEN_RULE), stats=stats)


def _adjusted(confidence: float, change: float) -> float:
    # Round the sum. Six successes must reach 0.9, but the sum of floats is 0.8999….
    return round(min(1.0, max(0.0, confidence + change)), 4)


LOW_CONFIDENCE = 0.3
"""Confidence below which a memory is reported. It is the initial confidence, which failures and disuse lower."""
_CHECKED_MAX = 1_000
_DAY = 86_400_000


class ContradictingPair(Struct, frozen=True):
    """Two memories linked as contradicting. `similarity` is a cosine, or None if a vector is missing."""

    one: StoredMemory
    other: StoredMemory
    similarity: float | None


class MemoryHealth(Struct, frozen=True):
    """Result of a health check.

    `stale` pairs each unused memory with the time of its last outcome, or None. `recommendations` are sentences.
    """

    contradictions: tuple[ContradictingPair, ...]
    low_confidence: tuple[StoredMemory, ...]
    stale: tuple[tuple[StoredMemory, Milliseconds | None], ...]
    recommendations: tuple[str, ...]


class MemoryHealthCheck:
    """Health check of the active memories of a store."""

    def __init__(self, store: Store, finder: MemoryFinder, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock

    def check(
        self,
        namespace: str | None = None,
        *,
        stale_days: int = 30,
        contradictions: bool = True,
        low_confidence: bool = True,
        stale: bool = True,
    ) -> MemoryHealth:
        """Return linked contradictions, memories of low confidence, and memories unused for `stale_days` days.

        Protected memories are never stale. Low confidence and disuse are checked for the newest 1,000 memories.
        """
        at = self._clock()
        where = MemoryFilter(namespaces=(namespace,) if namespace else (), states=ACTIVE, valid_at=at)
        memories = self._store.memories.select(where, limit=_CHECKED_MAX)
        weak = [stored for stored in memories if low_confidence and stored.stats.confidence < LOW_CONFIDENCE]
        weak.sort(key=lambda stored: stored.stats.confidence)
        idle = self._stale(memories, at - stale_days * _DAY) if stale else []
        pairs = self._contradictions(where) if contradictions else []
        return MemoryHealth(tuple(pairs), tuple(weak), tuple(idle), _recommendations(len(pairs), len(weak), len(idle)))

    def _stale(
        self, memories: list[StoredMemory], before: Milliseconds
    ) -> list[tuple[StoredMemory, Milliseconds | None]]:
        validated = self._store.memory_events.last_validated([stored.key for stored in memories])
        return [
            (stored, validated.get(stored.key))
            for stored in memories
            if not stored.protected
            and max(stored.created, stored.accessed or 0, validated.get(stored.key, 0)) <= before
        ]

    def _contradictions(self, where: MemoryFilter) -> list[ContradictingPair]:
        pairs = [(edge.source, edge.target) for edge in self._store.memory_edges.contradictions()]
        stored = self._store.memories.load([key for pair in pairs for key in pair])
        admitted = [pair for pair in pairs if all(where.admits(stored[key]) for key in pair)]
        return [
            ContradictingPair(stored[source], stored[target], cosine)
            for (source, target), cosine in zip(admitted, self._finder.cosines(admitted), strict=True)
        ]


def _recommendations(contradictions: int, weak: int, stale: int) -> tuple[str, ...]:
    counts = (
        (contradictions, "Resolve", "contradiction", "contradictions"),
        (weak, "Review", "low-confidence memory", "low-confidence memories"),
        (stale, "Validate or archive", "stale memory", "stale memories"),
    )
    return tuple(f"{verb} {many(count, singular, several)}" for count, verb, singular, several in counts if count)
