"""Recalling: what is held about something, best first. Being found earns a memory nothing."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import MemoryState, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.query import Mode
from ...search.rank.memory_finder import FoundMemory, MemoryFinder

_CANDIDATES = 4
"""Candidates looked at for each memory asked for: what a memory has earned may move it up by so much."""
_WEAK = 3
"""How many of the nearest are told where nothing is clearly relevant, as in a search of everything."""
_EARNED = 0.2
"""The share of a score that importance and confidence decide; the rest is what the engines say."""
_SUPERSEDED = 0.5
"""The share of its score that a superseded memory keeps, so that what replaced it is ranked first."""


class _Ranked(Protocol):
    @property
    def score(self) -> float: ...


Answer = TypeVar("Answer", bound=_Ranked)


class Recalled(Struct, frozen=True):
    """A memory that answers. `score` (0-1) ordered the list, `similarity` is a true cosine or None where none was
    compared, and `held.stats.confidence` is earned: three numbers that are never mixed up.
    """

    held: StoredMemory
    score: float
    similarity: float | None


class Recalling:
    """Finds memories."""

    def __init__(self, store: Store, finder: MemoryFinder, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock

    def recall(
        self,
        query: str,
        wanted: MemoryFilter | None = None,
        *,
        limit: int = 5,
        mode: Mode = Mode.BOTH,
        count_access: bool = True,
    ) -> list[Recalled]:
        """The memories that answer a query, best first; none where nothing is clearly relevant. Raises `InvalidInput`.

        Archived and expired ones are left out. Each one handed back counts as accessed, unless nothing may be written.
        """
        ranked = self._ranked(query, wanted, limit, mode, weak=False)
        if count_access and ranked and not self._store.is_read_only:
            with self._store.transaction():
                self._store.memories.touch([found.held.key for found in ranked], self._clock())
        return ranked

    def nearest(self, query: str, wanted: MemoryFilter | None = None) -> list[Recalled]:
        """The three nearest, also where nothing is clearly relevant, best first; what has nothing at all to do with the
        query is left out. Counts no access. Raises `InvalidInput`.
        """
        return self._ranked(query, wanted, _WEAK, Mode.BOTH, weak=True)

    def _ranked(self, query: str, wanted: MemoryFilter | None, limit: int, mode: Mode, *, weak: bool) -> list[Recalled]:
        if not query.strip():
            raise InvalidInput("Query cannot be empty", hint="Say what to recall.")
        if limit < 1:
            raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")
        wanted = replace(wanted or MemoryFilter(), valid_at=self._clock())
        candidates = islice(self._finder.find(query, wanted, mode, weak=weak), limit * _CANDIDATES)
        return sorted(map(_scored, candidates), key=lambda found: (-found.score, found.held.key))[:limit]


def near_the_best(found: Sequence[Answer]) -> list[Answer]:
    """Those of what was found, best first, that are at least half as near as the best: deleting takes less in than
    finding.
    """
    return [each for each in found if each.score >= found[0].score / 2]


def _scored(found: FoundMemory) -> Recalled:
    worth = (found.held.memory.importance + found.held.stats.confidence) / 2
    share = _SUPERSEDED if found.held.state is MemoryState.SUPERSEDED else 1
    return Recalled(found.held, share * found.relevance * (1 - _EARNED + _EARNED * worth), found.similarity)
