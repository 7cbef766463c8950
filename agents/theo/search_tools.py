"""Theo tools for documents, search and code traces.

Search covers documents and memories, which have comparable scores and are returned in one list. A code trace names
the author of a line, from git blame and archived edits.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field

from ...core import tokens
from ...core.conversation import Origin
from ...core.document import DocumentFilter, FailedFile, StoredChunk
from ...core.errors import InvalidInput
from ...core.memory import GOLDEN_RULE, MemoryFilter, StoredMemory
from ...core.reports import many
from ...observe.traces import Attributed, Certainty, CommitShare
from ...search.query.query_analysis import redacted
from ...templates.quote import clean
from ..memory_rows import THEO_METADATA, instant, memory_rows, rounded
from ..toolset import REPORTER, Rows, ToolReply, WholeNumber, delete_question, limited_reply, success_reply
from .theo_context import RESULTS_MAX, Count, Limit, Object, SearchQuery, TheoContext, checked_count
from .theo_replies import (
    BudgetSearchData,
    ClearData,
    DeleteChunksData,
    DeleteFileData,
    IndexDirectoryData,
    IndexFileData,
    IndexStatsData,
    SearchData,
    TraceData,
    TraceListData,
)

_RESTORED = "Indexing the files again restores it."
"""Note in the question to the user before documents are deleted."""
_UNDO = "Index the files again with index_file or index_directory."
Namespace = Annotated[str, Field(description="Groups documents that belong together")]


def index_file(
    theo: TheoContext,
    file_path: Annotated[str, Field(description="Markdown, RST, Org, text, HTML, .ipynb, .docx, .pdf or source code")],
    namespace: Namespace = "default",
) -> ToolReply:
    """Index a file for search. New chunks replace its earlier ones. An unchanged file keeps its chunks."""
    if not file_path.strip():
        raise InvalidInput("file_path cannot be empty", hint='Give a file, such as "README.md".')
    indexed = theo.documents.index_file(file_path, theo.namespace(namespace))
    ids = list(indexed.chunk_ids)
    return success_reply(
        IndexFileData(
            chunks_created=0 if indexed.unchanged else len(ids),
            source_file=clean(str(indexed.source_file)),
            namespace=indexed.namespace,
            chunk_ids=ids,
            unchanged=indexed.unchanged,
            truncated=indexed.truncated,
        )
    )


def index_directory(
    theo: TheoContext,
    dir_path: Annotated[str, Field(description="Folder to scan")],
    recursive: Annotated[bool, Field(description="Scan its subfolders too")] = True,
    namespace: Namespace = "default",
    async_mode: Annotated[bool, Field(description="Compute embeddings in the background; false waits for them")] = True,
) -> ToolReply:
    """Index every supported file of a folder. Unchanged and unreadable files are skipped."""
    if not dir_path.strip():
        raise InvalidInput("dir_path cannot be empty", hint='Give a folder, such as "docs" or ".".')
    indexed = theo.documents.index_directory(
        dir_path, theo.namespace(namespace), recursive=recursive, async_mode=async_mode, report=REPORTER.get()
    )
    theo.embed_waiting(indexed)
    return success_reply(
        IndexDirectoryData(
            files_indexed=indexed.indexed,
            total_chunks=indexed.chunks,
            failed_files=_failed(indexed.failed),
            skipped_duplicates=indexed.unchanged,
            queued=indexed.queued,
            waiting_for_embedding=indexed.unembedded,
            truncated_files=[clean(str(file)) for file in indexed.truncated],
        )
    )


def delete_chunks(
    theo: TheoContext, ids: Annotated[list[str], Field(description="chunk_… IDs from search")]
) -> ToolReply:
    """Delete these chunks. Indexing their files again brings them back."""
    deleted = list(theo.documents.delete([chunk.id for chunk in theo.documents.get(ids)]))
    return success_reply(DeleteChunksData(len(deleted), deleted, _undo(len(deleted))))


def delete_chunks_question(theo: TheoContext, *, ids: list[str]) -> str:
    """Return the question to the user before `delete_chunks`. It lists the chunks."""
    items = [f"{chunk.id} in {chunk.source_file}" for chunk in theo.documents.get(ids)]
    return delete_question("Delete 1 chunk" if len(items) == 1 else f"Delete {len(items):,} chunks", items, _RESTORED)


def delete_file(
    theo: TheoContext, source_file: Annotated[str, Field(description="Path, as in search results")]
) -> ToolReply:
    """Delete all chunks of a file from the index. The file itself stays."""
    deleted = theo.documents.delete_file(Path(source_file))
    return success_reply(DeleteFileData(deleted, source_file, _undo(deleted)))


def delete_file_question(_theo: TheoContext, *, source_file: str) -> str:
    """Return the question to the user before `delete_file`."""
    return delete_question("Delete all chunks of this file from the index", [source_file], _RESTORED)


def clear_index(theo: TheoContext, confirm: Annotated[bool, Field(description="Must be true")]) -> ToolReply:
    """Delete all documents from the index. Memories, conversations and the files themselves stay."""
    if not confirm:
        raise InvalidInput("Safety check: Set confirm=True to delete all documents")
    deleted = theo.documents.clear()
    return success_reply(ClearData(deleted, memories_kept=theo.core.count(), undo=_undo(deleted)))


def clear_index_question(theo: TheoContext, *, confirm: bool) -> str:
    """Return the question to the user before `clear_index`, with the number of files.

    The text is empty if the agent did not set `confirm`, because the call then fails.
    """
    files = len(theo.documents.stats().source_files) if confirm else 0
    return delete_question("Delete all documents from the index", [f"{files:,} files"], _RESTORED) if files else ""


def get_index_stats(theo: TheoContext) -> ToolReply:
    """Count indexed documents and memories. `total_documents` counts chunks."""
    stats, memories = theo.documents.stats(), theo.core
    namespaces = {**stats.namespaces, **memories.count_by("namespace")}
    return success_reply(
        IndexStatsData(
            total_documents=stats.chunks,
            unique_sources=len(stats.source_files),
            source_files=[clean(str(path)) for path in stats.source_files],
            namespaces=sorted(namespaces),
            memory_count=memories.count(),
            golden_rule_count=memories.count(MemoryFilter(types=(GOLDEN_RULE,))),
            queued=stats.queued,
            waiting_for_embedding=stats.unembedded,
            failed_files=_failed(stats.failed),
        )
    )


def _undo(deleted: int) -> str:
    """Return the instruction to restore deleted chunks, or an empty text if no chunk was deleted."""
    return _UNDO if deleted else ""


def _failed(files: Iterable[FailedFile]) -> Rows:
    return [{"file": clean(str(failed.file)), "error": clean(failed.error)} for failed in files]


_FILTERS = ("namespace", "doc_type", "source_file")
_DOC_TYPES = ("document", "memory")
Filters = Annotated[
    Object,
    Field(
        json_schema_extra={
            "properties": {
                "namespace": {"type": "string"},
                "doc_type": {"type": "string", "enum": [*_DOC_TYPES]},
                "source_file": {"type": "string"},
            },
            "additionalProperties": False,
        },
        description="Conditions for results",
    ),
]


class _SearchScope(Struct, frozen=True):
    """Filters of a search: one for documents, one for memories. None excludes documents or memories."""

    documents: DocumentFilter | None
    memories: MemoryFilter | None


class _SearchResult(Struct, frozen=True):
    """Chunk or memory, with its score."""

    item: StoredChunk | StoredMemory
    score: float
    similarity: float | None

    @property
    def content(self) -> str:
        """Text of the chunk or memory."""
        return clean(self.item.memory.content if isinstance(self.item, StoredMemory) else self.item.chunk.text)


_ALL = _SearchScope(DocumentFilter(), MemoryFilter())


def search(theo: TheoContext, query: SearchQuery, n_results: Count = 5) -> ToolReply:
    """Search indexed documents and memories, best first."""
    query = redacted(query, theo.config.home)
    return _listed(theo, query, _results(theo, query, _ALL, checked_count(n_results)))


def search_with_filters(theo: TheoContext, query: SearchQuery, filters: Filters, n_results: Limit = 5) -> ToolReply:
    """Search one namespace, one source file, or only documents or memories."""
    query = redacted(query, theo.config.home)
    return _listed(theo, query, _results(theo, query, _scope(theo, filters), checked_count(n_results)))


def search_with_budget(
    theo: TheoContext,
    query: SearchQuery,
    max_tokens: Annotated[
        WholeNumber, Field(json_schema_extra={"default": 3000}, description="Maximum tokens of all results")
    ],
) -> ToolReply:
    """Return the best results that fit into a number of tokens. Results that are too long are skipped."""
    if max_tokens < 1:
        raise InvalidInput(f"Invalid max_tokens: {max_tokens}", hint="Give 1 token or more.")
    candidates = _results(theo, redacted(query, theo.config.home), _ALL, RESULTS_MAX)
    chosen, used = list[_SearchResult](), 0
    for candidate in candidates:
        cost = tokens.count(candidate.content)
        if used + cost <= max_tokens:
            chosen.append(candidate)
            used += cost
    left_out = len(candidates) - len(chosen)
    return limited_reply(
        BudgetSearchData(
            results=_rows(theo, chosen),
            tokens_used=used,
            budget_remaining=max_tokens - used,
            truncated=left_out > 0,
            truncated_count=left_out,
        )
    )


def _results(theo: TheoContext, query: str, scope: _SearchScope, limit: int) -> list[_SearchResult]:
    """Return the search results, best first. Raises `InvalidInput` for an empty query."""
    if not query.strip():
        raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
    results: list[_SearchResult] = []
    if scope.documents is not None:
        chunks = theo.documents.search(query, scope.documents, limit=limit)
        results += [_SearchResult(chunk.stored, chunk.score, chunk.similarity) for chunk in chunks]
    if scope.memories is not None:
        memories = theo.core.recall(query, scope.memories, limit=limit, count_access=False)
        results += [_SearchResult(match.stored, match.score, match.similarity) for match in memories]
    return sorted(results, key=lambda result: (-result.score, result.item.key))[:limit]


def _scope(theo: TheoContext, filters: Object) -> _SearchScope:
    unknown = [name for name in filters if name not in _FILTERS]
    conditions = {name: value for name, value in filters.items() if value is not None}
    if unknown or not all(isinstance(value, str) for value in conditions.values()):
        raise InvalidInput(
            f"Invalid filters: {', '.join(unknown or conditions)}",
            hint=f"Filters, all of them texts: {', '.join(_FILTERS)}.",
        )
    kind, file = conditions.get("doc_type"), conditions.get("source_file")
    if kind not in {None, *_DOC_TYPES}:
        raise InvalidInput(f"Invalid doc_type: {kind}", hint=f"Use one of: {', '.join(_DOC_TYPES)}.")
    namespace: str | None = theo.namespace(conditions.get("namespace"))
    where = (namespace,) if namespace else ()
    files = (Path(file).expanduser().resolve(),) if file else ()
    return _SearchScope(
        None if kind == "memory" else DocumentFilter(namespaces=where, source_files=files),
        None if kind == "document" or files else MemoryFilter(namespaces=where),
    )


def _listed(theo: TheoContext, query: str, results: list[_SearchResult]) -> ToolReply:
    cost = sum(tokens.count(result.content) for result in results)
    return limited_reply(SearchData(_rows(theo, results), len(results), query, total_tokens=cost))


def _rows(theo: TheoContext, results: list[_SearchResult]) -> Rows:
    memories = [result.item for result in results if isinstance(result.item, StoredMemory)]
    metadata = {
        stored.key: row
        for stored, row in zip(
            memories, memory_rows(theo.core, memories, THEO_METADATA) if memories else [], strict=True
        )
    }
    return [
        {
            "id": result.item.id,
            "content": result.content,
            "score": round(result.score, 4),
            "similarity": rounded(result.similarity),
            **(
                {
                    "namespace": result.item.memory.namespace,
                    "doc_type": "memory",
                    "origin": result.item.memory.origin,
                    "metadata": metadata[result.item.key],
                }
                if isinstance(result.item, StoredMemory)
                else _of_chunk(result.item)
            ),
        }
        for result in results
    ]


def _of_chunk(indexed: StoredChunk) -> dict[str, Any]:
    chunk = indexed.chunk
    position = {
        "page": chunk.page,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "name": clean(chunk.name),
    }
    metadata = {
        "source_file": clean(str(indexed.source_file)),
        "chunk_index": indexed.index,
        "header_path": clean(chunk.header_path),
        **{name: value for name, value in position.items() if value},
        **(
            {"document": {clean(name): clean(value) for name, value in indexed.metadata.items()}}
            if indexed.metadata
            else {}
        ),
    }
    return {
        "namespace": indexed.namespace,
        "doc_type": "document",
        "origin": Origin.DOCUMENT,
        "metadata": metadata,
    }


_COMMITS_SHOWN = 50


def trace_query(
    theo: TheoContext,
    file: Annotated[str, Field(description="Path, absolute or relative")],
    line: Annotated[WholeNumber | None, Field(description="Line number, from 1; default: all lines")] = None,
) -> ToolReply:
    """Find the lines of a file that agents wrote, by commit, with the conversation and a certainty.

    "certain" lines are in an agent's edit, "likely" lines differ in formatting only. "possible" means that an agent
    changed the file at that time. Uncommitted lines are listed separately. Lines written before the installation are
    found, too.
    """
    attributed = theo.traces.of_file(Path(file), line)
    main = max((share for share in attributed.shares if share.trace), key=_weight, default=None)
    first = main or (attributed.shares[0] if attributed.shares else None)
    data = TraceData(
        file=attributed.path,
        line=line,
        commit=None if first is None or first.commit.uncommitted else first.commit.sha,
        trace=None if main is None or main.trace is None else main.trace.as_json(),
        certainty=_certainty(main),
        message=_message(attributed),
        lines={
            "total": attributed.total,
            "uncommitted": _uncommitted(attributed),
            **{str(certainty): attributed.count(certainty) for certainty in Certainty},
        },
        commits=[_share(share) for share in attributed.shares[:_COMMITS_SHOWN]],
    )
    return success_reply(data)


def trace_list(
    theo: TheoContext,
    conversation_url: Annotated[str | None, Field(description="session:ID")] = None,
    limit: Limit = 20,
) -> ToolReply:
    """List recent code of agents, newest first: one record per commit, or per conversation without a known commit."""
    traces, total = theo.traces.latest(conversation_url, checked_count(limit, 1_000))
    return limited_reply(TraceListData([trace.as_json() for trace in traces], total))


def _weight(share: CommitShare) -> int:
    return share.certainties.get(Certainty.CERTAIN, 0) + share.certainties.get(Certainty.LIKELY, 0)


def _certainty(share: CommitShare | None) -> str:
    if share is None:
        return Certainty.NONE
    return Certainty.CERTAIN if share.certainties.get(Certainty.CERTAIN) else Certainty.LIKELY


def _share(share: CommitShare) -> dict[str, Any]:
    return {
        "commit": None if share.commit.uncommitted else share.commit.sha,
        "committed": not share.commit.uncommitted,
        "timestamp": instant(share.commit.at),
        "ranges": [{"start_line": first, "end_line": last} for first, last in share.lines],
        "lines": {str(certainty): count for certainty, count in share.certainties.items()},
        "conversations": [] if share.trace is None else share.trace.as_json()["files"][0]["conversations"],
    }


def _uncommitted(attributed: Attributed) -> int:
    return sum(sum(share.certainties.values()) for share in attributed.shares if share.commit.uncommitted)


def _message(attributed: Attributed) -> str:
    if not attributed.total:
        return "The file is empty"
    where = "" if attributed.versioned else "; git does not know the file, so all its lines count as uncommitted"
    if attributed.versioned and (uncommitted := _uncommitted(attributed)):
        where = f"; {many(uncommitted, 'line')} not committed yet"
    if attributed.written:
        return f"Agents wrote {attributed.written} of {many(attributed.total, 'line')}{where}"
    if possible := attributed.count(Certainty.POSSIBLE):
        return f"No AI attribution found, but an agent changed the file when {possible} lines were written{where}"
    return f"No AI attribution found{where}"
