"""Context of the Theo tools, their shared parameters, and the tools for the memory graph and validation.

The context opens memories, documents and code traces on first use. Graph tools draw, remove, inspect and backfill
edges. Validation tools record applications and outcomes of memories, and report contradictions and memory health.
"""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from ...core.errors import InvalidInput, InvalidMemoryType
from ...core.memory import FAMILIES, GOLDEN_RULE, VALIDATION, Edge, EventKind, MemoryFilter, Relation
from ...observe.memory import MemoryCore, MemoryNeighborhood, is_proven, parse_relation
from ...observe.traces import CodeTraces
from ...templates.quote import clean
from ..memory_rows import instant, rounded
from ..toolset import (
    MemoryContext,
    ServerConfig,
    ToolReply,
    WholeNumber,
    data_reply,
    delete_question,
    limited_reply,
    open_component,
    success_reply,
)
from .theo_replies import (
    ApplyData,
    BackfillData,
    ContradictionsData,
    EdgeForgetData,
    GraphReply,
    HealthData,
    HistoryData,
    OutcomeData,
    RelateData,
    SupersedesData,
)

RESULTS_MAX = 50
TYPES = ("preference", "decision", "pattern", "session", "fact")
RELATIONS = tuple(Relation)

MemoryId: TypeAlias = Annotated[str, Field(description="Memory ID, such as mem_7")]
SessionId: TypeAlias = Annotated[str | None, Field(description="Session in which it was applied")]
MinImportance: TypeAlias = Annotated[float | None, Field(description="Minimum importance, 0.0-1.0")]
MinConfidence: TypeAlias = Annotated[float | None, Field(description="Minimum confidence, 0.0-1.0")]
SearchQuery: TypeAlias = Annotated[str, Field(description="Question or keywords")]
Namespace: TypeAlias = Annotated[str | None, Field(description="Only this namespace")]
MemoryType: TypeAlias = Annotated[str | None, Field(description="Only this type")]
Limit: TypeAlias = Annotated[WholeNumber, Field(description="Maximum number of results")]
Offset: TypeAlias = Annotated[WholeNumber, Field(description="Results to skip")]
Count: TypeAlias = Annotated[
    WholeNumber,
    Field(json_schema_extra={"minimum": 1, "maximum": RESULTS_MAX}, description="Maximum number of results"),
]
Direction: TypeAlias = Annotated[
    str, Field(json_schema_extra={"enum": ["outgoing", "incoming", "both"]}, description="Which edges to follow")
]
MemoryKind: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": [*TYPES]}, description="Type of the memory")]
Object: TypeAlias = dict[str, Any]


def checked_count(value: int, maximum: int = RESULTS_MAX) -> int:
    """Return `value`, a maximum number of results. Raises `InvalidInput` unless it is from 1 to `maximum`."""
    if not 1 <= value <= maximum:
        raise InvalidInput(f"Invalid number of results: {value}", hint=f"Ask for 1 to {maximum}.")
    return value


def checked_fraction(name: str, value: float) -> float:
    """Return `value`. Raises `InvalidInput`, with `name` in the message, unless `value` is from 0 to 1."""
    if not 0 <= value <= 1:
        raise InvalidInput(f"Invalid {name}: {value}", hint="Give a number from 0.0 to 1.0.")
    return value


def memory_filter(
    core: MemoryCore,
    namespace: str | None,
    memory_type: str | None,
    min_importance: float | None = None,
    min_confidence: float | None = None,
) -> MemoryFilter:
    """Return the memory filter of a call. Raises `InvalidMemoryType` for an unknown type."""
    is_known = memory_type is None or memory_type in {*FAMILIES, GOLDEN_RULE}
    if memory_type and not is_known and memory_type not in core.count_by("type"):
        raise InvalidMemoryType(memory_type, hint=f"Use one of: {', '.join((*TYPES, GOLDEN_RULE))}.")
    return MemoryFilter(
        namespaces=(namespace,) if namespace else (),
        types=(memory_type,) if memory_type else (),
        min_importance=checked_fraction("min_importance", min_importance or 0.0),
        min_confidence=checked_fraction("min_confidence", min_confidence or 0.0),
    )


