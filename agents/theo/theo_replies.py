"""Replies of the Theo tools: JSON objects with `success` and `data`, and the structs of `data`.

The output schemas are derived from these structs. Fields with a default are optional: a reply leaves them out if they
have this value.
"""

from typing import Any

from msgspec import Struct

from ..toolset import Rows


class IndexFileData(Struct, frozen=True, omit_defaults=True):
    """Chunks of an indexed file. `truncated` is true if the file is too long, so that only its beginning is indexed."""

    chunks_created: int
    source_file: str
    namespace: str
    chunk_ids: list[str]
    unchanged: bool
    truncated: bool = False


class IndexDirectoryData(Struct, frozen=True, omit_defaults=True):
    """Numbers of indexed files and chunks, the files that failed, and those of which only the beginning is indexed."""

    files_indexed: int
    total_chunks: int
    failed_files: Rows
    skipped_duplicates: int
    queued: int
    waiting_for_embedding: int
    truncated_files: list[str] = []


class SearchData(Struct, frozen=True):
    """Search results, best first, and the tokens of their contents."""

    results: Rows
    total: int
    query: str
    total_tokens: int


class BudgetSearchData(Struct, frozen=True):
    """Search results that fit into a budget. `truncated_count` is the number of results that do not fit."""

    results: Rows
    tokens_used: int
    budget_remaining: int
    truncated: bool
    truncated_count: int


class StoreData(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Stored memory, and the memories and edges that storing it changed."""

    id: str
    content_hash: str
    namespace: str
    memory_type: str
    duplicate: bool
    superseded_by: list[str] = []
    proposed_superseded_by: list[str] = []
    confidence: float
    expires_at: str | None = None
    superseded_ids: list[str]
    proposed_superseded_ids: list[str]
    contradicts: Rows
    relations: Rows
    secrets_removed: list[str] = []
    relation_errors: Rows | None = None


class RecallData(Struct, frozen=True, omit_defaults=True):
    """Recalled memories, best first. `weak` contains the nearest memories if none is relevant."""

    memories: Rows
    expanded: Rows
    total: int
    query: str
    filters: dict[str, Any]
    weak: Rows | None = None


class ForgetData(Struct, frozen=True, omit_defaults=True):
    """Forgotten memories, and the command that restores them."""

    deleted_ids: list[str]
    deleted_count: int
    protected_ids: list[str]
    deleted: Rows
    undo: str = ""
    deleted_files: list[str] = []
    files_kept: list[str] = []


class ContextData(Struct, frozen=True, omit_defaults=True):
    """Memories for a session, as Markdown.

    `left_out` and `omitted_lines` count memories and lines of past sessions that did not fit. `withheld` counts
    memories with low trust, and those of all projects that the user neither wrote nor approved.
    """

    context: str
    token_estimate: int
    memory_count: int
    golden_rule_count: int
    left_out: int = 0
    omitted_lines: int = 0
    withheld: int = 0
    digest_lines: int = 0
    contradictions: list[list[str]] = []


class ApplyData(Struct, frozen=True):
    """Recorded application of a memory."""

    memory_id: str
    event_id: int


class OutcomeData(Struct, frozen=True, omit_defaults=True):
    """Change of a memory's confidence by an outcome."""

    memory_id: str
    outcome_success: bool
    old_confidence: float
    new_confidence: float
    promoted: bool
    demoted: bool
    hint: str = ""


class RelateData(Struct, frozen=True):
    """ID of the edge between two memories."""

    edge_id: int


class EdgeForgetData(Struct, frozen=True, omit_defaults=True):
    """Removed edges, and how to draw them again."""

    deleted_ids: list[int]
    deleted_count: int
    deleted: Rows
    undo: str = ""


class GraphReply(Struct, frozen=True, omit_defaults=True):
    """Graph around a memory, as nodes and edges or in Mermaid. By specification, it has no field `data`."""

    success: bool
    origin_id: str
    stats: dict[str, int]
    nodes: Rows | None = None
    edges: Rows | None = None
    paths: Rows | None = None
    mermaid: str = ""


class CountData(Struct, frozen=True):
    """Number of memories."""

    count: int
    filters: dict[str, Any]


class ListData(Struct, frozen=True):
    """Page of memories."""

    memories: Rows
    total: int
    limit: int
    offset: int
    has_more: bool
    next_offset: int | None


class NamespacesData(Struct, frozen=True):
    """Number of memories in each namespace."""

    namespaces: Rows
    total_namespaces: int
    total_memories: int


class HistoryData(Struct, frozen=True):
    """Applications and outcomes of a memory, newest first, and their numbers."""

    events: Rows
    summary: dict[str, Any]


class ContradictionsData(Struct, frozen=True):
    """Memories that contradict the checked memory."""

    contradictions: Rows
    edges_created: int
    judged_by: str


class SupersedesData(Struct, frozen=True):
    """Memory that the checked memory supersedes, or null."""

    superseded_id: str | None
    edge_created: bool
    reason: str | None
    judged_by: str


class HealthData(Struct, frozen=True):
    """Memories to review: contradictions, memories of low confidence, and unused memories."""

    contradictions: Rows
    low_confidence: Rows
    stale: Rows
    recommendations: list[str]


class BackfillData(Struct, frozen=True):
    """Numbers of memories without edges before and after, and of created edges."""

    initial_orphan_count: int
    processed: int
    edges_created: int
    remaining_orphans: int
    errors: list[str]
    dry_run: bool


class DeleteChunksData(Struct, frozen=True, omit_defaults=True):
    """Deleted chunks, and how to restore them."""

    deleted_count: int
    deleted_ids: list[str]
    undo: str = ""


class DeleteFileData(Struct, frozen=True, omit_defaults=True):
    """Number of deleted chunks of a file, and how to restore them."""

    deleted_count: int
    source_file: str
    undo: str = ""


class ClearData(Struct, frozen=True, omit_defaults=True):
    """Number of deleted chunks, and how to restore them."""

    deleted_count: int
    memories_kept: int
    undo: str = ""


class IndexStatsData(Struct, frozen=True):
    """Numbers of documents and memories."""

    total_documents: int
    unique_sources: int
    source_files: list[str]
    namespaces: list[str]
    memory_count: int
    golden_rule_count: int
    queued: int
    waiting_for_embedding: int
    failed_files: Rows


class TraceData(Struct, frozen=True):
    """Lines of a file that agents wrote, with the commit and the conversation that contain most of these lines."""

    file: str
    line: int | None
    commit: str | None
    trace: dict[str, Any] | None
    certainty: str
    message: str
    lines: dict[str, int]
    commits: Rows


class TraceListData(Struct, frozen=True):
    """Latest traces, newest first."""

    traces: Rows
    total: int
