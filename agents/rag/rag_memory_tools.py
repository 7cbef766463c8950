"""Rag tools for memories: store, retrieve and delete them."""

from typing import Annotated, Any

from pydantic import Field

from ...archiver.reading.secrets_report import kinds_of
from ...core.context_level import Category, ContextLevel
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.memory import Memory, MemoryState
from ...core.memory_filter import MemoryFilter
from ...observe.memory import GLOBAL_NAMESPACES
from ...observe.mnemonics import forget_with_files
from ...search.query.secret_placeholders import redacted
from ...templates.memory_changes import undo_command
from ..delete_question import forget_question
from ..json_reply import NOTICE
from ..memory_uuid import find_by_uuid, uuid_of
from ..toolset import ToolReply
from .injection_patterns import risks
from .level_classifier import classify
from .rag_context import RagContext
from .rag_parameters import (
    CategoryName,
    LevelName,
    MemoryLimit,
    MemoryQuery,
    ScopeName,
    flat_metadata,
    lower_tags,
    without_controls,
)
from .rag_replies import DeletedReply, MemoriesReply, ScoredMemoryRow, StoredReply, found_rows, memory_rows


def store_memory(
    rag: RagContext,
    content: Annotated[str, Field(min_length=1, max_length=50_000, description="The text to remember")],
    category: Annotated[CategoryName, Field(description="Kind of memory")],
    scope: Annotated[ScopeName, Field(description="global, or project for the project in project_name")] = "global",
    project_name: Annotated[str | None, Field(description="Project that the memory is about")] = None,
    importance: Annotated[float, Field(ge=0, le=1, description="0.0-1.0")] = 0.5,
    tags: Annotated[list[str] | None, Field(max_length=20, description="Keywords")] = None,
    metadata: Annotated[dict[str, Any] | None, Field(description="Any values to store with it")] = None,
    context_level: Annotated[LevelName | None, Field(description="Detected from the content if omitted")] = None,
) -> ToolReply:
    """Store a memory: one preference, fact, event, workflow or piece of context.

    The same content is stored once. SESSION_STATE expires after 48 hours.
    """
    content, labels, fields = without_controls(content), lower_tags(tags), flat_metadata(metadata)
    rag.refuse_injection(content, *labels, *fields, *map(str, fields.values()))
    if scope == "project" and project_name is None:
        raise InvalidInput("project_name is required when scope is project", hint="Name the project.")
    namespace = "global" if project_name is None else rag.namespace_of(project_name, claim=scope == "project")
    memory = Memory(
        content,
        category,
        namespace=namespace if scope == "project" else "global",
        project=project_name or "",
        level=context_level or classify(content, Category(category)),
        importance=importance,
        tags=labels,
        metadata=fields,
        source="rag",
    )
    remembered = rag.core.remember(memory)
    stored = remembered.stored
    reply: StoredReply = {"memory_id": uuid_of(stored), "status": "stored", "context_level": stored.level}
    if remembered.duplicate:
        reply["duplicate"] = True
    if found := risks(content):
        reply["risk"] = found
    if secrets := kinds_of(stored.memory):
        reply["secrets_removed"] = secrets
    if superseded := [uuid_of(old) for old in remembered.superseded]:
        reply["superseded_ids"] = superseded
    return rag.reply(reply)


def retrieve_memories(
    rag: RagContext,
    query: MemoryQuery,
    limit: MemoryLimit = 5,
    context_level: Annotated[LevelName | None, Field(description="Only this level")] = None,
    scope: Annotated[ScopeName | None, Field(description="Only this scope")] = None,
    project_name: Annotated[
        str | None, Field(description="Only this project, and global memories that name it")
    ] = None,
    category: Annotated[CategoryName | None, Field(description="Only this category")] = None,
    min_importance: Annotated[float, Field(ge=0, le=1, description="Minimum importance")] = 0.0,
    tags: Annotated[list[str] | None, Field(max_length=20, description="Only with one of these tags")] = None,
) -> ToolReply:
    """Search memories by meaning and words, best first. Includes memories of other tools and of the user.

    If none is relevant, the nearest are returned and marked as weak. Scores from 0.7 are usually relevant.
    """
    wanted = MemoryFilter(
        namespaces=rag.namespaces(scope, project_name),
        projects=() if project_name is None else (project_name,),
        tags=lower_tags(tags),
        categories=(Category(category),) if category else (),
        levels=(ContextLevel(context_level),) if context_level else (),
        min_importance=min_importance,
    )
    return _retrieved(rag, query, wanted, limit)


