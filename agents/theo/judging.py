"""Theo's validation: what contradicts, what has been overtaken, and what somebody should look at."""

from typing import Annotated

from pydantic import Field

from ...core.errors import InvalidInput
from ...templates.quote import clean
from ..toolset import Reply, WholeNumber
from .arguments import MemoryId, Namespace
from .desk import TheoDesk
from .envelope import cosine, done, instant


def memory_detect_contradictions(
    desk: TheoDesk,
    memory_id: MemoryId,
    similarity_threshold: Annotated[float, Field(description="Least cosine of memories to compare")] = 0.7,
    create_edges: Annotated[bool, Field(description="Store the contradictions as edges")] = True,
) -> Reply:
    """Find memories of the same namespace that contradict this one. `judged_by` says who judged."""
    conflicts = desk.core.contradictions
    found = conflicts.detect(memory_id, min_similarity=similarity_threshold, draw=create_edges)
    rows = [
        {
            "memory_id": each.comparison.stored.id,
            "content": clean(each.comparison.stored.memory.content),
            "similarity": cosine(each.comparison.similarity),
            "contradiction_reason": clean(each.comparison.judgement.reason),
            "judged_by": each.comparison.judgement.judge,
        }
        for each in found
    ]
    created = sum(each.new for each in found)
    return done({"contradictions": rows, "edges_created": created, "judged_by": conflicts.judge})


def memory_check_supersedes(
    desk: TheoDesk,
    memory_id: MemoryId,
    create_edge: Annotated[bool, Field(description="Store the result as an edge")] = True,
) -> Reply:
    """Whether this memory, proven by two successes, overtakes an older one that failed; with create_edge it does."""
    conflicts = desk.core.contradictions
    found = conflicts.overtake(memory_id, draw=create_edge)
    return done(
        {
            "superseded_id": None if found is None else found.comparison.stored.id,
            "edge_created": found is not None and found.new,
            "reason": None if found is None else clean(found.comparison.judgement.reason),
            "judged_by": conflicts.judge if found is None else found.comparison.judgement.judge,
        }
    )


def memory_analyze_health(
    desk: TheoDesk,
    namespace: Namespace = None,
    include_contradictions: Annotated[bool, Field(description="List contradictions")] = True,
    include_low_confidence: Annotated[bool, Field(description="List memories of low confidence")] = True,
    include_stale: Annotated[bool, Field(description="List unused memories")] = True,
    stale_days: Annotated[WholeNumber, Field(description="Days without use that make a memory stale")] = 30,
) -> Reply:
    """What should be looked at: contradictions, memories that failed, memories that nobody used."""
    if stale_days < 0:
        raise InvalidInput(f"Invalid stale_days: {stale_days}", hint="Give 0 or more days.")
    health = desk.core.health.check(
        namespace,
        stale_days=stale_days,
        contradictions=include_contradictions,
        low_confidence=include_low_confidence,
        stale=include_stale,
    )
    return done(
        {
            "contradictions": [
                {"id1": each.one.id, "id2": each.other.id, "similarity": each.similarity}
                for each in health.contradictions
            ],
            "low_confidence": [{"id": held.id, "confidence": held.stats.confidence} for held in health.low_confidence],
            "stale": [{"id": held.id, "last_validated": instant(at)} for held, at in health.stale],
            "recommendations": list(health.recommendations),
        }
    )
