"""Finding memories: the same engines, asked for memories alone."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ...archiver.store import Embedded
from ...core.errors import ModelUnavailable
from ...core.memory import Memory, StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.query import Filters, Mode
from ..index.memory_texts import KIND, parts
from .finder import Finder

if TYPE_CHECKING:
    from ..index.vector_segment import Array

_SPARE = 64
"""Vectors beyond those asked for: the newest ones are not filtered before they are found."""


class MemoryVectors(Struct, frozen=True):
    """What a memory means, by part, and the name of the model that says so."""

    model: str
    parts: dict[int, Embedded]


class FoundMemory(Struct, frozen=True):
    """A memory that matches. `relevance` (0-1) is the engines' score; `similarity` a true cosine, None where none was
    compared.
    """

    stored: StoredMemory
    relevance: float
    similarity: float | None


class NearMemory(NamedTuple):
    """A memory and how near in meaning it is: a true cosine."""

    stored: StoredMemory
    key: int
    similarity: float


class MemoryFinder(Finder):
    """Finds memories by words and meaning."""

    def find(
        self, query: str, wanted: MemoryFilter, mode: Mode = Mode.BOTH, *, weak: bool = False
    ) -> Iterator[FoundMemory]:
        """Memories that match and satisfy the filter, best first; none where nothing is clearly relevant, unless the
        `weak` are wanted.
        """
        found = self._found(query, mode, _filters(wanted), self._store.memories.load, wanted.admits, weak=weak)
        return (FoundMemory(held, event.score, event.similarity) for held, event in found)

    def near(
        self, memory: Memory, vectors: MemoryVectors | None, wanted: MemoryFilter, limit: int, min_similarity: float
    ) -> list[NearMemory]:
        """The memories nearest in meaning, best first, at least `min_similarity`; none where the model is missing."""
        best: dict[int, float] = {}
        nears = self._engine.nearest(parts(memory)[0], _filters(wanted), _SPARE + 4 * limit, self._vector(vectors))
        for item, cosine in zip(nears.item.tolist(), nears.similarity.tolist(), strict=True):
            if cosine >= min_similarity:
                best[item] = max(cosine, best.get(item, -1.0))
        ranked = sorted(best.items(), key=lambda each: (-each[1], each[0]))
        return list(islice(self._admitted(ranked, wanted, 2 * limit), limit))

    def _admitted(
        self, ranked: Sequence[tuple[int, float]], wanted: MemoryFilter, at_a_time: int
    ) -> Iterator[NearMemory]:
        """Those of these keys, with their cosines, that satisfy a filter, in order; loaded as far as asked for."""
        for start in range(0, len(ranked), at_a_time):
            part = ranked[start : start + at_a_time]
            known = self._store.memories.load([key for key, _ in part])
            for key, cosine in part:
                if key in known and wanted.admits(known[key]):
                    yield NearMemory(known[key], key, cosine)

    def embed(self, memory: Memory) -> MemoryVectors | None:
        """What a memory means; None where the model is missing, so that it is embedded later."""
        told = parts(memory)
        try:
            reading = self._embedder.read(list(told.values()))
        except ModelUnavailable:
            return None
        from ..index.token_bits import stored

        return MemoryVectors(self._embedder.name, dict(zip(told, stored(reading), strict=True)))

    def cosines(self, pairs: Sequence[tuple[int, int]]) -> list[float | None]:
        """How near the memories of each pair, given by key, are in meaning; None where one has no vector yet."""
        import numpy as np

        held = self._store.vectors.of_items(self._embedder.name, sorted({key for pair in pairs for key in pair}))
        means = {each.item: np.frombuffer(each.data, "<f2").astype(np.float32) for each in held if each.part == 0}
        return [
            round(float(means[one] @ means[other]), 4) if one in means and other in means else None
            for one, other in pairs
        ]

    def _vector(self, vectors: MemoryVectors | None) -> "Array | None":
        """The first part's vector, where the model that searches made it."""
        import numpy as np

        if vectors is None or vectors.model != self._engine.model:
            return None
        return np.frombuffer(vectors.parts[0].data, dtype="<f2").astype(np.float32)


def _filters(wanted: MemoryFilter) -> Filters:
    """As much of the filter as the engines know; the rest is asked of what they find."""
    where = wanted.namespaces or wanted.projects
    return Filters(projects=where, types=wanted.types, concepts=wanted.tags, kinds=(KIND,))
