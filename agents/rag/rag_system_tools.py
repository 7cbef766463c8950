"""Rag tools for statistics, and for the memories that a query would retrieve."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ...core.context_level import Category, ContextLevel
from ...core.memory_filter import MemoryFilter
from ...observe.memory import GLOBAL_NAMESPACES
from ...search.query.secret_placeholders import redacted
from ..json_reply import NOTICE
from ..toolset import ToolReply
from .rag_context import RagContext
from .rag_parameters import MemoryQuery, without_controls
from .rag_replies import ContextReply, MemoryRow, StatsReply, found_rows, memory_rows

_PER_LEVEL = 5
"""Number of memories that `show_current_context` returns for each level."""


def get_memory_stats(rag: RagContext) -> ToolReply:
    """Count all memories by category and context level, and report the cache of query embeddings."""
    categories: Counter[str] = Counter(dict.fromkeys(map(str, Category), 0))
    levels: Counter[str] = Counter(dict.fromkeys(map(str, ContextLevel), 0))
    for category, level, number in rag.core.count_kinds():
        categories[str(category)] += number
        levels[str(level)] += number
    hits, misses = rag.lookups.hits, rag.lookups.misses
    reply: StatsReply = {
        "total_memories": categories.total(),
        "by_category": dict(categories),
        "by_context_level": dict(levels),
        "storage_backend": "sqlite",
        "read_only_mode": rag.config.home.read_only or rag.core.store.is_read_only,
        "cache_stats": {
            "hits": hits,
            "misses": misses,
            "hit_rate": round(hits / (hits + misses), 3) if hits + misses else 0.0,
        },
    }
    return rag.reply(reply)


def show_current_context(
    rag: RagContext, query: Annotated[MemoryQuery | None, Field(description="Question or keywords")] = None
) -> ToolReply:
    """For debugging: show the memories of each level that a query would retrieve here, or the latest ones."""
    here = rag.own_namespace()
    text = None if query is None else redacted(without_controls(query), rag.config.home)
    results: dict[str, Sequence[MemoryRow]] = {}
    for level in ContextLevel:
        wanted = MemoryFilter(namespaces=tuple(dict.fromkeys((here, *GLOBAL_NAMESPACES))), levels=(level,))
        if text is None:
            results[str(level)] = memory_rows(rag.core, rag.core.page(wanted, limit=_PER_LEVEL))
        else:
            with rag.lookup():
                found = rag.core.recall(text, wanted, limit=_PER_LEVEL, count_access=False)
            results[str(level)] = found_rows(rag.core, found)
    count = sum(map(len, results.values()))
    reply: ContextReply = {"query": text, "project": here, "results": results, "count": count}
    if count:
        reply["notice"] = NOTICE["notice"]
    return rag.reply(reply)
