"""Current view of the archive: the published index and the changes that are not published yet.

The tail is an in-memory text index of the items that changed after the last publication. Searches ignore the published
entries of these items. Every process can therefore search the changes of all processes at once. Changed vectors form a
small segment of the vector index.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain

import numpy as np

from ...archiver.store import Entity, Store
from ...core.errors import IndexDamaged
from ...core.query import Filters, Role
from ...core.results import Correction
from ...core.tokens import Memo
from ..model.embedding import Embedder, TokenVectors
from ..query.query_analysis import WORD, AnalyzedQuery
from ..query.tokenizer import terms
from . import indexed_texts
from .generation import Generation, Generations
from .indexed_texts import TextWindow
from .matches import Flags, Floats, Integers, TextMatches, VectorMatches, distinct
from .matches import among as is_among
from .term_statistics import TermStatistics
from .text_index import Pairs, TextIndex
from .vector_index import ALL_PARTS, Array, PartFilter, VectorIndex

_FILTERS_KEPT = 64
"""Maximum number of filters whose matching items are cached. Each filter takes one byte per item."""
_LIST_OR_FILTER = 2
"""Time for filtering one search candidate, divided by the time for listing one item that satisfies the filters."""
_LISTED, _OF_ALL = 500, 200
"""Limits up to which the entries that satisfy a filter are listed and cached when they are counted.