class TheoContext(MemoryContext):
    """Memories, documents and code traces of one Palaver home.

    `backfilled_to` maps a namespace to the last memory of its latest backfill. The next backfill continues there.
    """

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.backfilled_to: dict[str | None, int] = {}

    @property
    def traces(self) -> CodeTraces:
        """Code traces. Raises `ServerNotReady`."""
        return open_component(lambda: self.archive.traces)


def memory_relate(
    theo: TheoContext,
    source_id: Annotated[str, Field(description="Memory at the start of the edge")],
    target_id: Annotated[str, Field(description="Memory at the end of the edge")],
    relation: Annotated[str, Field(json_schema_extra={"enum": [*RELATIONS]}, description="Kind of edge")],
    weight: Annotated[float, Field(description="0.0-1.0")] = 1.0,
) -> ToolReply:
    """Draw an edge between two memories, or change its weight. `supersedes` halves the target's importance."""
    edge = theo.core.graph.relate(source_id, target_id, parse_relation(relation), weight, "drawn by hand")
    return success_reply(RelateData(edge.id))


def memory_edge_forget(
    theo: TheoContext,
    edge_id: Annotated[WholeNumber | None, Field(description="Only this edge")] = None,
    memory_id: Annotated[str | None, Field(description="Every edge of this memory")] = None,
    source_id: Annotated[str | None, Field(description="With target_id: the edges between these two memories")] = None,
    target_id: Annotated[str | None, Field(description="Memory at the end of the edges")] = None,
    relation: Annotated[str | None, Field(description="Only this relation")] = None,
    direction: Annotated[Direction, Field(description="With memory_id")] = "both",
) -> ToolReply:
    """Remove edges: one by edge_id, those of memory_id, or those from source_id to target_id.

    A memory that is no longer superseded regains its importance.
    """
    chosen = _to_forget(theo, edge_id, memory_id, source_id, target_id, relation, direction)
    deleted = theo.core.graph.forget(chosen)
    undo = "Call memory_relate for each edge in `deleted`." if deleted else ""
    return success_reply(EdgeForgetData(deleted, len(deleted), list(map(_edge, chosen)), undo))


def memory_edge_forget_question(theo: TheoContext, **arguments: Any) -> str:
    """Return the question to the user before `memory_edge_forget`. It lists the edges."""
    items = [f"{edge.source_id} {edge.relation} {edge.target_id}" for edge in _to_forget(theo, **arguments)]
    action = "Remove this edge" if len(items) == 1 else f"Remove {len(items):,} edges"
    return delete_question(action, items, "memory_relate can draw it again.")


def _to_forget(
    theo: TheoContext,
    edge_id: int | None,
    memory_id: str | None,
    source_id: str | None,
    target_id: str | None,
    relation: str | None,
    direction: str,
) -> list[Edge]:
    """Return the edges to remove. Raises `InvalidInput` unless the arguments select them in exactly one way."""
    graph, only = theo.core.graph, parse_relation(relation) if relation is not None else None
    match (edge_id, memory_id, source_id, target_id):
        case (int(), None, None, None):
            return graph.find(edge_id)
        case (None, str(), None, None):
            return graph.select(memory_id, direction, only)
        case (None, None, str(), str()):
            return graph.select(source_id, "outgoing", only, target_id)
        case _:
            raise InvalidInput(
                "Give edge_id, or memory_id, or source_id and target_id",
                hint="Give exactly one of the three. memory_inspect_graph shows edge IDs.",
            )


def memory_inspect_graph(
    theo: TheoContext,
    memory_id: MemoryId,
    max_depth: Annotated[WholeNumber, Field(description="Maximum distance in edges, 1-10")] = 2,
    direction: Direction = "both",
    edge_types: Annotated[list[str] | None, Field(description="Only these relations")] = None,
    include_scores: Annotated[bool, Field(description="Compute the relevance of paths")] = True,
    decay_factor: Annotated[float, Field(description="Factor of the relevance for each edge")] = 0.7,
    output_format: Annotated[
        str, Field(json_schema_extra={"enum": ["json", "mermaid"]}, description="Format of the graph")
    ] = "json",
) -> ToolReply:
    """Show the graph around a memory: nodes, edges, and the most relevant path to each. Or draw it in Mermaid."""
    if output_format not in {"json", "mermaid"}:
        raise InvalidInput(f"Invalid output format: {output_format}", hint="Use one of: json, mermaid.")
    around = theo.core.graph.inspect(
        memory_id,
        depth=max_depth,
        direction=direction,
        relations=[parse_relation(name) for name in edge_types or ()],
        decay=decay_factor,
    )
    if output_format == "mermaid":
        reply = GraphReply(True, around.origin, _stats(around), mermaid=around.mermaid())
        return data_reply(reply, quotes=True)
    return data_reply(_as_json(around, scored=include_scores), quotes=True)


