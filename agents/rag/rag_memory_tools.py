"""Rag tools that store, retrieve and delete memories, with their context and shared parameters.

Scopes and project names map to namespaces. The texts and metadata of callers are cleaned.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from ...archiver.redaction import kinds_of
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.home import root_of
from ...core.memory import PROJECT, Category, ContextLevel, Memory, MemoryFilter, MemoryState, project_namespace
from ...observe.memory import GLOBAL_NAMESPACES
from ...observe.mnemonics import forget_with_files
from ...search.query.query_analysis import redacted
from ...search.rank.item_finder import CacheStats
from ...templates.environment import undo_command
from ..memory_rows import find_by_uuid, uuid_of
from ..toolset import (
    BUDGET,
    NOTICE,
    WHOLE,
    MemoryContext,
    ServerConfig,
    ToolReply,
    forget_question,
    json_reply,
    truncated,
)
from .level_classifier import classify, refuse_injection, risks
from .rag_replies import DeletedReply, MemoriesReply, ScoredMemoryRow, StoredReply, found_rows, listed_rows

_NAME: Final = "Give a name with letters or digits, such as my-app."


class RagContext(MemoryContext):
    """Memories and documents of one Palaver home. Replies are truncated to `budget` tokens, unless it is None."""

    def __init__(self, config: ServerConfig, budget: int | None = BUDGET) -> None:
        super().__init__(config)
        self._budget = budget
        self.lookups = CacheStats()
        """Number of searches whose query was embedded before, and of searches whose query had to be embedded."""

    @contextmanager
    def lookup(self) -> Generator[None]:
        """Count the searches in the block as one, because a tool may search for its query several times."""
        before = self._embedded()
        yield
        after = self._embedded()
        missed = after.misses > before.misses
        hits = self.lookups.hits + (after.hits > before.hits and not missed)
        self.lookups = CacheStats(hits, self.lookups.misses + missed)

    def _embedded(self) -> CacheStats:
        """Return the numbers of query texts that were cached and embedded."""
        documents = self.documents.cache_stats if "documents" in self.__dict__ else CacheStats()
        memories = self.core.cache_stats
        return CacheStats(memories.hits + documents.hits, memories.misses + documents.misses)

    def reply(self, fields: Mapping[str, object]) -> ToolReply:
        """Return a JSON reply within the budget."""
        return json_reply(fields if self._budget is None else truncated(fields, self._budget))

    def namespace_of(self, project_name: str, *, claim: bool = False) -> str:
        """Return the namespace of a project. Raises `InvalidInput` for a name without letters and digits."""
        namespace = project_namespace(project_name)
        if not namespace.startswith(PROJECT):
            raise InvalidInput(f"Invalid project_name: {project_name!r}", hint=_NAME)
        return self.namespace(namespace, claim=claim)

    def namespaces(self, scope: str | None, project_name: str | None) -> tuple[str, ...]:
        """Return the namespaces to search. An empty result means all namespaces.

        Without a scope, the result for a project also contains the global namespaces, because global memories can name
        the project.
        """
        if scope == "global":
            return GLOBAL_NAMESPACES
        if project_name is not None:
            return (self.namespace_of(project_name), *(() if scope else GLOBAL_NAMESPACES))
        if scope == "project":
            namespaces = self.core.count_by("namespace")
            return tuple(name for name in namespaces if name.startswith(PROJECT)) or (PROJECT,)
        return ()

    @property
    def project_root(self) -> Path:
        """Root folder of the agent's project."""
        return root_of(self.config.project)

    def shown_path(self, file: Path) -> str:
        """Return a path relative to the agent's project, or the whole path of a file outside of it."""
        root = self.project_root
        return str(file.relative_to(root) if file.is_relative_to(root) else file)

    def refuse_injection(self, *texts: str) -> None:
        """In strict mode, raise `SuspectedInjection` if one of the texts looks like an injection."""
        if self.archive.config.strict_memories:
            for text in texts:
                refuse_injection(text)


CategoryName: TypeAlias = Literal["preference", "fact", "event", "workflow", "context"]
ScopeName: TypeAlias = Literal["global", "project"]
LevelName: TypeAlias = Literal["USER_PREFERENCE", "PROJECT_CONTEXT", "SESSION_STATE"]
LanguageName: TypeAlias = Literal["python", "javascript", "typescript", "java", "go", "rust"]

MemoryQuery: TypeAlias = Annotated[str, Field(min_length=1, max_length=1_000, description="Question or keywords")]
MemoryLimit: TypeAlias = Annotated[int, Field(ge=1, le=100, description="Maximum number of results"), WHOLE]
CodeLimit: TypeAlias = Annotated[int, Field(ge=1, le=50, description="Maximum number of results"), WHOLE]

_KEY_MAX, _VALUE_MAX = 100, 1_000
"""Maximum characters of a metadata key, and of a metadata value. Longer texts are truncated."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Return a text without null bytes and control characters, except newlines and tabs."""
    return _CONTROL.sub("", text)


def lower_tags(tags: list[str] | None) -> tuple[str, ...]:
    """Return distinct tags in lower case, without empty tags."""
    cleaned = (" ".join(without_controls(tag).lower().split()) for tag in tags or ())
    return tuple(dict.fromkeys(filter(None, cleaned)))


def flat_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata without nesting: nested values become texts. Long keys and texts are truncated."""
    return {without_controls(name)[:_KEY_MAX]: _flat(value) for name, value in (metadata or {}).items()}


def _flat(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_controls(str(value))[:_VALUE_MAX]


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
    if kinds := risks(content):
        reply["risk"] = kinds
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
    where = MemoryFilter(
        namespaces=rag.namespaces(scope, project_name),
        projects=() if project_name is None else (project_name,),
        tags=lower_tags(tags),
        categories=(Category(category),) if category else (),
        levels=(ContextLevel(context_level),) if context_level else (),
        min_importance=min_importance,
    )
    return _retrieved(rag, query, where, limit)


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
    where = MemoryFilter(namespaces=here, projects=named, levels=(ContextLevel.PROJECT_CONTEXT,))
    return _retrieved(rag, query, where, limit)


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
        stored = None
    if stored is None or stored.state is MemoryState.ARCHIVED:
        not_deleted: DeletedReply = {"deleted": False, "memory_id": memory_id}
        return rag.reply(not_deleted)
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


def _retrieved(rag: RagContext, query: str, where: MemoryFilter, limit: int, *, latest: bool = False) -> ToolReply:
    """Return the relevant memories. Without any, return the nearest ones, marked as weak.

    With `latest`, return the newest memories if nothing else is found.
    """
    rag.refuse_injection(query)
    query = redacted(without_controls(query), rag.config.home)
    with rag.lookup():
        rows: list[ScoredMemoryRow] = found_rows(rag.core, rag.core.recall(query, where, limit=limit))
        if not rows:
            rows = found_rows(rag.core, rag.core.nearest(query, where)[:limit], weak=True)
    if not rows and latest:
        newest = rag.core.page(where, limit=limit)
        rows = [{**row, "score": 0.0, "weak": True} for row in listed_rows(rag.core, newest)]
    reply: MemoriesReply = {"results": rows, "count": len(rows)}
    if rows:
        reply["notice"] = NOTICE["notice"]
    return rag.reply(reply)
