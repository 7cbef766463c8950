"""Fabric tools for memories: store, recall, get, update, delete and list them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import to_builtins
from msgspec.structs import replace
from pydantic import Field

from ...core.errors import InvalidInput
from ...core.memory import Memory, MemoryRevision, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.query import Mode
from ...observe.mnemonics import forget_with_files
from ...search.query.secret_placeholders import redacted
from ...templates.memory_changes import undo_command
from ...templates.truncation import fit_items, json_cost
from ..delete_question import forget_question
from ..json_reply import BUDGET, NOTICE
from ..memory_uuid import uuid_of
from ..toolset import WHOLE, ToolReply
from .fabric_context import TTL, FabricContext, in_layers
from .fabric_data import DeleteReply, FabricRecallReply, GetReply, ListReply, StoreReply, UpdateReply
from .fabric_parameters import (
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
    Text,
    TypeName,
    Weight,
)
from .fabric_replies import dated_row, memory_row, stored_fields
from .layer_router import route

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
    wanted = MemoryFilter(
        namespaces=in_layers(fabric, chosen.layers or (), folder),
        types=tuple(chosen.types or ()),
        tags=tuple(chosen.tags or ()),
    )
    query = redacted(query, fabric.config.home)
    found = fabric.core.similar(query, wanted, min_similarity=threshold, limit=limit, mode=_MODES[mode])
    rows = [
        {
            "memory": dated_row(each.stored),
            "similarity": round(each.similarity, 4),
            "layer": each.stored.memory.layer,
        }
        for each in found
    ]
    message = "" if rows else _nearest(fabric, query, wanted, threshold, mode)
    return fabric.reply(FabricRecallReply(rows, len(rows), message), quotes=bool(rows))


def _nearest(fabric: FabricContext, query: str, wanted: MemoryFilter, threshold: float, mode: str) -> str:
    """Return a message with the highest similarity, for a recall without results."""
    near = fabric.core.similar(query, wanted, min_similarity=0, limit=1, mode=_MODES[mode], count_access=False)
    if not near:
        return "No memory matches."
    highest = f"the nearest has {near[0].similarity:.2f}"
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
    return fabric.reply(GetReply(memory_row(stored), stored.memory.layer), quotes=True)


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
    reply = UpdateReply(True, memory_row(stored), layer)
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
    wanted = MemoryFilter(
        namespaces=fabric.namespaces(layer, folder), types=(type,) if type else (), tags=tuple(tags or ())
    )
    rows = tuple(memory_row(each) for each in fabric.core.page(wanted, limit=limit, offset=offset))
    total = fabric.core.count(wanted)

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
    given = metadata or MetadataChange()
    named, chosen = tags if tags is not None else given.tags, weight if weight is not None else given.weight
    return MemoryRevision(
        content=content,
        title=given.title,
        project=given.project_path,
        tags=None if named is None else tuple(dict.fromkeys(named)),
        importance=None if chosen is None else (chosen - 1) / 4,
        pinned=pinned,
        metadata=_other_fields(given) or None,
    )


def _other_fields(metadata: MetadataChange | NewMetadata) -> dict[str, Any]:
    """Return the metadata fields that are not stored in columns of the memory itself."""
    given = metadata.model_dump(by_alias=True, exclude_none=True)
    return {name: value for name, value in given.items() if name not in _OWN_FIELDS}
