"""Replies of the rag toolset: their types, the rows for memories, and the error replies."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict, cast

from ...core.errors import DocumentOutsideRoots, InvalidInput, PalaverError, ServerNotReady, ServerReadOnly
from ...core.memory import StoredMemory
from ...observe.memory import MemoryCore, RecalledMemory
from ...templates.quote import clean, line
from ..memory_rows import RAG_ROW, memory_rows
from ..toolset import ToolReply, json_reply
from .level_classifier import SuspectedInjection, risks


class StoredReply(TypedDict):
    """Reply to storing a memory. `risk` lists the kinds of injection that the content looks like."""

    memory_id: str
    status: str
    context_level: str
    duplicate: NotRequired[bool]
    risk: NotRequired[list[str]]
    secrets_removed: NotRequired[list[str]]
    superseded_ids: NotRequired[list[str]]


class MemoryRow(TypedDict):
    """Memory in a reply.

    `untrusted` is set if the text has an origin of low trust, such as a web page. `risk` lists the kinds of injection
    that the text looks like. `weak` is set if a retrieved memory is below the relevance threshold. `superseded_by`
    contains the memories that replaced this one.
    """

    memory_id: str
    content: str
    category: str
    context_level: str
    importance: float
    created_at: str
    untrusted: NotRequired[bool]
    risk: NotRequired[list[str]]
    weak: NotRequired[bool]
    superseded_by: NotRequired[list[str]]


class ScoredMemoryRow(MemoryRow):
    """Retrieved memory with its score, 0 to 1. A memory with a score of at least 0.7 is usually relevant.

    The score of a superseded memory is halved.
    """

    score: float


class MemoriesReply(TypedDict):
    """Retrieved memories, best first."""

    results: list[ScoredMemoryRow]
    count: int
    notice: NotRequired[str]


class DeletedReply(TypedDict):
    """Reply to deleting a memory. `undo` is the command that restores it."""

    deleted: bool
    memory_id: str
    undo: NotRequired[str]


class CodeRow(TypedDict):
    """Unit of code. The path is relative to the client's project, or absolute outside of it.

    A unit with a score of at least 0.7 is usually relevant.
    """

    file_path: str
    start_line: int
    end_line: int
    unit_type: str
    unit_name: str
    signature: str
    language: str
    score: float
    content: str


class CodeReply(TypedDict):
    """Found units of code, best first."""

    results: list[CodeRow]
    count: int
    search_time_ms: int
    notice: NotRequired[str]


class IndexedReply(TypedDict):
    """Reply to indexing a folder. `status` is `completed`, or `in_progress` while files are queued.

    `semantic_units_extracted` counts functions, classes, methods and other named units of new and changed files. Only
    the beginning of `truncated_files` is indexed, because they are too long.
    """

    status: str
    files_indexed: int
    semantic_units_extracted: int
    indexing_time_seconds: float
    project_name: str
    files_unchanged: NotRequired[int]
    files_queued: NotRequired[int]
    waiting_for_embedding: NotRequired[int]
    truncated_files: NotRequired[list[str]]
    failed_files: NotRequired[list[dict[str, str]]]


class CacheReply(TypedDict):
    """Statistics of the query embedding cache since the server started."""

    hits: int
    misses: int
    hit_rate: float


class StatsReply(TypedDict):
    """Statistics of all memories."""

    total_memories: int
    by_category: dict[str, int]
    by_context_level: dict[str, int]
    storage_backend: str
    read_only_mode: bool
    cache_stats: CacheReply


class ContextReply(TypedDict):
    """Memories of each context level that a query would retrieve in the client's project."""

    query: str | None
    project: str
    results: Mapping[str, Sequence[MemoryRow]]
    count: int
    notice: NotRequired[str]


def found_rows(core: MemoryCore, matches: Sequence[RecalledMemory], *, weak: bool = False) -> list[ScoredMemoryRow]:
    """Return a row for each recalled memory, the highest score first. With `weak`, mark the rows as weak."""
    matches = sorted(matches, key=lambda match: -match.calibrated)
    rows: list[ScoredMemoryRow] = []
    for match, memory in zip(matches, listed_rows(core, [match.stored for match in matches]), strict=True):
        row: ScoredMemoryRow = {**memory, "score": round(match.calibrated, 4)}
        if weak:
            row["weak"] = True
        rows.append(row)
    return rows


def listed_rows(core: MemoryCore, memories: Sequence[StoredMemory]) -> list[MemoryRow]:
    """Return a row for each memory, without a score."""
    rows = cast("list[MemoryRow]", memory_rows(core, memories, RAG_ROW))
    for row, stored in zip(rows, memories, strict=True):
        if kinds := risks(stored.memory.content):
            row["risk"] = kinds
    return rows


def error_reply(error: PalaverError) -> ToolReply:
    """Return an error with its type, message and details."""
    message, details = str(error), {"hint": line(error.hint)} if error.hint else dict[str, str]()
    if isinstance(error, ServerNotReady):
        message, details = error.full_message, {}
    if isinstance(error, SuspectedInjection):
        details["pattern"] = clean(error.pattern)
    return json_reply({"error": {"type": _type_of(error), "message": line(message), "details": details}})


def _type_of(error: PalaverError) -> str:
    match error:
        case ServerReadOnly():
            return "ReadOnlyError"
        case DocumentOutsideRoots():
            return "SecurityError"
        case InvalidInput():
            return "ValidationError"
        case _:
            return "StorageError"