def retrieve_preferences(rag: RagContext, query: MemoryQuery, limit: MemoryLimit = 5) -> ToolReply:
    """Search only memories of the level USER_PREFERENCE."""
    return _retrieved(rag, query, MemoryFilter(levels=(ContextLevel.USER_PREFERENCE,)), limit)


def retrieve_project_context(
    rag: RagContext,
    query: MemoryQuery,
    limit: MemoryLimit = 5,
    project_name: Annotated[str | None, Field(description="Default: this project and global memories")] = None,
) -> ToolReply:
    """Search only memories of the level PROJECT_CONTEXT."""
    here = rag.namespaces(None, project_name) or (rag.own_namespace(), *GLOBAL_NAMESPACES)
    named = () if project_name is None else (project_name,)
    wanted = MemoryFilter(namespaces=here, projects=named, levels=(ContextLevel.PROJECT_CONTEXT,))
    return _retrieved(rag, query, wanted, limit)


def retrieve_session_state(rag: RagContext, query: MemoryQuery, limit: MemoryLimit = 5) -> ToolReply:
    """Search only memories of the level SESSION_STATE, at most 48 hours old. If none matches, return the latest."""
    return _retrieved(rag, query, MemoryFilter(levels=(ContextLevel.SESSION_STATE,)), limit, latest=True)


def delete_memory(
    rag: RagContext, memory_id: Annotated[str, Field(description="From a reply", json_schema_extra={"format": "uuid"})]
) -> ToolReply:
    """Delete a memory. Unknown and already deleted memories return false. The user can undo it."""
    try:
        stored = find_by_uuid(rag.core, memory_id)
    except MemoryNotFound:
        return _not_deleted(rag, memory_id)
    if stored.state is MemoryState.ARCHIVED:
        return _not_deleted(rag, memory_id)
    result = forget_with_files(rag.core, [stored.id], reason="delete_memory")
    if result.protected:
        raise InvalidInput(
            f"Golden rule is protected: {memory_id}", hint="Only the user can delete it, with `palaver forget`."
        )
    reply: DeletedReply = {"deleted": True, "memory_id": memory_id, "undo": undo_command([stored.id])}
    return rag.reply(reply)


def delete_memory_question(rag: RagContext, *, memory_id: str) -> str:
    """Return the question to the user before `delete_memory`.

    The text is empty if the memory is protected or already deleted.
    """
    stored = find_by_uuid(rag.core, memory_id)
    kept = stored.protected or stored.state is MemoryState.ARCHIVED
    return forget_question([] if kept else [stored])


def _not_deleted(rag: RagContext, memory_id: str) -> ToolReply:
    reply: DeletedReply = {"deleted": False, "memory_id": memory_id}
    return rag.reply(reply)


def _retrieved(rag: RagContext, query: str, wanted: MemoryFilter, limit: int, *, latest: bool = False) -> ToolReply:
    """Return the relevant memories. Without any, return the nearest ones, marked as weak.

    With `latest`, return the newest memories if nothing else is found.
    """
    rag.refuse_injection(query)
    query = redacted(without_controls(query), rag.config.home)
    with rag.lookup():
        found = rag.core.recall(query, wanted, limit=limit)
        rows: list[ScoredMemoryRow] = found_rows(rag.core, found)
        if not rows:
            rows = found_rows(rag.core, rag.core.nearest(query, wanted)[:limit], weak=True)
    if not rows and latest:
        newest = rag.core.page(wanted, limit=limit)
        rows = [{**row, "score": 0.0, "weak": True} for row in memory_rows(rag.core, newest)]
    reply: MemoriesReply = {"results": rows, "count": len(rows)}
    if rows:
        reply["notice"] = NOTICE["notice"]
    return rag.reply(reply)
