"""Search in memories or document chunks, with the same engine as the search in conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct

from ...archiver.store import Embedding, Store
from ...core.document import ChunkKind, DocumentFilter, StoredChunk
from ...core.errors import ModelUnavailable
from ...core.memory import Memory, MemoryFilter, StoredMemory
from ...core.query import Filters, HitKind, Mode
from ..index.generation import Generations
from ..index.indexed_texts import memory_parts
from ..model.embedding import Embedder
from ..query.query_analysis import unquoted

if TYPE_CHECKING:
    from ..index.vector_index import Array
    from .engine import Engine
    from .fusion import Event

Item = TypeVar("Item")

_BATCH = 20
"""Number of items that are loaded at once."""
_LEAST_WORDS, _LEAST_SEMANTIC = 0.05, 0.2
"""Minimum text score and minimum cosine. An item below both values is unrelated to the query.

Paraphrases have cosines of at least 0.2, and unrelated items have cosines of at most 0.17.
"""
_SPARE = 64
"""Number of additional vectors to request, because items that are not indexed yet are returned unfiltered."""


class CacheStats(Struct, frozen=True):
    """Number of query texts whose embedding was cached (hits), and of texts that had to be embedded (misses)."""

    hits: int = 0
    misses: int = 0


class MemoryVectors(Struct, frozen=True):
    """Embeddings of the texts of a memory, by text number, and the name of the embedding model."""

    model: str
    parts: dict[int, Embedding]


class FoundMemory(Struct, frozen=True):
    """Memory found by a search.

    `relevance` is the score, 0 to 1. `similarity` is the best cosine, or None if no vector was compared. `calibrated`
    is the score on a scale of 0 to 1 where 0.7 is the relevance threshold.
    """

    stored: StoredMemory
    relevance: float
    similarity: float | None
    calibrated: float


class NearMemory(NamedTuple):
    """Memory with its cosine similarity to another memory."""

    stored: StoredMemory
    key: int
    similarity: float


class FoundChunk(Struct, frozen=True):
    """Document chunk found by a search. The scores have the same meaning as in `FoundMemory`."""

    stored: StoredChunk
    score: float
    similarity: float | None
    calibrated: float


class _ItemFinder:
    """Search in memories or in document chunks. The engine and the model are loaded on first use."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        self._store, self._generations, self._embedder = store, generations, embedder

    @cached_property
    def _engine(self) -> Engine:
        from .engine import Engine

        return Engine.of(self._store, self._generations, self._embedder, dated=False, size=self._size)

    def _size(self) -> int | None:
        """Return the number of items that can match, or None for all entries of the index."""
        return None

    @property
    def cache_stats(self) -> CacheStats:
        """Hits and misses of the cache of query embeddings."""
        if "_engine" not in self.__dict__:
            return CacheStats()
        return CacheStats(self._engine.embeddings.hits, self._engine.embeddings.misses)

    def _found(
        self,
        query: str,
        mode: Mode,
        filters: Filters,
        load: Callable[[Sequence[int]], Mapping[int, Item]],
        admits: Callable[[Item], bool],
        *,
        weak: bool,
        depth: int | None = None,
    ) -> Iterator[tuple[Item, Event, float]]:
        """Yield matching items that `admits` accepts, best first, each with its event and calibrated similarity.

        Without `weak`, items are yielded only if at least one accepted item is relevant. If a quoted phrase has no
        match, its words are searched, because agents pass arbitrary text as a query.
        """
        ranked = self._engine.find(query, mode, filters, depth)
        if not ranked.events and (plain := unquoted(query)) != query:
            ranked = self._engine.find(plain, mode, filters, depth)
        related = [event for event in ranked.events if is_related(event)]
        if not (weak or any(map(ranked.is_relevant, related))):
            return
        relevant, before = weak, list[tuple[Item, "Event", float]]()
        for item, event in _admitted(related, load, admits):
            before.append((item, event, ranked.similarity(event)))
            relevant = relevant or ranked.is_relevant(event)
            if relevant:
                yield from before
                before.clear()


class DocumentFinder(_ItemFinder):
    """Search in document chunks."""

    def find(self, query: str, scope: DocumentFilter, mode: Mode = Mode.BOTH) -> Iterator[FoundChunk]:
        """Yield chunks that match the query and satisfy the filter, best first. Unrelated chunks are left out."""
        filters = Filters(
            projects=scope.namespaces,
            files=tuple(map(str, scope.source_files)) or tuple(filter(None, [scope.pattern])),
            kinds=scope.kinds or tuple(ChunkKind),
            languages=scope.languages,
            units=scope.units,
        )
        matches = self._found(query, mode, filters, self._store.documents.load, scope.admits, weak=True)
        return (FoundChunk(stored, event.score, event.similarity, calibrated) for stored, event, calibrated in matches)


