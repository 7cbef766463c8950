"""What can be searched right now: the published generation, and the tail of changes that it does not hold yet.

The tail is a small index in memory of the same make, so that what one process stores every other finds at once;
items that changed since the generation was published are hidden in it and answered from the tail alone. Vectors need
no tail of their own: a vector index with changes is the old one and a small segment.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Entity, Store
from ...core.errors import IndexDamaged
from ...core.memo import Memo
from ...core.query import Filters, Role
from ...core.results import Correction
from ..model.embedding import Embedder, TokenVectors
from ..query.query_analysis import SENTENCE, WORD, AnalyzedQuery, brevity
from ..query.tokenizer import terms
from .adjacent_terms import neighbours
from .generation import Generation, Generations
from .matches import Flags, Fractions, Numbers, TextMatches, VectorMatches, distinct
from .matches import among as among_these
from .text_index import TextIndex
from .vector_index import VectorIndex
from .vector_segment import ALL_VOICES, Array, Voices

_FLAGGED = 64
"""How many filters are remembered with what satisfies them: a byte for every item each."""


_LISTED_OR_SIEVED = 2
"""A candidate whose filters are looked up costs as much as listing so many items that satisfy them."""
_LISTED, _OF_ALL = 500, 200
"""Entries that satisfy filters are listed where they are no more than this, or than one in so many: to count them costs
about as much.
"""
_FEW = 5
"""Words that stand in fewer entries than this, all together, find little."""
_LOOKED_AT = 5
"""Items of each word that is spelled alike that are looked at."""
_TELLING = 1_000
"""Entries of an archive that is large enough for what is missing in it to tell something."""


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

    @property
    def seq(self) -> int:
        """The store's last change that is seen."""
        return self._seq

    def refresh(self) -> None:
        """Catch up with the store and with what was published. Costs one query when nothing changed."""
        name = self._generations.name()
        if name != self._name:
            self._name = name
            self._start(self._published())
        last = self._store.changes.last()
        if last != self._seq:
            self._follow(last)

    def settled(self, wording: AnalyzedQuery) -> AnalyzedQuery:
        """What was typed, seen against the whole archive, whatever the filters are: a name that stands somewhere is a
        phrase, and where the others find little, words that stand nowhere become those that are spelled much alike.
        """
        if wording.name and any(index.holds(wording.name) for index in self._texts):
            wording = replace(wording, phrases=(wording.name,))
        begun = terms(" ".join(wording.beginnings))
        having = {term: self.having(term) for term in terms(wording.text) if term not in begun}
        if sum(having.values()) < _FEW and not wording.beginnings:
            respelled = tuple(near for word in wording.asked if (near := self.respelled(word)))
            wording = wording.instead(respelled)
            having = {term: self.having(term) for term in terms(wording.text)}
        absent = [term for term, count in having.items() if not count]
        weight = min(1.0, sum(map(len, self._texts)) / _TELLING)
        sought = len(wording.text.split()) >= SENTENCE or wording.beginnings
        return replace(
            wording,
            complete=not absent,
            unheard=not sought and len(absent) == len(having) > 0,
            brevity=weight * brevity(len(having)),
        )

    def newest(self, filters: Filters, limit: int) -> tuple[list[tuple[int, int]], bool]:
        """Events that satisfy the filters as (instant, event), each once, newest first, undated ones last; and whether
        these are all. An event has several entries: of `limit` entries come the events that no further entry can move.
        """
        lists = [self._read_tail().newest(filters, limit)]
        if self._text is not None:
            lists.append(self._text.newest(filters, limit, sorted(self._hidden)))
        cut = [found[-1][0] for found in lists if len(found) == limit]
        last: dict[int, int] = {}
        for at, event in chain.from_iterable(lists):
            if not cut or at > max(cut):
                last[event] = max(at, last.get(event, at))
        return sorted(((at, event) for event, at in last.items()), reverse=True), not cut

    def names(self, field: str) -> set[str]:
        """Every value of a field that is filtered by, and some that nothing has any more; `has` knows which."""
        return {name for index in self._texts for name in index.names(field)}

    def has(self, filters: Filters) -> bool:
        """Whether anything satisfies the filters."""
        published = self._text is not None and self._text.newest(filters, 1, sorted(self._hidden))
        return bool(published or self._read_tail().newest(filters, 1))

    def respelled(self, word: str) -> Correction | None:
        """For a word that stands nowhere the one that is spelled most like it; None where none is."""
        for plain in WORD.findall(word):
            said = terms(plain)
            if len(said) == 1 and said[0].isalpha() and not self.having(said[0]):
                from ..query import spelling  # hardly any query is misspelled
                from . import indexed_texts  # hardly any query is misspelled

                alike = [item for index in self._texts for item in index.spelled_like(said[0], _LOOKED_AT)]
                bodies = (entry.body for entry in indexed_texts.entries(self._store, [*dict.fromkeys(alike)]))
                if near := spelling.nearest(plain, bodies):
                    return Correction(plain, near)
        return None

    def having(self, term: str) -> int:
        """How many entries have a term."""
        return sum(index.having(term) for index in self._texts)

    def rarity(self, word: str) -> float:
        """How rare a word is, by the weight that BM25 gives its terms: near 0 where all entries have it."""
        said = terms(word)
        return sum(map(self._rarity, said)) / max(1, len(said))

    def _rarity(self, term: str) -> float:
        entries, having = sum(map(len, self._texts)), self.having(term)
        return math.log(1 + (max(entries - having, 0) + 0.5) / (having + 0.5))

    def together(self, text: str, items: Numbers) -> Fractions:
        """Of each of these items how much of what stands next to each other in a text does so in one of its entries,
        too, 0 to 1; pairs of rare words count more.
        """
        pairs, wanted = neighbours(text, self._rarity), set(items.tolist())
        found = self._read_tail().together(pairs, sorted(wanted))
        if self._text is not None:
            found |= self._text.together(pairs, sorted(wanted - self._hidden))
        return np.array([found.get(item, 0.0) for item in items.tolist()])

    def text(
        self, words: str | AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Entries by words, best first; of these items alone, where some are given."""
        if among is not None and (flags := self._flagged.get(filters)) is not None:
            # Who said a word is known of each entry, all else that is filtered by of the item.
            among, filters = sorted(_flagged(flags, among)), Filters(roles=filters.roles)
        found = self._read_tail().search(words, filters, limit, among=among, rest=self._text)
        if self._text is None:
            return found
        published = self._text.search(
            words, filters, limit, sorted(self._hidden), among, self._shares.get(filters, 1.0)
        )
        return published.and_also(found, limit) if len(found) else published

    def nearest(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Vectors by similarity, best first."""
        voices = Voices(Role.HUMAN in filters.roles, Role.ASSISTANT in filters.roles) if filters.roles else ALL_VOICES
        if not filters:
            return self._vectors.nearest(vector, limit, None, voices)
        share = self.share(filters)
        if share * share * len(self._vectors) > _LISTED_OR_SIEVED * limit:
            found = self._vectors.sieved(vector, limit, share, partial(self.passing, filters), voices)
            if found is not None:
                return found
        return self._vectors.nearest(vector, limit, self._flagged.made(filters, self._flags), voices)

    def near(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Vectors by similarity as `nearest` gives them, with those of the tail whether they satisfy the filters or
        not: for whoever asks again what is found. Reads no text, and so costs no more just after something was stored.
        """
        published = self._flagged_published.made(filters, self._published_flags)
        flags = _lengthened(published, max(self._hidden, default=0))
        flags[list(self._hidden)] = True
        return self._vectors.nearest(vector, limit, flags)

    def of_events(self, vector: Array, events: Numbers) -> VectorMatches:
        """Of every item of these events its best vectors, compared exactly."""
        return self._vectors.of_events(vector, events)

    def waiting(self, matches: TextMatches, nears: VectorMatches) -> Numbers:
        """The events, ascending, that words found and that could not be compared: they are not embedded yet."""
        alone = ~among_these(matches.event, distinct(nears.event)[0])
        if not alone.any():
            return np.empty(0, dtype=np.int64)
        items = self._store.vectors.waiting(self._model, distinct(matches.key[alone])[0].tolist())
        return distinct(matches.event[alone & among_these(matches.key, np.array(items, dtype=np.int64))])[0]

    def closeness(self, query: TokenVectors, vector: Array, nears: VectorMatches) -> Fractions:
        """How close the items of these vectors come to a query's tokens; NaN where no tokens are known. `vector` is
        the query's.
        """
        return self._vectors.late_interaction(query, vector, nears.rows)

    def allowed(self, filters: Filters, among: Sequence[int]) -> AbstractSet[int]:
        """Those of these items that satisfy the filters."""
        if (flags := self._flagged.get(filters)) is not None:
            return _flagged(flags, among)
        return self._allowed_published(filters, among) - self._hidden | self._read_tail().allowed(filters, among)

    def _allowed_published(self, filters: Filters, among: Sequence[int]) -> set[int]:
        if (flags := self._flagged_published.get(filters)) is not None:
            return _flagged(flags, among)
        return self._text.allowed(filters, among) if self._text is not None else set()

    @property
    def model(self) -> str:
        """The model of the vectors that are searched: queries must be embedded with it."""
        return self._model

    def _flags(self, filters: Filters) -> Flags:
        """By key, whether an item satisfies the filters."""
        published, tail = self._flagged_published.made(filters, self._published_flags), self._read_tail().keys(filters)
        flags = _lengthened(published, max(tail.max(initial=0), *self._hidden, 0))
        flags[list(self._hidden)] = False
        flags[tail] = True
        return flags

    def passing(self, filters: Filters, items: Numbers) -> Flags:
        """Which of these items satisfy the filters."""
        passing = self.allowed(filters, items.tolist())
        return np.fromiter((item in passing for item in items.tolist()), bool, len(items))

    def share(self, filters: Filters) -> float:
        """About the share of all entries that satisfies the filters, 0 to 1; the few that changed are left out."""
        return self._shares.made(filters, self._share)

    def is_narrow(self, filters: Filters) -> bool:
        """Whether the filters are satisfied by so few entries that all of them can be looked at."""
        return bool(filters) and self._text is not None and self.share(filters) * len(self._text) <= _LISTED

    def _share(self, filters: Filters) -> float:
        if self._text is None:
            return 0.0
        share, keys = self._text.share(filters, max(_LISTED, len(self._text) // _OF_ALL))
        if keys is not None:
            self._flagged_published.made(filters, lambda _: _flags_of(keys))
        return share

    def _published_flags(self, filters: Filters) -> Flags:
        """By key, whether an item of the published text satisfies the filters; it does for as long as that is open."""
        return _flags_of(self._text.keys(filters) if self._text is not None else np.empty(0, dtype=np.int64))

    @property
    def _texts(self) -> Sequence[TextIndex]:
        """What is searched for words: the tail, and before it what was published, if anything was."""
        return [self._read_tail()] if self._text is None else [self._text, self._read_tail()]

    def _read_tail(self) -> TextIndex:
        """The tail with everything in it that changed."""
        if self._unread:
            from . import indexed_texts  # most searches find everything published

            texts = sorted(self._unread)
            self._tail.apply(texts, indexed_texts.entries(self._store, texts))
            self._unread.clear()
        return self._tail

    def _published(self) -> tuple[Generation, TextIndex, VectorIndex] | None:
        """The current generation, opened; None where there is none that can be used."""
        try:
            generation = self._generations.current()
            if generation is None or not generation.manifest.is_of(self._store):
                return None
            return generation, TextIndex.open(generation.text), VectorIndex.open(generation.vectors)
        except (IndexDamaged, OSError, ValueError):
            # Not only damage: other processes publish while we open, so what was whole just now may be gone.
            return None

    def _start(self, published: tuple[Generation, TextIndex, VectorIndex] | None) -> None:
        """Begin with a generation and an empty tail."""
        generation, text, vectors = published or (None, None, VectorIndex())
        manifest = generation.manifest if generation else None
        self._text: TextIndex | None = text
        self._vectors: VectorIndex = vectors
        self._model = manifest.model if manifest else self._embedder.name
        self._watermark = self._seq = manifest.watermark if manifest else 0
        self._tail = TextIndex.make()
        self._hidden: set[int] = set()
        """Items whose published text is out of date."""
        self._unread: set[int] = set()
        """Items that the tail's text does not hold yet: it is made when words are asked for."""
        self._flagged = Memo[Filters, Flags](_FLAGGED)
        self._flagged_published = Memo[Filters, Flags](_FLAGGED)
        self._shares = Memo[Filters, float](_FLAGGED)

    def _follow(self, last: int) -> None:
        from . import indexed_texts

        texts = self._store.changes.since(self._seq, [Entity.ITEM])
        gone, added = indexed_texts.moved_vectors(self._store, self._seq, self._model)
        self._hidden.update(texts)
        self._unread.update(texts)
        self._vectors = self._vectors.changed(gone, added)
        self._flagged.clear()
        self._seq = last


def _flags_of(keys: Numbers) -> Flags:
    """By key, whether it is among these."""
    flags = np.zeros(1 + keys.max(initial=0), dtype=bool)
    flags[keys] = True
    return flags


def _lengthened(flags: Flags, last: int) -> Flags:
    """A copy that has a place for every key up to `last`."""
    longer = np.zeros(max(len(flags), 1 + last), dtype=bool)
    longer[: len(flags)] = flags
    return longer


def _flagged(flags: Flags, keys: Sequence[int]) -> set[int]:
    return {key for key in keys if key < len(flags) and flags[key]}
