"""Theo's cycle of trying and learning: what was applied, how it went, and the history of both."""

from typing import Annotated

from pydantic import Field

from ...core.errors import InvalidInput
from ...core.memory import VALIDATION, EventKind
from ...observe.memory import is_proven
from ...templates.quote import clean
from ..toolset import Reply
from .arguments import Limit, MemoryId, SessionId, checked_count
from .desk import TheoDesk
from .envelope import budgeted, done, instant

_PROVEN = "Proven. It becomes a golden rule once the user approves it with `palaver memories review`."


def memory_apply(
    desk: TheoDesk,
    memory_id: MemoryId,
    context: Annotated[str, Field(description="Where and how it is applied")],
    session_id: SessionId = None,
) -> Reply:
    """Note that a memory is being tried. Next: memory_outcome."""
    return done({"memory_id": memory_id, "event_id": desk.core.feedback.apply(memory_id, context, session_id or "")})


def memory_outcome(
    desk: TheoDesk,
    memory_id: MemoryId,
    success: Annotated[bool, Field(description="Whether it helped")],
    error_msg: Annotated[str | None, Field(description="What went wrong")] = None,
    session_id: SessionId = None,
) -> Reply:
    """Report how a tried memory went: confidence +0.1 or -0.15. From 0.9 the user can approve it as a golden rule."""
    outcome = desk.core.feedback.outcome(memory_id, success=success, error=error_msg or "", session_id=session_id or "")
    return done(
        {
            "memory_id": memory_id,
            "outcome_success": success,
            "old_confidence": outcome.before.stats.confidence,
            "new_confidence": outcome.after.stats.confidence,
            "promoted": outcome.promoted,
            "demoted": outcome.demoted,
            **({"hint": _PROVEN} if is_proven(outcome.after) else {}),
        }
    )


def validation_history(
    desk: TheoDesk,
    memory_id: MemoryId,
    event_type: Annotated[str | None, Field(description="applied, succeeded or failed")] = None,
    limit: Limit = 50,
) -> Reply:
    """What was tried with a memory and how it went, newest first, with counts of all times."""
    kinds = VALIDATION if event_type is None else (_kind(event_type),)
    found = desk.core.feedback.history(memory_id, kinds, checked_count(limit, 1_000))
    events = [
        {
            "id": event.id,
            "event_type": event.kind,
            "context": clean(event.context),
            "timestamp": instant(event.at),
            "session_id": event.session_id or None,
        }
        for event in found.events
    ]
    summary = {
        "total_applications": found.applications,
        "success_count": found.successes,
        "failure_count": found.failures,
        "success_rate": None if found.success_rate is None else round(found.success_rate, 4),
    }
    return budgeted({"events": events, "summary": summary})


def _kind(name: str) -> EventKind:
    if name not in VALIDATION:
        raise InvalidInput(f"Invalid event type: {name}", hint=f"Use one of: {', '.join(VALIDATION)}.")
    return EventKind(name)