class MemoryFinder(_ItemFinder):
    """Search in memories.

    The relevance threshold depends on the number of memories, and not on that of the exchanges in the same index.
    """

    def _size(self) -> int:
        return self._store.memories.count(MemoryFilter())

    def find(
        self,
        query: str,
        scope: MemoryFilter,
        mode: Mode = Mode.BOTH,
        *,
        weak: bool = False,
        depth: int | None = None,
    ) -> Iterator[FoundMemory]:
        """Yield memories that match the query and satisfy the filter, best first.

        Without `weak`, memories are yielded only if at least one is relevant. `depth` is passed to `Engine.find`.
        """
        load, admits = self._store.memories.load, scope.admits
        matches = self._found(query, mode, _filters(scope), load, admits, weak=weak, depth=depth)
        return (FoundMemory(stored, event.score, event.similarity, calibrated) for stored, event, calibrated in matches)

    def near(
        self, memory: Memory, vectors: MemoryVectors | None, scope: MemoryFilter, limit: int, min_similarity: float
    ) -> list[NearMemory]:
        """Return the memories with a cosine of at least `min_similarity` to a memory, best first.

        The result is empty if the model is unavailable.
        """
        best: dict[int, float] = {}
        filters, count = _filters(scope), _SPARE + 4 * limit
        matches = self._engine.nearest(memory_parts(memory)[0], filters, count, self._vector(vectors))
        for item, cosine in zip(matches.item.tolist(), matches.similarity.tolist(), strict=True):
            if cosine >= min_similarity:
                best[item] = max(cosine, best.get(item, -1.0))
        ranked = sorted(best.items(), key=lambda each: (-each[1], each[0]))
        memories = self._store.memories.load([key for key, _ in ranked])
        neighbours = (NearMemory(memories[key], key, cosine) for key, cosine in ranked if key in memories)
        return list(islice((each for each in neighbours if scope.admits(each.stored)), limit))

    def embed(self, memory: Memory) -> MemoryVectors | None:
        """Return the embeddings of a memory, or None if the model is unavailable."""
        texts = memory_parts(memory)
        try:
            embeddings = self._embedder.read(list(texts.values()))
        except ModelUnavailable:
            return None
        from ..index.vector_index import stored

        return MemoryVectors(self._embedder.name, dict(zip(texts, stored(embeddings), strict=True)))

    def cosines(self, pairs: Sequence[tuple[int, int]]) -> list[float | None]:
        """Return the cosine of each pair of memory keys, or None for a pair in which a memory has no vector."""
        import numpy as np

        stored_vectors = self._store.vectors.of_items(
            self._embedder.name, sorted({key for pair in pairs for key in pair})
        )
        vectors = {
            stored.item: np.frombuffer(stored.data, "<f2").astype(np.float32)
            for stored in stored_vectors
            if stored.part == 0
        }
        return [
            round(float(vectors[first] @ vectors[second]), 4) if first in vectors and second in vectors else None
            for first, second in pairs
        ]

    def _vector(self, vectors: MemoryVectors | None) -> Array | None:
        """Return the vector of the first text if it was computed with the model of the index, else None."""
        import numpy as np

        if vectors is None or vectors.model != self._engine.snapshot.model:
            return None
        return np.frombuffer(vectors.parts[0].data, dtype="<f2").astype(np.float32)


def is_related(event: Event) -> bool:
    """Return whether a memory or chunk is related to the query that found it."""
    return event.words >= _LEAST_WORDS or event.semantic >= _LEAST_SEMANTIC


def _admitted(
    events: Sequence[Event], load: Callable[[Sequence[int]], Mapping[int, Item]], admits: Callable[[Item], bool]
) -> Iterator[tuple[Item, Event]]:
    """Yield the items of these events that still exist and that `admits` accepts. Items are loaded in batches."""
    left = iter(events)
    while batch := list(islice(left, _BATCH)):
        items = load([event.key for event in batch])
        for event in batch:
            if event.key in items and admits(items[event.key]):
                yield items[event.key], event


def _filters(scope: MemoryFilter) -> Filters:
    """Return the conditions of a memory filter that the engine supports. The caller checks the other conditions."""
    return Filters(projects=scope.namespaces, types=scope.types, concepts=scope.tags, kinds=(HitKind.MEMORY,))
