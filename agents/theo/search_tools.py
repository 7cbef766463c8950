"""Theo tools for search in documents and memories, which have comparable scores and are returned in one list."""

from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field

from ...core import tokens
from ...core.document import DocumentFilter, StoredChunk
from ...core.errors import InvalidInput
from ...core.memory import StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.origin import Origin
from ...search.query.secret_placeholders import redacted
from ...templates.memory_changes import supersession_fields
from ...templates.quote import clean
from ..json_reply import Rows
from ..toolset import ToolReply, WholeNumber
from .parameters import RESULTS_MAX, Count, Limit, Object, SearchQuery, checked_count
from .theo_context import TheoContext
from .theo_data import BudgetSearchData, SearchData
from .theo_replies import limited_reply, rounded

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
    return _listed(theo, query, _found(theo, query, _ALL, checked_count(n_results)))


def search_with_filters(theo: TheoContext, query: SearchQuery, filters: Filters, n_results: Limit = 5) -> ToolReply:
    """Search one namespace, one source file, or only documents or memories."""
    query = redacted(query, theo.config.home)
    return _listed(theo, query, _found(theo, query, _scope(filters), checked_count(n_results)))


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
    candidates = _found(theo, redacted(query, theo.config.home), _ALL, RESULTS_MAX)
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


def _found(theo: TheoContext, query: str, scope: _SearchScope, limit: int) -> list[_SearchResult]:
    """Return the search results, best first. Raises `InvalidInput` for an empty query."""
    if not query.strip():
        raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
    found: list[_SearchResult] = []
    if scope.documents is not None:
        chunks = theo.documents.search(query, scope.documents, limit=limit)
        found += [_SearchResult(each.stored, each.score, each.similarity) for each in chunks]
    if scope.memories is not None:
        memories = theo.core.recall(query, scope.memories, limit=limit, count_access=False)
        found += [_SearchResult(each.stored, each.score, each.similarity) for each in memories]
    return sorted(found, key=lambda each: (-each.score, each.item.key))[:limit]


def _scope(filters: Object) -> _SearchScope:
    unknown = [name for name in filters if name not in _FILTERS]
    given = {name: value for name, value in filters.items() if value is not None}
    if unknown or not all(isinstance(value, str) for value in given.values()):
        raise InvalidInput(
            f"Invalid filters: {', '.join(unknown or given)}",
            hint=f"Filters, all of them texts: {', '.join(_FILTERS)}.",
        )
    kind, file = given.get("doc_type"), given.get("source_file")
    if kind not in {None, *_DOC_TYPES}:
        raise InvalidInput(f"Invalid doc_type: {kind}", hint=f"Use one of: {', '.join(_DOC_TYPES)}.")
    where = (given["namespace"],) if given.get("namespace") else ()
    files = (Path(file).expanduser().resolve(),) if file else ()
    return _SearchScope(
        None if kind == "memory" else DocumentFilter(namespaces=where, source_files=files),
        None if kind == "document" or files else MemoryFilter(namespaces=where),
    )


def _listed(theo: TheoContext, query: str, found: list[_SearchResult]) -> ToolReply:
    cost = sum(tokens.count(each.content) for each in found)
    return limited_reply(SearchData(_rows(theo, found), len(found), query, total_tokens=cost))


def _rows(theo: TheoContext, found: list[_SearchResult]) -> Rows:
    memories = [each.item for each in found if isinstance(each.item, StoredMemory)]
    edges = theo.core.graph.superseding(memories) if memories else []
    superseded = dict(zip((stored.key for stored in memories), supersession_fields(memories, edges), strict=True))
    return [
        {
            "id": each.item.id,
            "content": each.content,
            "score": round(each.score, 4),
            "similarity": rounded(each.similarity),
            **(
                _of_memory(each.item) | {"metadata": _memory_metadata(each.item) | superseded[each.item.key]}
                if isinstance(each.item, StoredMemory)
                else _of_chunk(each.item)
            ),
        }
        for each in found
    ]


def _of_memory(stored: StoredMemory) -> dict[str, Any]:
    return {"namespace": stored.memory.namespace, "doc_type": "memory", "origin": stored.memory.origin}


def _memory_metadata(stored: StoredMemory) -> dict[str, Any]:
    return {
        "memory_type": stored.memory.type,
        "confidence": stored.stats.confidence,
        "importance": stored.memory.importance,
        **({"source_file": clean(stored.memory.path)} if stored.memory.path else {}),
    }


def _of_chunk(indexed: StoredChunk) -> dict[str, Any]:
    chunk = indexed.chunk
    known = {"page": chunk.page, "start_line": chunk.start_line, "end_line": chunk.end_line, "name": clean(chunk.name)}
    metadata = {
        "source_file": clean(str(indexed.source_file)),
        "chunk_index": indexed.index,
        "header_path": clean(chunk.header_path),
        **{name: value for name, value in known.items() if value},
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
