"""Theo's search: documents and memories in one list, by one score."""

from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from pydantic import Field

from ...core import tokens
from ...core.document import DocumentFilter, HeldChunk
from ...core.errors import InvalidInput
from ...core.memory import MemoryState, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.origin import Origin
from ...search.query.secret_placeholders import redacted
from ...templates.quote import clean
from ..toolset import Reply, WholeNumber
from .arguments import RESULTS_MAX, Count, Limit, Object, SearchQuery, checked_count
from .desk import TheoDesk
from .envelope import budgeted, cosine

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
        description="What results must match",
    ),
]


class _Wanted(Struct, frozen=True):
    """Which kinds of thing are searched, and what of each. None means not at all."""

    documents: DocumentFilter | None
    memories: MemoryFilter | None


class _Found(Struct, frozen=True):
    """A chunk or a memory, and the score that both engines gave it."""

    held: HeldChunk | StoredMemory
    score: float
    similarity: float | None

    @property
    def content(self) -> str:
        """What it says."""
        return clean(self.held.memory.content if isinstance(self.held, StoredMemory) else self.held.chunk.text)


_ALL = _Wanted(DocumentFilter(), MemoryFilter())


def search(desk: TheoDesk, query: SearchQuery, n_results: Count = 5) -> Reply:
    """Find in indexed documents and in memories, best first."""
    query = redacted(query, desk.place.home)
    return _listed(query, _found(desk, query, _ALL, checked_count(n_results)))


def search_with_filters(desk: TheoDesk, query: SearchQuery, filters: Filters, n_results: Limit = 5) -> Reply:
    """Find only in a namespace, a source file, or among documents or memories."""
    query = redacted(query, desk.place.home)
    return _listed(query, _found(desk, query, _wanted(filters), checked_count(n_results)))


def search_with_budget(
    desk: TheoDesk,
    query: SearchQuery,
    max_tokens: Annotated[
        WholeNumber, Field(json_schema_extra={"default": 3000}, description="Maximum tokens of all results together")
    ],
) -> Reply:
    """Find as much as fits into a number of tokens: the best first, and what is too long makes room for the next."""
    if max_tokens < 1:
        raise InvalidInput(f"Invalid max_tokens: {max_tokens}", hint="Give 1 token or more.")
    candidates = _found(desk, redacted(query, desk.place.home), _ALL, RESULTS_MAX)
    chosen, used = list[_Found](), 0
    for candidate in candidates:
        price = tokens.count(candidate.content)
        if used + price <= max_tokens:
            chosen.append(candidate)
            used += price
    left_out = len(candidates) - len(chosen)
    return budgeted(
        {
            "results": [_result(each) for each in chosen],
            "tokens_used": used,
            "budget_remaining": max_tokens - used,
            "truncated": left_out > 0,
            "truncated_count": left_out,
        }
    )


def _found(desk: TheoDesk, query: str, wanted: _Wanted, limit: int) -> list[_Found]:
    """What answers, best first; raises `InvalidInput` for an empty query."""
    if not query.strip():
        raise InvalidInput("Query cannot be empty", hint="Say what to find.")
    found: list[_Found] = []
    if wanted.documents is not None:
        chunks = desk.documents.search(query, wanted.documents, limit=limit)
        found += [_Found(each.held, each.score, each.similarity) for each in chunks]
    if wanted.memories is not None:
        memories = desk.core.recall(query, wanted.memories, limit=limit, count_access=False)
        found += [_Found(each.stored, each.score, each.similarity) for each in memories]
    return sorted(found, key=lambda each: (-each.score, each.held.key))[:limit]


def _wanted(filters: Object) -> _Wanted:
    unknown = [name for name in filters if name not in _FILTERS]
    given = {name: value for name, value in filters.items() if value is not None}
    if unknown or not all(isinstance(value, str) for value in given.values()):
        raise InvalidInput(f"Invalid filters: {', '.join(unknown or given)}", hint=f"Texts: {', '.join(_FILTERS)}.")
    kind, file = given.get("doc_type"), given.get("source_file")
    if kind not in {None, *_DOC_TYPES}:
        raise InvalidInput(f"Invalid doc_type: {kind}", hint=f"Use one of: {', '.join(_DOC_TYPES)}.")
    where = (given["namespace"],) if given.get("namespace") else ()
    files = (Path(file).expanduser().resolve(),) if file else ()
    return _Wanted(
        None if kind == "memory" else DocumentFilter(namespaces=where, source_files=files),
        None if kind == "document" or files else MemoryFilter(namespaces=where),
    )


def _listed(query: str, found: list[_Found]) -> Reply:
    results = [_result(each) for each in found]
    price = sum(tokens.count(each["content"]) for each in results)
    return budgeted({"results": results, "total": len(results), "query": query, "total_tokens": price})


def _result(found: _Found) -> dict[str, Any]:
    held = found.held
    memory = isinstance(held, StoredMemory)
    return {
        "id": held.id,
        "content": found.content,
        "score": round(found.score, 4),
        "similarity": cosine(found.similarity),
        "namespace": held.memory.namespace if isinstance(held, StoredMemory) else held.namespace,
        "doc_type": "memory" if memory else "document",
        "origin": held.memory.origin if isinstance(held, StoredMemory) else Origin.DOCUMENT,
        "metadata": _of_memory(held) if isinstance(held, StoredMemory) else _of_chunk(held),
    }


def _of_memory(held: StoredMemory) -> dict[str, Any]:
    return {
        "memory_type": held.memory.type,
        "confidence": held.stats.confidence,
        "importance": held.memory.importance,
        **({"superseded": True} if held.state is MemoryState.SUPERSEDED else {}),
        **({"source_file": clean(held.memory.path)} if held.memory.path else {}),
    }


def _of_chunk(held: HeldChunk) -> dict[str, Any]:
    chunk = held.chunk
    known = {"page": chunk.page, "start_line": chunk.start_line, "end_line": chunk.end_line, "name": clean(chunk.name)}
    return {
        "source_file": clean(str(held.source_file)),
        "chunk_index": held.index,
        "header_path": clean(chunk.header_path),
        **{name: value for name, value in known.items() if value},
    }