There must be at most `_LISTED` such entries, or at most one among `_OF_ALL` entries of the index.
"""
_PER_SPELLING = 5
"""Maximum number of items to read for each similar term, in order to find the full word of a correction."""


class Snapshot(TermStatistics):
    """View of the whole archive at the time of the last `refresh`."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        """Open the published index. Before the first publication, the property `model` is the name of `embedder`."""
        self._store, self._generations, self._embedder = store, generations, embedder
        self._name = generations.name()
        self._start(self._published())
        self.refresh()

    @property
    def lag(self) -> int:
        """Number of changes of the store that are visible but not in the published index."""
        return self._seq - self._watermark

    @property
    def seq(self) -> int:
        """Sequence number of the last change of the store that searches can see."""
        return self._seq

    @property
    def model(self) -> str:
        """Name of the embedding model that computed the vectors."""
        return self._model

    def refresh(self) -> None:
        """Read new changes of the store and a newly published index.

        If there are none, this takes one database query.
        """
        name = self._generations.name()
        if name != self._name:
            self._name = name
            self._start(self._published())
        last = self._store.changes.last()
        if last != self._seq:
            self._follow(last)

    def newest(self, filters: Filters, limit: int) -> tuple[list[tuple[int, int]], bool]:
        """Return (instant, event key) pairs, newest first, and True if the list is complete. Undated events come last.

        At most `limit` entries are read per index, and an event can have several entries. If an index has more entries,
        events that are not newer than its last entry read are left out, because unread entries could precede them.
        """
        lists = [self._read_tail().newest(filters, limit)]
        if self._text is not None:
            lists.append(self._text.newest(filters, limit, sorted(self._hidden)))
        limits = [pairs[-1][0] for pairs in lists if len(pairs) == limit]
        last: dict[int, int] = {}
        for at, event in chain.from_iterable(lists):
            if not limits or at > max(limits):
                last[event] = max(at, last.get(event, at))
        return sorted(((at, event) for event, at in last.items()), reverse=True), not limits

    def names(self, field: str) -> set[str]:
        """Return all values of a filter field. Some values may have no entry left, so check them with `has`."""
        return {name for index in self._texts for name in index.names(field)}

    def has(self, filters: Filters) -> bool:
        """Return whether any entry satisfies the filters."""
        published = self._text is not None and self._text.newest(filters, 1, sorted(self._hidden))
        return bool(published or self._read_tail().newest(filters, 1))

    def correction(self, word: str) -> Correction | None:
        """Return a similar known word for an unknown word, or None if no known word is similar."""
        for plain in WORD.findall(word):
            stems = terms(plain)
            if len(stems) == 1 and stems[0].isalpha() and not self.entries_with(stems[0]):
                from ..query import spelling  # loads rapidfuzz, which few queries need

                alike = [item for index in self._texts for item in index.spelled_like(stems[0], _PER_SPELLING)]
                windows = indexed_texts.entry_windows(self._store, [*dict.fromkeys(alike)], with_context=True)
                if similar := spelling.nearest(plain, (window.text for _, window in windows)):
                    return Correction(plain, similar)
        return None

    @property
    def entries(self) -> int:
        """Number of entries."""
        return sum(map(len, self._texts))

    def entries_with(self, term: str) -> int:
        """Return the number of entries with a term."""
        return sum(index.entries_with(term) for index in self._texts)

    def contains_phrase(self, phrase: str) -> bool:
        """Return whether any entry contains this phrase."""
        return any(index.contains_phrase(phrase) for index in self._texts)

    def adjacent_terms(self, pairs: Pairs, items: Integers) -> Floats:
        """Return, for each item, the summed weight of the term pairs that are adjacent in its best entry, 0 to 1."""
        keys = set(items.tolist())
        weights = self._read_tail().adjacent_terms(pairs, sorted(keys))
        if self._text is not None:
            weights |= self._text.adjacent_terms(pairs, sorted(keys - self._hidden))
        return np.array([weights.get(item, 0.0) for item in items.tolist()])

    def text(
        self, query: str | AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the entries that match words of the query, best first. `among` restricts the search to these items."""
        if among is not None and (flags := self._flagged.get(filters)) is not None:
            # Roles are stored per entry, all other filter fields per item.
            among, filters = sorted(_flagged(flags, among)), Filters(roles=filters.roles)
        tail = self._read_tail().search(query, filters, limit, among=among, larger=self._text)
        if self._text is None:
            return tail
        share = self._shares.get(filters, 1.0)
        published = self._text.search(query, filters, limit, sorted(self._hidden), among, share)
        return published.merged_with(tail, limit) if len(tail) else published

    def nearest(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Return the vectors that satisfy the filters and are nearest to `vector`, best first."""
        part_filter = (
            PartFilter(Role.HUMAN in filters.roles, Role.ASSISTANT in filters.roles) if filters.roles else ALL_PARTS
        )
        if not filters:
            return self._vectors.nearest(vector, limit, None, part_filter)
        share = self.share(filters)
        if share * share * len(self._vectors) > _LIST_OR_FILTER * limit:
            matches = self._vectors.nearest_passing(vector, limit, share, partial(self.passing, filters), part_filter)
            if matches is not None:
                return matches
        return self._vectors.nearest(vector, limit, self._flagged.get_or_make(filters, self._flags), part_filter)

    def near(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Return the nearest vectors, best first. The filters apply only to the published index.

        The caller must filter the items of the tail (changes that are not published yet). This method does not index
        their text, so it is fast after each change.
        """
        published = self._flagged_published.get_or_make(filters, self._published_flags)
        flags = _lengthened(published, max(self._hidden, default=0))
        flags[list(self._hidden)] = True
        return self._vectors.nearest(vector, limit, flags)

    def of_events(self, vector: Array, events: Integers) -> VectorMatches:
        """Return two exact cosines per item of these events: that of its prompt, and the best of its other texts."""
        return self._vectors.of_events(vector, events)

    def waiting(self, matches: TextMatches, vectors: VectorMatches) -> Integers:
        """Return the keys of events that only text search finds because they are not embedded yet, ascending."""
        alone = ~is_among(matches.event, distinct(vectors.event)[0])
        if not alone.any():
            return np.empty(0, dtype=np.int64)
        items = self._store.vectors.waiting(self._model, distinct(matches.key[alone])[0].tolist())
        return distinct(matches.event[alone & is_among(matches.key, np.array(items, dtype=np.int64))])[0]

    def late_interaction(self, query: TokenVectors, vector: Array, vectors: VectorMatches) -> Floats:
        """Return the late-interaction score for the item of each vector, or NaN if unknown.

        Args:
            query: Token embeddings of the query.
            vector: Vector of the query.
            vectors: Vectors of the items.
        """
        return self._vectors.late_interaction(query, vector, vectors.rows)

    def windows(self, items: Sequence[int], *, with_context: bool) -> Iterator[tuple[int, TextWindow]]:
        """Yield (item key, window) for the text of each entry of these items, see `indexed_texts.entry_windows`."""
        return indexed_texts.entry_windows(self._store, items, with_context=with_context)

    def sessions_of(self, items: Sequence[int]) -> dict[int, int]:
        """Map the key of each of these items that exists to its session, or to 0 without a session."""
        return {key: item.session for key, item in self._store.items.load(items).items()}

    def items_of(self, sessions: Sequence[int]) -> list[int]:
        """Return the keys of all items of these sessions."""
        return self._store.items.of_sessions(sessions)

    def allowed(self, filters: Filters, among: Sequence[int]) -> AbstractSet[int]:
        """Return the items in `among` that satisfy the filters."""
        if (flags := self._flagged.get(filters)) is not None:
            return _flagged(flags, among)
        return self._allowed_published(filters, among) - self._hidden | self._read_tail().allowed(filters, among)

    def _allowed_published(self, filters: Filters, among: Sequence[int]) -> set[int]:
        if (flags := self._flagged_published.get(filters)) is not None:
            return _flagged(flags, among)
        return self._text.allowed(filters, among) if self._text is not None else set()

    def passing(self, filters: Filters, items: Integers) -> Flags:
        """Return a flag per item: True if the item satisfies the filters."""
        passing = self.allowed(filters, items.tolist())
        return np.fromiter((item in passing for item in items.tolist()), bool, len(items))

    def share(self, filters: Filters) -> float:
        """Return the share of published entries that satisfy the filters, 0 to 1. Unpublished entries are ignored."""
        return self._shares.get_or_make(filters, self._share)

    def is_narrow(self, filters: Filters) -> bool:
        """Return whether the number of entries that satisfy the filters is small enough to rank all of them."""
        return bool(filters) and self._text is not None and self.share(filters) * len(self._text) <= _LISTED

    def _share(self, filters: Filters) -> float:
        if self._text is None:
            return 0.0
        share, keys = self._text.share(filters, max(_LISTED, len(self._text) // _OF_ALL))
        if keys is not None:
            self._flagged_published.get_or_make(filters, lambda _: _flags_of(keys))
        return share

    def _flags(self, filters: Filters) -> Flags:
        """Return a flag per item key: True if the item satisfies the filters."""
        published, tail = (
            self._flagged_published.get_or_make(filters, self._published_flags),
            self._read_tail().keys(filters),
        )
        flags = _lengthened(published, max(tail.max(initial=0), *self._hidden, 0))
        flags[list(self._hidden)] = False
        flags[tail] = True
        return flags

    def _published_flags(self, filters: Filters) -> Flags:
        """Return a flag per item key: True if the item has a published entry that satisfies the filters."""
        return _flags_of(self._text.keys(filters) if self._text is not None else np.empty(0, dtype=np.int64))

    @property
    def _texts(self) -> Sequence[TextIndex]:
        return [self._read_tail()] if self._text is None else [self._text, self._read_tail()]

    def _read_tail(self) -> TextIndex:
        """Add all pending changes to the tail (the in-memory text index of unpublished changes) and return it."""
        if self._unread:
            items = sorted(self._unread)
            self._tail.apply(items, indexed_texts.entries(self._store, items))
            self._unread.clear()
        return self._tail

    def _published(self) -> tuple[Generation, TextIndex, VectorIndex] | None:
        """Open the current generation and its two indexes. Return None if no usable generation exists."""
        try:
            generation = self._generations.current()
            if generation is None or not generation.manifest.is_of(self._store):
                return None
            text = TextIndex.open(generation.text, read_only=self._generations.read_only)
            return generation, text, VectorIndex.open(generation.vectors)
        except (IndexDamaged, OSError, ValueError):
            # Another process may have just published, which removes this generation.
            return None

    def _start(self, published: tuple[Generation, TextIndex, VectorIndex] | None) -> None:
        """Initialise the snapshot from a published generation. No later change is visible yet."""
        generation, text, vectors = published or (None, None, VectorIndex())
        manifest = generation.manifest if generation else None
        self._text: TextIndex | None = text
        self._vectors: VectorIndex = vectors
        self._model = manifest.model if manifest else self._embedder.name
        self._watermark = self._seq = manifest.watermark if manifest else 0
        self._tail = TextIndex.make()
        self._hidden: set[int] = set()
        """Keys of items whose published entries are outdated."""
        self._unread: set[int] = set()
        """Keys of changed items whose text is not indexed in memory yet. The next text search adds them."""
        self._flagged = Memo[Filters, Flags](_FILTERS_KEPT)
        self._flagged_published = Memo[Filters, Flags](_FILTERS_KEPT)
        self._shares = Memo[Filters, float](_FILTERS_KEPT)

    def _follow(self, last: int) -> None:
        items = self._store.changes.since(self._seq, [Entity.ITEM])
        gone, added = indexed_texts.changed_vectors(self._store, self._seq, self._model)
        self._hidden.update(items)
        self._unread.update(items)
        self._vectors = self._vectors.changed(gone, added)
        self._flagged.clear()
        self._seq = last


def _flags_of(keys: Integers) -> Flags:
    flags = np.zeros(1 + keys.max(initial=0), dtype=bool)
    flags[keys] = True
    return flags


def _lengthened(flags: Flags, last: int) -> Flags:
    """Return a copy of the flags, extended with False to all keys up to `last`."""
    longer = np.zeros(max(len(flags), 1 + last), dtype=bool)
    longer[: len(flags)] = flags
    return longer


def _flagged(flags: Flags, keys: Sequence[int]) -> set[int]:
    return {key for key in keys if key < len(flags) and flags[key]}
