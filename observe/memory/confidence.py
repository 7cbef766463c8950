"""Confidence: how outcomes and time change what a memory has earned. Pure rules, after Theo, its traps repaired."""

from msgspec.structs import replace

from ...core.conversation import Milliseconds
from ...core.memory import GOLDEN_FROM, HeldMemory, MemoryState, Standing
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
"""Milliseconds without use after which confidence fades."""


def after_success(held: HeldMemory) -> HeldMemory:
    """The memory with one success more; a golden rule where it has now proven itself."""
    standing = held.standing
    cap = UNTRUSTED_CAP if held.memory.origin.trust is Trust.LOW else 1.0
    confidence = max(standing.confidence, min(cap, _moved(standing.confidence, SUCCESS)))
    earned = replace(standing, confidence=confidence, successes=standing.successes + 1, strikes=0)
    kind = held.memory.type
    if confidence >= GOLDEN_FROM and kind != GOLDEN_RULE and held.family.promotes:
        return replace(
            held,
            memory=replace(held.memory, type=GOLDEN_RULE),
            standing=replace(earned, promoted_from=kind),
        )
    return replace(held, standing=earned)


def after_failure(held: HeldMemory) -> HeldMemory:
    """The memory with one failure more; its former type again where a golden rule failed too often."""
    standing = held.standing
    earned = replace(standing, confidence=_moved(standing.confidence, FAILURE), failures=standing.failures + 1)
    if held.memory.type != GOLDEN_RULE:
        return replace(held, standing=earned)
    if standing.strikes + 1 < STRIKES:
        return replace(held, standing=replace(earned, strikes=standing.strikes + 1))
    fallen: Standing = replace(earned, confidence=DEMOTED_TO, strikes=0, promoted_from="")
    return replace(held, memory=replace(held.memory, type=standing.promoted_from), standing=fallen)


def fades(held: HeldMemory, at: Milliseconds) -> bool:
    """Whether confidence is due to fade: active, unused for 30 days, and not faded in the last 30."""
    last = max(held.accessed or held.created, held.decayed or 0)
    safe = held.golden or held.memory.pinned or held.state is not MemoryState.ACTIVE
    return not safe and at - last >= IDLE and held.standing.confidence > DECAY_FLOOR


def faded(standing: Standing) -> Standing:
    """One step down, never below the floor; what is below it already stays there."""
    if standing.confidence <= DECAY_FLOOR:
        return standing
    return replace(standing, confidence=max(DECAY_FLOOR, _moved(standing.confidence, UNUSED)))


def _moved(confidence: float, by: float) -> float:
    # Six successes must reach 0.9: the sum of floats is 0.8999….
    return round(min(1.0, max(0.0, confidence + by)), 4)
