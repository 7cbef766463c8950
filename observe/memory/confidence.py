"""Confidence: how outcomes and time change what a memory has earned. Pure rules, after Theo, its traps repaired."""

from msgspec.structs import replace

from ...core.conversation import Milliseconds
from ...core.memory import GOLDEN_FROM, MemoryStats, StoredMemory
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Trust

SUCCESS, FAILURE, UNUSED = 0.1, -0.15, -0.05
DECAY_FLOOR = 0.15
DEMOTED_TO = 0.7
STRIKES = 3
"""Failures that a golden rule survives, less one. A success forgets those before it."""
UNTRUSTED_CAP = 0.85
"""What the word of a tool, of a document from elsewhere or of the web can earn at most: it never becomes a rule."""
IDLE = 30 * 86_400_000
"""Milliseconds without use after which confidence decays, and again after each further such time."""
SESSIONS = 6
"""Archived sessions that must report success before a memory in the user's own words becomes a golden rule."""


def after_success(held: StoredMemory) -> StoredMemory:
    """Return the memory with one more success. Promotion is decided separately."""
    stats = held.stats
    cap = UNTRUSTED_CAP if held.memory.origin.trust is Trust.LOW else 1.0
    confidence = max(stats.confidence, min(cap, _moved(stats.confidence, SUCCESS)))
    earned = replace(stats, confidence=confidence, successes=stats.successes + 1, strikes=0)
    return replace(held, stats=earned)


def proven(held: StoredMemory) -> bool:
    """Return whether a memory qualifies as a golden rule and is none yet."""
    return held.stats.confidence >= GOLDEN_FROM and held.memory.type != GOLDEN_RULE and held.family.promotes


def promoted(held: StoredMemory) -> StoredMemory:
    """Return the memory as a golden rule that remembers its former type."""
    stats = replace(held.stats, promoted_from=held.memory.type, strikes=0)
    return replace(held, memory=replace(held.memory, type=GOLDEN_RULE), stats=stats)


def after_failure(held: StoredMemory) -> StoredMemory:
    """The memory with one failure more; its former type again where a golden rule failed too often."""
    stats = held.stats
    earned = replace(stats, confidence=_moved(stats.confidence, FAILURE), failures=stats.failures + 1)
    if held.memory.type != GOLDEN_RULE:
        return replace(held, stats=earned)
    if stats.strikes + 1 < STRIKES:
        return replace(held, stats=replace(earned, strikes=stats.strikes + 1))
    fallen: MemoryStats = replace(earned, confidence=DEMOTED_TO, strikes=0, promoted_from="")
    return replace(held, memory=replace(held.memory, type=stats.promoted_from), stats=fallen)


def decayed(held: StoredMemory, used: Milliseconds, at: Milliseconds) -> StoredMemory:
    """Return the memory with its confidence lowered by one step for each 30 days without use, or unchanged.

    `used` is when it was last applied or had an outcome, 0 for never. The number of steps follows from the stored
    times alone, so asking more often changes nothing. What is at or below the floor stays as it is.
    """
    since = max(held.created, held.accessed or 0, used, held.decayed or 0)
    steps, confidence = (at - since) // IDLE, held.stats.confidence
    if steps < 1 or confidence <= DECAY_FLOOR or held.protected or held.memory.pinned:
        return held
    lower = max(DECAY_FLOOR, _moved(confidence, UNUSED * steps))
    return replace(held, stats=replace(held.stats, confidence=lower), decayed=since + steps * IDLE)


def _moved(confidence: float, by: float) -> float:
    # Six successes must reach 0.9: the sum of floats is 0.8999….
    return round(min(1.0, max(0.0, confidence + by)), 4)
