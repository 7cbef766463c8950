"""Recall: search stored memories, best first. A recall does not change the confidence of a memory."""

from collections.abc import Callable, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import MemoryFilter, MemoryState, StoredMemory
from ...core.query import Mode
from ...search.rank.item_finder import FoundMemory, MemoryFinder

_CANDIDATES = 4
"""Number of candidates loaded for each result, so that importance and confidence can change their order."""
_DEPTH = 4
"""Number of text entries, and of vectors, that `similar` fuses for each candidate.

Compared with the default of the search engine, eight results take 25 % less time.
"""
_NEAREST = 3
"""Number of results that `nearest` returns."""
_STATS_SHARE = 0.2
"""Share of the score that depends on importance and confidence. Relevance determines the rest."""
_SUPERSEDED_SHARE = 0.5
"""Factor by which the score of a superseded memory is multiplied. It usually ranks below its replacement."""


class RecalledMemory(Struct, frozen=True):
    """Memory that matches a query.

    `score` is between 0 and 1, and orders the results of one query. `similarity` is a cosine, or None if none was
    computed. `calibrated` is the relevance on a scale of 0 to 1 where 0.7 is the relevance threshold of every query.
    """

    stored: StoredMemory
    score: float
    similarity: float | None
    calibrated: float = 0.0


class SimilarMemory(Struct, frozen=True):
    """Memory that is similar to a query. `similarity` is 0 to 1, and 0.7 is the relevance threshold."""

    stored: StoredMemory
    similarity: float


class MemoryRecall:
    """Search in memories."""

    def __init__(self, store: Store, finder: MemoryFinder, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock

    def recall(
        self, query: str, wanted: MemoryFilter | None = None, *, limit: int = 5, count_access: bool = True
    ) -> list[RecalledMemory]:
        """Return the valid memories that match a query above the relevance threshold, best first.

        Each result counts as accessed, unless `count_access` is off or the store is read-only.

        Raises:
            InvalidInput: The query is empty, or the limit is below 1.
        """
        ranked = self._ranked(query, wanted, limit, weak=False)
        if count_access:
            self._count_access([found.stored.key for found in ranked])
        return ranked

    def similar(
        self,
        query: str,
        wanted: MemoryFilter | None = None,
        *,
        min_similarity: float,
        limit: int = 10,
        mode: Mode = Mode.BOTH,
        count_access: bool = True,
    ) -> list[SimilarMemory]:
        """Return the valid memories with a minimum similarity to a query.

        They are sorted by similarity times the `weight` of the memory. Raises the errors of `recall`.
        """
        _check(query, limit)
        wanted = replace(wanted or MemoryFilter(), valid_at=self._clock())
        most = limit * _CANDIDATES
        candidates = islice(self._finder.find(query, wanted, mode, weak=True, depth=_DEPTH * most), most)
        found = [SimilarMemory(each.stored, each.calibrated) for each in candidates]
        kept = [each for each in found if each.similarity >= min_similarity]
        kept.sort(key=lambda each: (-each.similarity * each.stored.memory.weight, each.stored.key))
        if count_access:
            self._count_access([each.stored.key for each in kept[:limit]])
        return kept[:limit]

    def nearest(self, query: str, wanted: MemoryFilter | None = None) -> list[RecalledMemory]:
        """Return the three most similar memories, even below the relevance threshold.

        They do not count as accessed. Raises the errors of `recall`.
        """
        return self._ranked(query, wanted, _NEAREST, weak=True)

    def _ranked(self, query: str, wanted: MemoryFilter | None, limit: int, *, weak: bool) -> list[RecalledMemory]:
        _check(query, limit)
        wanted = replace(wanted or MemoryFilter(), valid_at=self._clock())
        candidates = islice(self._finder.find(query, wanted, weak=weak), limit * _CANDIDATES)
        return sorted(map(_scored, candidates), key=lambda found: (-found.score, found.stored.key))[:limit]

    def _count_access(self, keys: Sequence[int]) -> None:
        if keys and not self._store.is_read_only:
            with self._store.transaction():
                self._store.memories.touch(keys, self._clock())


def near_the_best(found: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """Return the results with at least half of the best score. Forgetting by a query ignores weaker matches."""
    return [each for each in found if each.score >= found[0].score / 2]


def _check(query: str, limit: int) -> None:
    if not query.strip():
        raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
    if limit < 1:
        raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")


def _scored(found: FoundMemory) -> RecalledMemory:
    stats = (found.stored.memory.importance + found.stored.stats.confidence) / 2
    share = _SUPERSEDED_SHARE if found.stored.state is MemoryState.SUPERSEDED else 1
    score = share * found.relevance * (1 - _STATS_SHARE + _STATS_SHARE * stats)
    return RecalledMemory(found.stored, score, found.similarity, share * found.calibrated)
