"""Theo's core tools: store, recall, forget, and what a session should know."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ...archiver.reading.secrets_report import kinds_of
from ...core.errors import InvalidInput, InvalidMemoryType, MemoryNotFound
from ...core.memory import Edge, Memory, MemoryState, Relation, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.tokens import count
from ...observe.memory import (
    ExpandedMemory,
    MemoryCore,
    RecalledMemory,
    RememberResult,
    SessionContext,
    near_the_best,
    parse_relation,
)
from ...search.query.secret_placeholders import redacted
from ...templates.memory_changes import undoing
from ...templates.quote import clean
from ..toolset import Reply, WholeNumber
from .arguments import (
    TYPES,
    Limit,
    MemoryKind,
    MemoryType,
    MinConfidence,
    MinImportance,
    Namespace,
    Object,
    SearchQuery,
    checked_count,
    wanted,
)
from .desk import TheoDesk
from .envelope import budgeted, cosine, done, instant, memory_rows


def memory_store(
    desk: TheoDesk,
    content: Annotated[str, Field(description="One claim, in a sentence")],
    memory_type: MemoryKind = "session",
    namespace: Annotated[str, Field(description="global, default or project:NAME")] = "global",
    importance: Annotated[float, Field(description="0.0-1.0")] = 0.5,
    metadata: Annotated[Object | None, Field(description="Any JSON object to keep with it")] = None,
    relates_to: SkipJsonSchema[list[Object] | None] = None,
    supersedes_query: SkipJsonSchema[str | None] = None,
) -> Reply:
    """Remember a preference, decision, pattern or fact; the same content is held once.

    Confidence starts at 0.3 and is earned with memory_apply and memory_outcome. The reply names what it superseded or
    contradicts, and who judged.
    """
    if memory_type not in TYPES:
        raise InvalidMemoryType(memory_type, hint=f"Use one of: {', '.join(TYPES)}. Golden rules must be earned.")
    memory = Memory(
        content, memory_type, namespace=namespace, importance=importance, metadata=metadata or {}, source="theo"
    )
    remembered = desk.core.remember(memory, replaces=supersedes_query)
    edges, errors = _related(desk.core, remembered.stored.id, relates_to or ())
    return done({**_stored(remembered, edges), **({"relation_errors": errors} if relates_to else {})})


def memory_recall(
    desk: TheoDesk,
    query: SearchQuery,
    n_results: Limit = 5,
    namespace: Namespace = None,
    memory_type: MemoryType = None,
    min_importance: MinImportance = None,
    min_confidence: MinConfidence = None,
) -> Reply:
    """Find what is held about something, best first. `expanded` are memories that edges lead to from those found.

    Where nothing is clearly relevant, `weak` are the nearest.
    """
    core, count, query = desk.core, checked_count(n_results, 1_000), redacted(query, desk.place.home)
    chosen = wanted(core, namespace, memory_type, min_importance, min_confidence)
    found = core.recall(query, chosen, limit=count)
    expanded = core.expand(found, chosen, limit=count)
    filters = {"namespace": namespace, "memory_type": memory_type}
    weak = {} if found else {"weak": _recalled(core, core.nearest(query, chosen))}
    return budgeted(
        {
            "memories": _recalled(core, found),
            "expanded": _expanded(core, expanded),
            "total": len(found),
            "query": query,
            "filters": filters | {"min_importance": min_importance, "min_confidence": min_confidence},
            **weak,
        }
    )


def memory_forget(
    desk: TheoDesk,
    memory_id: Annotated[str | None, Field(description="Memory to forget")] = None,
    query: Annotated[str | None, Field(description="Forget what answers it best")] = None,
    input_value: Annotated[str | None, Field(description="An ID or a query")] = None,
    namespace: Annotated[str | None, Field(description="Forget only there")] = None,
    n_results: Annotated[WholeNumber, Field(description="Maximum number to forget in query mode")] = 5,
    force: Annotated[bool, Field(description="Golden rules and pinned ones too")] = False,
) -> Reply:
    """Forget memories, by one of memory_id, query or input_value. Only deleted_ids are gone; they can be restored."""
    core, count = desk.core, checked_count(n_results)
    given = [value for value in (memory_id, query, input_value) if value is not None]
    if len(given) != 1:
        raise InvalidInput("Give exactly one of memory_id, query and input_value", hint="Find IDs with memory_recall.")
    if memory_id is not None:
        found = [core.get(memory_id)]
    else:
        found = _meant(core, given[0], namespace, count, by_id=query is None)
    if namespace and any(held.memory.namespace != namespace for held in found):
        raise InvalidInput(
            f"{found[0].id} is in {found[0].memory.namespace}, not in {namespace}",
            hint="Name that namespace, or leave it out.",
        )
    pinned = [] if force else [held for held in found if held.memory.pinned]
    chosen = [held.id for held in found if held not in pinned]
    gone = core.forget(chosen, force=force, reason="memory_forget")
    deleted = [held.id for held in gone.forgotten]
    undo: dict[str, Any] = {"undo": undoing(deleted)} if deleted else {}
    if kept := {held.id: clean(held.memory.path) for held in gone.forgotten if held.memory.path}:
        undo["files_kept"] = list(kept.values())
        undo["hint"] = f"The files stay. `palaver forget {' '.join(kept)} --erase` deletes them."
    return done(
        {
            "deleted_ids": deleted,
            "deleted_count": len(deleted),
            "protected_ids": [held.id for held in (*gone.protected, *pinned)],
            "deleted": [{"id": held.id, "content": clean(held.memory.content)} for held in gone.forgotten],
            **undo,
        }
    )


def memory_context(
    desk: TheoDesk,
    query: Annotated[str | None, Field(description="What the session is about")] = None,
    namespace: Annotated[str | None, Field(description="project:NAME")] = None,
    token_budget: Annotated[WholeNumber, Field(description="Maximum tokens of the reply")] = 4000,
) -> Reply:
    """What a session should know, as markdown within a hard budget: golden rules, preferences, decisions, patterns."""
    text = ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = desk.place.renderer.memory_context(sections, chosen.left_out, chosen.contradictions)
        return count(_context(chosen, text).text)

    chosen = desk.core.contexts.select(cost, namespace, query or "", token_budget)
    return _context(chosen, text)


def _context(chosen: SessionContext, text: str) -> Reply:
    return budgeted(
        {
            "context": text,
            "token_estimate": chosen.tokens,
            "memory_count": chosen.memories,
            "golden_rule_count": chosen.golden_rules,
            **({"left_out": chosen.left_out} if chosen.left_out else {}),
            **({"contradictions": chosen.contradictions} if chosen.contradictions else {}),
        }
    )


def _related(core: MemoryCore, source: str, wanted: Sequence[Object]) -> tuple[list[Edge], list[dict[str, str]]]:
    """Draw the edges that a call asks for; return them, and for each that cannot be drawn its target and the error."""
    edges: list[Edge] = []
    errors: list[dict[str, str]] = []
    for each in wanted:
        target, weight = str(each.get("target", "")), each.get("weight", 1.0)
        share = float(weight) if isinstance(weight, int | float) else -1.0
        try:
            relation = parse_relation(str(each.get("relation", Relation.RELATES_TO)))
            edges.append(core.graph.relate(source, target, relation, share, "asked for when stored"))
        except (InvalidInput, MemoryNotFound) as error:
            errors.append({"target": clean(target), "error": clean(str(error))})
    return edges, errors


def _stored(remembered: RememberResult, related: Sequence[Edge]) -> dict[str, Any]:
    held = remembered.stored
    kinds = kinds_of(held.memory)
    conflicts = [
        {"memory_id": each.stored.id, "reason": clean(each.judgement.reason), "judged_by": each.judgement.judge}
        for each in remembered.conflicts
    ]
    return {
        "id": held.id,
        "content_hash": f"sha256_{held.memory.content_hash}",
        "namespace": held.memory.namespace,
        "memory_type": held.memory.type,
        "duplicate": remembered.duplicate,
        **({"superseded": True} if held.state is MemoryState.SUPERSEDED else {}),
        "confidence": held.stats.confidence,
        **({"expires_at": instant(until)} if (until := held.memory.valid_until) is not None else {}),
        "superseded_ids": [
            *(old.id for old in remembered.superseded),
            *(edge.target_id for edge in related if edge.relation is Relation.SUPERSEDES and not edge.proposed),
        ],
        "proposed_superseded_ids": [old.id for old in remembered.proposed],
        "contradicts": conflicts,
        "relations": [
            {
                "edge_id": edge.id,
                "target_id": edge.target_id,
                "relation": edge.relation,
                "weight": edge.weight,
                "reason": clean(edge.reason),
                **({"proposed": True} if edge.proposed else {}),
            }
            for edge in (*remembered.edges, *related)
        ],
        **({"secrets_removed": kinds} if kinds else {}),
    }


def _recalled(core: MemoryCore, found: Sequence[RecalledMemory]) -> list[dict[str, Any]]:
    rows = memory_rows(core, [each.stored for each in found])
    return [
        {**row, "score": round(each.score, 4), "similarity": cosine(each.similarity)}
        for row, each in zip(rows, found, strict=True)
    ]


def _expanded(core: MemoryCore, found: Sequence[ExpandedMemory]) -> list[dict[str, Any]]:
    rows = memory_rows(core, [each.stored for each in found])
    return [
        {**row, "score": each.score, "hops": each.hops, "explanation": each.explanation}
        for row, each in zip(rows, found, strict=True)
    ]


def _meant(core: MemoryCore, text: str, namespace: str | None, count: int, *, by_id: bool) -> list[StoredMemory]:
    """The memory of this id, where there is one and an id may be meant, else what answers the text."""
    if by_id:
        try:
            return [core.get(text)]
        except MemoryNotFound:
            pass
    where = MemoryFilter(namespaces=(namespace,) if namespace else ())
    found = core.recall(text, where, limit=count, count_access=False)
    return [each.stored for each in near_the_best(found)]
