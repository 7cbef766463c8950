"""What can be searched right now: the published generation, and the tail of changes that it does not hold yet.

The tail is a small index in memory of the same make, so that what one process stores every other finds at once;
items that changed since the generation was published are hidden in it and answered from the tail alone.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ..archiver.store import Entity, Store
from ..core.disclosure import Filters
from ..core.errors import IndexDamaged
from . import documents
from .embedder import Embedder
from .generation import Generations, Manifest
from .text_index import TextIndex, TextMatch
from .vector_index import Array, Near, VectorIndex


class Snapshot:
    """A view of the whole archive as of the last `refresh`."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        """`embedder` is asked for its name only, and only where nothing was published yet."""
        self._store, self._generations, self._embedder = store, generations, embedder
        self._name = generations.name()
        self._start(self._published())
        self.refresh()

    @property
    def lag(self) -> int:
        """Changes that the published index does not hold yet; the tail does."""
        return self._seq - self._watermark

    def refresh(self) -> None:
        """Catch up with the store and with what was published. Costs one query when nothing changed."""
        name = self._generations.name()
        if name != self._name:
            self._name = name
            self._start(self._published())
        last = self._store.changes.last()
        if last != self._seq:
            self._follow(last)

    def text(self, words: str, filters: Filters, limit: int) -> list[TextMatch]:
        """Entries by words, best first."""
        found = self._tail.search(words, filters, limit)
        if self._text is not None:
            found += self._text.search(words, filters, limit, sorted(self._hidden))
        return sorted(found, key=lambda match: -match.fraction)[:limit]

    def nearest(self, vector: Array, filters: Filters, limit: int) -> list[Near]:
        """Vectors by similarity, best first."""
        if not len(self._vectors) and not len(self._tail_vectors):
            return []
        allowed = self._keys(filters) if filters else None
        found = self._vectors.nearest(vector, limit, allowed, self._moved)
        found += self._tail_vectors.nearest(vector, limit, allowed, frozenset())
        return sorted(found, key=lambda near: -near.similarity)[:limit]

    def of_events(self, vector: Array, events: Sequence[int]) -> list[Near]:
        """Every vector of these events, compared exactly."""
        published = self._vectors.of_events(vector, events, self._moved)
        return published + self._tail_vectors.of_events(vector, events, frozenset())

    def allowed(self, filters: Filters, among: Sequence[int]) -> AbstractSet[int]:
        """Those of these items that satisfy the filters."""
        published = self._text.allowed(filters, among) - self._hidden if self._text is not None else set[int]()
        return published | self._tail.allowed(filters, among)

    @property
    def model(self) -> str:
        """The model of the vectors that are searched: queries must be embedded with it."""
        return self._model

    def _keys(self, filters: Filters) -> AbstractSet[int]:
        published = self._text.keys(filters) - self._hidden if self._text is not None else set[int]()
        return published | self._tail.keys(filters)

    def _published(self) -> tuple[Manifest, TextIndex, VectorIndex] | None:
        """The current generation, opened; None where there is none that can be used."""
        try:
            generation = self._generations.current()
            if generation is None or generation.manifest.watermark > self._store.changes.last():
                return None
            return generation.manifest, TextIndex.open(generation.text), VectorIndex.open(generation.vectors)
        except (IndexDamaged, OSError, ValueError):
            # Not only damage: other processes publish while we open, so what was whole just now may be gone.
            return None

    def _start(self, published: tuple[Manifest, TextIndex, VectorIndex] | None) -> None:
        """Begin with a generation and an empty tail."""
        manifest, text, vectors = published or (None, None, VectorIndex.empty())
        self._text: TextIndex | None = text
        self._vectors: VectorIndex = vectors
        self._model = manifest.model if manifest else self._embedder.name
        self._watermark = self._seq = manifest.watermark if manifest else 0
        self._tail = TextIndex.make()
        self._tail_vectors = VectorIndex.empty()
        self._hidden: set[int] = set()
        """Items whose published text is out of date."""
        self._moved: set[int] = set()
        """Items whose published vectors are out of date."""

    def _follow(self, last: int) -> None:
        texts = self._store.changes.since(self._seq, [Entity.ITEM])
        gone, added = documents.moved_vectors(self._store, self._seq, self._model)
        self._hidden.update(texts)
        self._moved.update(gone)
        self._tail.apply(texts, documents.entries(self._store, texts))
        self._tail_vectors = self._tail_vectors.changed(gone, added)
        self._seq = last
