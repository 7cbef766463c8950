"""Theo tools for validation: applications and outcomes of memories, contradictions, and a health check."""

from typing import Annotated

from pydantic import Field

from ...core.errors import InvalidInput
from ...core.memory import VALIDATION, EventKind
from ...observe.memory import is_proven
from ...templates.quote import clean
from ..toolset import ToolReply, WholeNumber
from .parameters import Limit, MemoryId, Namespace, SessionId, checked_count
from .theo_context import TheoContext
from .theo_data import ApplyData, ContradictionsData, HealthData, HistoryData, OutcomeData, SupersedesData
from .theo_replies import instant, limited_reply, rounded, success_reply

_PROVEN = "Proven. It becomes a golden rule once the user approves it with `palaver memories review`."


def memory_apply(
    theo: TheoContext,
    memory_id: MemoryId,
    context: Annotated[str, Field(description="Where and how it is applied")],
    session_id: SessionId = None,
) -> ToolReply:
    """Record that a memory is being applied. Next: memory_outcome."""
    event = theo.core.feedback.apply(memory_id, context, session_id or "")
    return success_reply(ApplyData(memory_id, event))


def memory_outcome(
    theo: TheoContext,
    memory_id: MemoryId,
    success: Annotated[bool, Field(description="Whether it helped")],
    error_msg: Annotated[str | None, Field(description="What went wrong")] = None,
    session_id: SessionId = None,
) -> ToolReply:
    """Report the outcome of an applied memory: confidence +0.1 or -0.15. At 0.9 the user can make it a golden rule."""
    change = theo.core.feedback.outcome(memory_id, success=success, error=error_msg or "", session_id=session_id or "")
    return success_reply(
        OutcomeData(
            memory_id=memory_id,
            outcome_success=success,
            old_confidence=change.before.stats.confidence,
            new_confidence=change.after.stats.confidence,
            promoted=change.promoted,
            demoted=change.demoted,
            hint=_PROVEN if is_proven(change.after) else "",
        )
    )


def validation_history(
    theo: TheoContext,
    memory_id: MemoryId,
    event_type: Annotated[str | None, Field(description="applied, succeeded or failed")] = None,
    limit: Limit = 50,
) -> ToolReply:
    """List the applications and outcomes of a memory, newest first, with total counts."""
    if event_type is not None and event_type not in VALIDATION:
        raise InvalidInput(f"Invalid event type: {event_type}", hint=f"Use one of: {', '.join(VALIDATION)}.")
    kinds = VALIDATION if event_type is None else (EventKind(event_type),)
    history = theo.core.feedback.history(memory_id, kinds, checked_count(limit, 1_000))
    events = [
        {
            "id": event.id,
            "event_type": event.kind,
            "context": clean(event.context),
            "timestamp": instant(event.at),
            "session_id": event.session_id or None,
        }
        for event in history.events
    ]
    summary = {
        "total_applications": history.applications,
        "success_count": history.successes,
        "failure_count": history.failures,
        "success_rate": rounded(history.success_rate),
    }
    return limited_reply(HistoryData(events, summary))


def memory_detect_contradictions(
    theo: TheoContext,
    memory_id: MemoryId,
    similarity_threshold: Annotated[float, Field(description="Minimum cosine similarity of memories to compare")] = 0.7,
    create_edges: Annotated[bool, Field(description="Store the contradictions as edges")] = True,
) -> ToolReply:
    """Find memories of the same namespace that contradict this one. `judged_by` is the model or the rules used."""
    contradictions = theo.core.contradictions
    found = contradictions.detect(memory_id, min_similarity=similarity_threshold, link=create_edges)
    rows = [
        {
            "memory_id": each.comparison.stored.id,
            "content": clean(each.comparison.stored.memory.content),
            "similarity": rounded(each.comparison.similarity),
            "contradiction_reason": clean(each.comparison.judgement.reason),
            "judged_by": each.comparison.judgement.judge,
        }
        for each in found
    ]
    created = sum(each.new for each in found)
    return success_reply(ContradictionsData(rows, created, contradictions.judge), quotes=bool(rows))


def memory_check_supersedes(
    theo: TheoContext,
    memory_id: MemoryId,
    create_edge: Annotated[bool, Field(description="Store the result as an edge")] = True,
) -> ToolReply:
    """Check whether this memory, which succeeded at least twice, supersedes an older one that failed more often.

    With create_edge, the result is stored as an edge.
    """
    contradictions = theo.core.contradictions
    found = contradictions.supersede_by_outcomes(memory_id, link=create_edge)
    judgement = None if found is None else found.comparison.judgement
    return success_reply(
        SupersedesData(
            superseded_id=None if found is None else found.comparison.stored.id,
            edge_created=found is not None and found.new,
            reason=None if judgement is None else clean(judgement.reason),
            judged_by=contradictions.judge if judgement is None else judgement.judge,
        )
    )


def memory_analyze_health(
    theo: TheoContext,
    namespace: Namespace = None,
    include_contradictions: Annotated[bool, Field(description="List contradictions")] = True,
    include_low_confidence: Annotated[bool, Field(description="List memories of low confidence")] = True,
    include_stale: Annotated[bool, Field(description="List unused memories")] = True,
    stale_days: Annotated[WholeNumber, Field(description="Days without use that make a memory stale")] = 30,
) -> ToolReply:
    """List memories to review: contradictions, memories that failed, and unused memories."""
    if stale_days < 0:
        raise InvalidInput(f"Invalid stale_days: {stale_days}", hint="Give 0 or more days.")
    health = theo.core.health.check(
        namespace,
        stale_days=stale_days,
        contradictions=include_contradictions,
        low_confidence=include_low_confidence,
        stale=include_stale,
    )
    return success_reply(
        HealthData(
            contradictions=[
                {"id1": each.one.id, "id2": each.other.id, "similarity": each.similarity}
                for each in health.contradictions
            ],
            low_confidence=[
                {"id": stored.id, "confidence": stored.stats.confidence} for stored in health.low_confidence
            ],
            stale=[{"id": stored.id, "last_validated": instant(at)} for stored, at in health.stale],
            recommendations=list(health.recommendations),
        )
    )
