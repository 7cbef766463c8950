"""Fabric tools that store, recall, get, update, delete, list and summarize memories in three layers.

- The layer of a new memory (session, project or all projects) is chosen by the first rule that matches.
- Unused memories of layer 3 (all projects) decay: they are archived, and the user can restore them.
- A summary condenses old memories of a layer into one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace
from pydantic import Field

from ...core.conversation import Milliseconds, Origin, least, show_day
from ...core.errors import InvalidInput
from ...core.memory import ACTIVE, Family, Memory, MemoryFilter, MemoryOrder, MemoryRevision, Relation, StoredMemory
from ...core.query import Mode
from ...core.reports import many
from ...observe.memory import GLOBAL_NAMESPACES, MemoryCore
from ...observe.mnemonics import forget_with_files
from ...search.query.query_analysis import redacted
from ...templates.environment import undo_command
from ...templates.quote import brief
from ...templates.truncation import fit_items, json_cost
from ..memory_rows import FABRIC_DATED_ROW, FABRIC_ROW, memory_row, memory_rows, uuid_of
from ..toolset import BUDGET, NOTICE, WHOLE, ToolReply, delete_question, forget_question
from .fabric_context import (
    TTL,
    Days,
    FabricContext,
    LayerNumber,
    Limit,
    MemoryId,
    MetadataChange,
    NewMetadata,
    Offset,
    ProjectPath,
    RecallFilter,
    Seconds,
    SessionId,
    Similarity,
    SummaryOptions,
    Text,
    TypeName,
    Weight,
    in_layers,
)
from .fabric_replies import (
    DeleteReply,
    FabricRecallReply,
    GetReply,
    ListReply,
    StoreReply,
    SummarizeReply,
    UpdateReply,
    stored_fields,
)

KEPT_FROM: Final = 0.2
"""Minimum strength. Weaker memories are archived."""
_DAY: Final = 86_400_000
_AGE, _IDLE = 28, 14
"""Time constants in days of the two exponential decays: with age, and with the time since the last use."""
_UNTOUCHED: Final = 28 * _DAY
"""Minimum age in milliseconds of a memory that can be archived."""
_DECLARED: Final = frozenset({"ai_inferred", "system_auto"})
"""Values of the field `source` of memories that decay. Memories from the user or another toolset do not decay."""
_BATCH: Final = 200


def strength(stored: StoredMemory, at: Milliseconds) -> float:
    """Return the strength of a memory, from 0 to 1.5, from its age, its last use and its number of uses."""
    age, idle = at - stored.created, at - max(stored.created, stored.accessed or 0)
    used = min(stored.accesses / 10, 0.5)
    return 0.3 * exp(-age / _DAY / _AGE) + 0.7 * exp(-idle / _DAY / _IDLE) + used


def archive_unused(core: MemoryCore, at: Milliseconds) -> list[StoredMemory]:
    """Forget the memories that have become too weak, and return them. Pinned and protected memories are kept."""
    where = MemoryFilter(
        namespaces=GLOBAL_NAMESPACES,
        states=ACTIVE,
        pinned=False,
        protected=False,
        created_before=at - _UNTOUCHED,
        valid_at=at,
    )
    longest_unused = core.page(where, order=MemoryOrder.ACCESSED, descending=False, limit=_BATCH)
    weak = [
        stored for stored in longest_unused if stored.memory.source in _DECLARED and strength(stored, at) < KEPT_FROM
    ]
    return list(core.forget([stored.id for stored in weak], reason="unused").forgotten) if weak else []


Layer: TypeAlias = Literal[1, 2, 3]

_TAGS: Final[tuple[tuple[Layer, frozenset[str]], ...]] = (
    (1, frozenset({"temp", "temporary"})),
    (3, frozenset({"global", "universal"})),
    (2, frozenset({"project", "local"})),
)
_TYPES: Final[dict[str, tuple[Layer, float]]] = {
    "scratchpad": (1, 0.95),
    "code_pattern": (3, 0.9),
    "convention": (3, 0.9),
    "decision": (2, 0.85),
    "bug_fix": (2, 0.85),
    "relationship": (3, 0.85),
}


class Route(Struct, frozen=True):
    """Layer of a new memory, with the reason and the confidence of the choice, 0 to 1."""

    layer: Layer
    reason: str
    confidence: float


def route(memory_type: str, tags: Iterable[str], layer: Layer | None, ttl: float | None) -> Route:
    """Return the requested layer, or else the layer that follows from the tags, the time-to-live or the type.

    The case of tags is ignored.
    """
    if layer is not None:
        return Route(layer, "requested layer", 1.0)
    lowered = {tag.strip().lower() for tag in tags}
    for tagged, names in _TAGS:
        if matching := sorted(lowered & names):
            return Route(tagged, f"tag {matching[0]}", 0.95)
    if ttl is not None:
        return Route(1, "time-to-live", 0.9)
    if memory_type in _TYPES:
        tagged, confidence = _TYPES[memory_type]
        return Route(tagged, f"type {memory_type}", confidence)
    return Route(2, "default", 0.6)


_MODES = {"hybrid": Mode.BOTH, "semantic": Mode.VECTOR, "keyword": Mode.TEXT}
_OWN_FIELDS = {"tags", "title", "source", "projectPath", "weight"}
"""Fields of the parameter `metadata` that are stored in columns of the memory itself."""


def store(
    fabric: FabricContext,
    type: Annotated[TypeName, Field(description="Kind of memory")],  # noqa: A002 - name of the specification
    content: Annotated[Text, Field(description="One claim")],
    metadata: Annotated[NewMetadata, Field(description="Tags, weight (1-5), and more")],
    layer: Annotated[
        LayerNumber | None, Field(description="1 session, 2 project, 3 all projects. Default: auto")
    ] = None,
    ttl: Seconds | None = None,
    pinned: Annotated[bool, Field(description="Never decays and is never summarized")] = False,
) -> ToolReply:
    """Store a memory. Without a layer, tags, ttl and type decide, and the reply names the reason."""
    chosen = route(type, metadata.tags, layer, ttl)
    folder = fabric.folder(metadata.project_path)
    lifetime = int(ttl * 1_000) if ttl is not None else TTL if chosen.layer == 1 and not pinned else None
    memory = Memory(
        content,
        type,
        title=metadata.title or "",
        namespace=fabric.target(chosen.layer, folder),
        project=metadata.project_path or "",
        importance=(metadata.weight - 1) / 4,
        tags=tuple(dict.fromkeys(metadata.tags)),
        metadata=_other_fields(metadata),
        source=metadata.source,
        pinned=pinned,
        valid_until=None if lifetime is None else fabric.clock() + lifetime,
    )
    remembered = fabric.core.remember(memory)
    if remembered.stored.memory.layer == 1:
        fabric.evict(remembered.stored)
    routing = {"reason": chosen.reason, "confidence": chosen.confidence}
    stored = remembered.stored
    return fabric.reply(StoreReply(uuid_of(stored), True, stored.memory.layer, routing, **stored_fields(remembered)))


def recall(
    fabric: FabricContext,
    query: Annotated[Text, Field(description="Question or keywords")],
    session_id: SessionId,
    limit: Limit = 10,
    threshold: Similarity = 0.7,
    mode: Annotated[Literal["hybrid", "semantic", "keyword"], Field(description="Search by words, meaning or both")] = (
        "hybrid"
    ),
    filter: Annotated[RecallFilter | None, Field(description="Conditions")] = None,  # noqa: A002 - see store
) -> ToolReply:
    """Search memories of all layers, best first. A similarity of 0.7 is the relevance threshold."""
    fabric.enter(session_id)
    chosen = filter or RecallFilter()
    folder = fabric.folder(chosen.project_path)
    where = MemoryFilter(
        namespaces=in_layers(fabric, chosen.layers or (), folder),
        types=tuple(chosen.types or ()),
        tags=tuple(chosen.tags or ()),
    )
    query = redacted(query, fabric.config.home)
    matches = fabric.core.similar(query, where, min_similarity=threshold, limit=limit, mode=_MODES[mode])
    memories = memory_rows(fabric.core, [match.stored for match in matches], FABRIC_DATED_ROW)
    rows = [
        {"memory": row, "similarity": round(match.similarity, 4), "layer": match.stored.memory.layer}
        for row, match in zip(memories, matches, strict=True)
    ]
    message = "" if rows else _nearest(fabric, query, where, threshold, mode)
    return fabric.reply(FabricRecallReply(rows, len(rows), message), quotes=bool(rows))


def _nearest(fabric: FabricContext, query: str, where: MemoryFilter, threshold: float, mode: str) -> str:
    """Return a message with the highest similarity, for a recall without results."""
    nearest = fabric.core.similar(query, where, min_similarity=0, limit=1, mode=_MODES[mode], count_access=False)
    if not nearest:
        return "No memory matches."
    highest = f"the nearest has {nearest[0].similarity:.2f}"
    return f"No memory reaches a similarity of {threshold:g}; {highest}. Lower the threshold to see it."


def get(fabric: FabricContext, memory_id: MemoryId, project_path: ProjectPath = None) -> ToolReply:
    """Return a memory by its ID, from any layer."""
    fabric.folder(project_path)
    stored = fabric.find(memory_id)
    store = fabric.core.store
    if not store.is_read_only:
        with store.transaction():
            store.memories.touch([stored.key], fabric.clock())
        stored = fabric.core.get(stored.id)
    return fabric.reply(GetReply(memory_row(fabric.core, stored, FABRIC_ROW), stored.memory.layer), quotes=True)


def update(
    fabric: FabricContext,
    memory_id: MemoryId,
    content: Annotated[Text | None, Field(description="New content")] = None,
    metadata: Annotated[MetadataChange | None, Field(description="Fields to merge")] = None,
    tags: Annotated[list[str] | None, Field(description="New tags")] = None,
    weight: Annotated[Weight | None, Field(description="1-5")] = None,
    pinned: Annotated[bool | None, Field(description="Pin or unpin")] = None,
    target_layer: Annotated[
        Literal[2, 3] | None, WHOLE, Field(alias="targetLayer", description="Promote to this layer")
    ] = None,
    project_path: ProjectPath = None,
) -> ToolReply:
    """Edit or promote a memory. Memories of layer 1 can only be promoted. The ID stays the same."""
    stored, folder = fabric.find(memory_id), fabric.folder(project_path)
    change = _revision(content, metadata, tags, weight, pinned)
    if target_layer is not None:
        stored = _promoted(fabric, stored, target_layer, folder_namespace=fabric.target(target_layer, folder))
        if change == MemoryRevision():
            return fabric.reply(UpdateReply(True, memory_id=uuid_of(stored), new_layer=stored.memory.layer))
    elif stored.memory.layer == 1:
        raise InvalidInput(
            "Memories of layer 1 cannot be updated", hint="Store a new one, or promote it with targetLayer."
        )
    if change == MemoryRevision():
        raise InvalidInput("Nothing to update", hint="Give content, metadata, tags, weight, pinned or targetLayer.")
    stored = fabric.core.revise(stored.id, change)
    layer = stored.memory.layer
    reply = UpdateReply(True, memory_row(fabric.core, stored, FABRIC_ROW), layer)
    if target_layer is not None:
        reply = replace(reply, memory_id=uuid_of(stored), new_layer=layer)
    return fabric.reply(reply, quotes=True)


def delete(fabric: FabricContext, memory_id: MemoryId, project_path: ProjectPath = None) -> ToolReply:
    """Delete a memory. No tool or search returns it afterwards. The user can undo it."""
    fabric.folder(project_path)
    stored = fabric.find(memory_id)
    if forget_with_files(fabric.core, [stored.id], reason="context.delete").protected:
        raise InvalidInput(
            f"Golden rule is protected: {memory_id}", hint="Only the user deletes it, with `palaver forget`."
        )
    return fabric.reply(DeleteReply(True, stored.memory.layer, undo_command([stored.id])))


def context_delete_question(fabric: FabricContext, *, memory_id: str, project_path: str | None) -> str:
    """Return the question to the user before `delete`, or an empty text if the memory is protected."""
    fabric.folder(project_path)
    stored = fabric.find(memory_id)
    return forget_question([] if stored.protected else [stored])


def list_memories(
    fabric: FabricContext,
    layer: Annotated[LayerNumber, Field(description="1 session, 2 project, 3 all projects")] = 2,
    type: Annotated[str | None, Field(description="Only this type")] = None,  # noqa: A002 - see store
    tags: Annotated[list[str] | None, Field(description="Only with one of these tags")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
    stats: Annotated[bool, Field(description="Return counts per layer instead")] = False,
    project_path: ProjectPath = None,
) -> ToolReply:
    """List memories of a layer, newest first, or count those of every layer. `nextOffset` continues the list."""
    folder = fabric.folder(project_path)
    if stats:
        return fabric.reply(_counts(fabric, {number: fabric.namespaces(number, folder) for number in (1, 2, 3)}))
    where = MemoryFilter(
        namespaces=fabric.namespaces(layer, folder), types=(type,) if type else (), tags=tuple(tags or ())
    )
    rows = tuple(memory_rows(fabric.core, fabric.core.page(where, limit=limit, offset=offset), FABRIC_ROW))
    total = fabric.core.count(where)

    def page(some: Sequence[dict[str, Any]]) -> ListReply:
        end = offset + len(some)
        return ListReply(total, list(some), limit, offset, layer, end if some and end < total else None)

    # A page whose rows exceed the budget of a reply ends earlier. A single memory that exceeds it is shortened.
    fitting = fit_items(rows, lambda some: json_cost({**to_builtins(page(some)), **NOTICE}), BUDGET) or rows[:1]
    return fabric.reply(page(fitting), quotes=bool(rows))


def _counts(fabric: FabricContext, layers: Mapping[int, tuple[str, ...]]) -> ListReply:
    """Return the number of memories in each layer, and the number of pinned memories in layers 2 and 3."""
    filters = [MemoryFilter(namespaces=layers[number]) for number in (1, 2, 3)]
    l1, l2, l3 = map(fabric.core.count, filters)
    pinned = {f"l{number}": fabric.core.count(replace(filters[number - 1], pinned=True)) for number in (2, 3)}
    return ListReply(l1 + l2 + l3, l1=l1, l2=l2, l3=l3, pinned=pinned)


def _promoted(fabric: FabricContext, stored: StoredMemory, layer: int, *, folder_namespace: str) -> StoredMemory:
    """Move a memory to a higher layer. Raises `InvalidInput` if it is already in this layer or in a higher one."""
    current = stored.memory.layer
    if current >= layer:
        raise InvalidInput(
            f"The memory is in layer {current}, so it cannot be promoted to layer {layer}",
            hint="Only a higher layer is possible.",
        )
    return fabric.core.rescope(stored.id, folder_namespace)


def _revision(
    content: str | None,
    metadata: MetadataChange | None,
    tags: list[str] | None,
    weight: float | None,
    pinned: bool | None,
) -> MemoryRevision:
    fields = metadata or MetadataChange()
    named, chosen = tags if tags is not None else fields.tags, weight if weight is not None else fields.weight
    return MemoryRevision(
        content=content,
        title=fields.title,
        project=fields.project_path,
        tags=None if named is None else tuple(dict.fromkeys(named)),
        importance=None if chosen is None else (chosen - 1) / 4,
        pinned=pinned,
        metadata=_other_fields(fields) or None,
    )


def _other_fields(metadata: MetadataChange | NewMetadata) -> dict[str, Any]:
    """Return the metadata fields that are not stored in columns of the memory itself."""
    fields = metadata.model_dump(by_alias=True, exclude_none=True)
    return {name: value for name, value in fields.items() if name not in _OWN_FIELDS}


_MAX: Final = 1_000
"""Maximum number of memories that one call condenses."""
_SNIPPETS: Final = 5
_SNIPPET: Final = 40
"""Maximum tokens that a summary quotes from one memory."""


def summarize(
    fabric: FabricContext,
    session_id: SessionId,
    options: Annotated[SummaryOptions, Field(description="Length and selection")],
    layer: Annotated[Literal[2, 3], WHOLE, Field(description="2 project, 3 all projects")] = 2,
    older_than_days: Annotated[Days, Field(alias="olderThanDays")] = 30,
    project_path: ProjectPath = None,
) -> ToolReply:
    """Condense old memories of a layer into one summary, and archive them. The summary links to them.

    Pinned memories, golden rules and memories in the user's own words stay.
    """
    fabric.enter(session_id)
    folder, at = fabric.folder(project_path), fabric.clock()
    old = _old(fabric, options, layer, older_than_days, folder)
    if not old:
        return fabric.reply(SummarizeReply("", 0, "Nothing to summarize.", layer))
    memory = Memory(
        _text(old, options.target_tokens, at),
        "summary",
        title=f"Summary of {len(old)} memories",
        namespace=fabric.target(layer, folder),
        project=project_path or "",
        tags=("summary",),
        metadata={"summarized": len(old)},
        source="system_auto",
        origin=least([stored.memory.origin for stored in old]),
        pinned=True,
    )
    core = fabric.core
    # If the process stops here, the summary and its memories both exist, so nothing is lost.
    summary = core.remember(memory, replaces="").stored
    for stored in old:
        core.graph.relate(summary.id, stored.id, Relation.RELATES_TO, reason="summarized")
    core.forget([stored.id for stored in old], reason=f"summarized in {summary.id}")
    undo = undo_command([stored.id for stored in old])
    reply = SummarizeReply(uuid_of(summary), len(old), summary.memory.content, layer, undo)
    return fabric.reply(reply, 20_000, quotes=True)


def summarize_question(
    fabric: FabricContext,
    *,
    options: SummaryOptions,
    layer: int,
    older_than_days: float,
    project_path: str | None,
    **_others: object,
) -> str:
    """Return the question to the user before `summarize`. It lists the memories to archive."""
    old = _old(fabric, options, layer, older_than_days, fabric.folder(project_path))
    items = [
        f"{stored.id} [{stored.memory.namespace}] {stored.memory.title or stored.memory.content}" for stored in old
    ]
    return delete_question(f"Replace {many(len(old), 'memory', 'memories')} with a summary", items, "You can undo it.")


def _old(
    fabric: FabricContext, options: SummaryOptions, layer: int, older_than_days: float, folder: Path
) -> list[StoredMemory]:
    """Return the memories to condense, oldest first."""
    at = fabric.clock()
    where = MemoryFilter(
        namespaces=fabric.namespaces(layer, folder),
        types=tuple(options.focus_types or ()),
        states=ACTIVE,
        pinned=False,
        protected=False,
        created_before=at - int(older_than_days * _DAY),
        valid_at=at,
    )
    return [stored for stored in fabric.core.page(where, descending=False, limit=_MAX) if _is_chosen(stored, options)]


def _is_chosen(stored: StoredMemory, options: SummaryOptions) -> bool:
    excluded = {Family.SUMMARY}
    if not options.include_patterns:
        excluded.add(Family.PATTERN)
    if not options.include_decisions:
        excluded.add(Family.DECISION)
    return stored.family not in excluded and stored.memory.origin is not Origin.HUMAN


def _text(old: Sequence[StoredMemory], tokens: int, at: Milliseconds) -> str:
    """Return a summary of at most `tokens`: numbers of memories by type, and the beginnings of the oldest memories."""
    counts = Counter(stored.memory.type for stored in old)
    numbers = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    span = f"{show_day(old[0].created)} to {show_day(old[-1].created)}"
    first = f"{len(old)} memories of {span}, archived on {show_day(at)}: {numbers}."
    snippets = [f"{stored.memory.type}: {brief(stored.memory.content, _SNIPPET)}" for stored in old[:_SNIPPETS]]
    return brief(f"{first} First ones: {'; '.join(snippets)}", tokens)