def memory_backfill_edges(
    theo: TheoContext,
    namespace: Namespace = None,
    batch_size: Annotated[WholeNumber, Field(description="Memories per transaction")] = 50,
    max_memories: Annotated[WholeNumber, Field(description="Maximum memories per call")] = 500,
    dry_run: Annotated[bool, Field(description="Count only; create no edge")] = False,
) -> ToolReply:
    """Link memories without edges to similar ones. Each call continues where the last one ended."""
    namespace = theo.namespace(namespace)
    if batch_size < 1 or max_memories < 1:
        raise InvalidInput(f"Invalid batch_size or max_memories: {batch_size}, {max_memories}", hint="Give 1 or more.")
    after = theo.backfilled_to.get(namespace, 0)
    result = theo.core.graph.backfill(
        namespace, batch_size=batch_size, limit=max_memories, after=after, dry_run=dry_run
    )
    if not dry_run:
        # After the last memory, start at the first again, because similar memories may have been stored since.
        theo.backfilled_to[namespace] = result.attempted_to if result.processed == max_memories else 0
    return success_reply(
        BackfillData(
            initial_orphan_count=result.initial_orphans,
            processed=result.processed,
            edges_created=result.edges_created,
            remaining_orphans=result.remaining_orphans,
            errors=[],
            dry_run=dry_run,
        )
    )


def _as_json(around: MemoryNeighborhood, *, scored: bool) -> GraphReply:
    nodes = [
        {"id": node.id, "content": clean(node.content), "memory_type": node.type, "depth": node.depth}
        | ({"relevance": node.relevance} if scored else {})
        for node in around.nodes
    ]
    paths = [
        {"path": list(path.ids)} | ({"total_relevance": path.relevance} if scored else {}) for path in around.paths
    ]
    edges = [_edge(edge) for edge in around.edges]
    return GraphReply(True, around.origin, _stats(around), nodes, edges, paths)


def _edge(edge: Edge) -> dict[str, Any]:
    return {
        "id": edge.id,
        "source": edge.source_id,
        "target": edge.target_id,
        "relation": edge.relation,
        "weight": edge.weight,
        "reason": clean(edge.reason),
        **({"proposed": True} if edge.proposed else {}),
    }


def _stats(around: MemoryNeighborhood) -> dict[str, int]:
    return {
        "total_nodes": len(around.nodes),
        "total_edges": len(around.edges),
        "max_depth_reached": around.depth,
    }


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
    conflicts = contradictions.detect(memory_id, min_similarity=similarity_threshold, link=create_edges)
    rows = [
        {
            "memory_id": comparison.stored.id,
            "content": clean(comparison.stored.memory.content),
            "similarity": rounded(comparison.similarity),
            "contradiction_reason": clean(comparison.judgement.reason),
            "judged_by": comparison.judgement.judge,
        }
        for comparison in (conflict.comparison for conflict in conflicts)
    ]
    created = sum(conflict.new for conflict in conflicts)
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
    conflict = contradictions.supersede_by_outcomes(memory_id, link=create_edge)
    if conflict is None:
        return success_reply(SupersedesData(None, edge_created=False, reason=None, judged_by=contradictions.judge))
    stored, judgement = conflict.comparison.stored, conflict.comparison.judgement
    return success_reply(SupersedesData(stored.id, conflict.new, clean(judgement.reason), judgement.judge))


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
        theo.namespace(namespace),
        stale_days=stale_days,
        contradictions=include_contradictions,
        low_confidence=include_low_confidence,
        stale=include_stale,
    )
    return success_reply(
        HealthData(
            contradictions=[
                {"id1": pair.one.id, "id2": pair.other.id, "similarity": pair.similarity}
                for pair in health.contradictions
            ],
            low_confidence=[
                {"id": stored.id, "confidence": stored.stats.confidence} for stored in health.low_confidence
            ],
            stale=[{"id": stored.id, "last_validated": instant(at)} for stored, at in health.stale],
            recommendations=list(health.recommendations),
        )
    )
