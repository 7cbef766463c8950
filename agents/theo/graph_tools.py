"""Theo tools for the graph of memories: draw, remove, inspect and backfill edges."""

from typing import Annotated, Any

from pydantic import Field

from ...core.errors import InvalidInput
from ...core.memory import Edge
from ...observe.memory import MemoryNeighborhood, parse_relation
from ...templates.quote import clean
from ..delete_question import delete_question
from ..json_reply import data_reply
from ..toolset import ToolReply, WholeNumber
from .parameters import RELATIONS, Direction, MemoryId, Namespace
from .theo_context import TheoContext
from .theo_data import BackfillData, EdgeForgetData, GraphReply, RelateData
from .theo_replies import success_reply


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
