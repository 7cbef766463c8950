"""Search engine, which returns ranked events for a query."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.errors import ModelUnavailable
from ...core.memo import Memo
from ...core.query import Filters, Mode
from ...core.results import TimeExpression
from ..index.generation import Generations
from ..index.matches import Floats, TextMatches, VectorMatches, among, distinct
from ..index.snapshot import Snapshot
from ..index.vector_segment import Array
from ..model.embedder import load, model_of
from ..model.embedding import Embedder, TextEmbeddings
from ..query.query_analysis import AnalyzedQuery
from .exact_phrases import ExactPhrases
from .fusion import Event, fuse, joined
from .idf_weights import adjacent_pairs, weighted_tokens
from .ranked_events import PRESENT_SEMANTIC, PRESENT_WORDS, RankedEvents

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

DEPTH = 200
"""Maximum number of entries, and maximum number of vectors, to fuse."""
_DEEP = 1_600
"""Value of `DEPTH` per concept for a query with several concepts.

A single conversation can contain more matching entries than `DEPTH`.
"""
_COMPLETED = 50
"""Maximum number of events found only by vector search for which text scores are computed."""
_THRESHOLD, _SHORT_QUERY = 0.088, 0.25
"""Relevance threshold of the plain score, and factor of its increase for short queries.

Short queries usually repeat words of the wanted text, while most words of a sentence may differ. The values were chosen
on the train split of questions about coding sessions. They remove no answer from the top 5 (bench/RESULTS.md). The
threshold ignores re-ranking, because a re-ranked score depends on the other events.
"""
_RELEVANT_WORDS = PRESENT_WORDS
"""Minimum text score that makes an entry relevant regardless of the threshold, if all query terms are known."""
_RE_EMBED = "Run `palaver archive` to embed everything again."
_REMEMBERED = 64
"""Number of queries whose embeddings are cached."""
_NEWEST, _GROWTH = 2_000, 8
"""Initial number of entries to read for a query without words, and its growth factor."""

WordsOf: TypeAlias = Callable[[int, Sequence[int]], TextMatches]
"""Function that returns a limited number of entries of the given items, best first."""
Place: TypeAlias = tuple[int, int]
"""Conversation or item outside conversations, as (session, 0) or (0, item key)."""


class Engine:
    """Search over one store.

    The model is loaded by the first query that needs it. If the model is unavailable, only text search works.
    """

    def __init__(self, store: Store, generations: Generations, embedder: Embedder, *, dated: bool = True) -> None:
        """Open the index. With `dated`, a time expression in a query is a date range instead of words."""
        self._store, self._embedder, self._dated = store, embedder, dated
        self.snapshot = Snapshot(store, generations, embedder)
        """View of the archive at the time of the last search."""
        self._embeddings = Memo[tuple[str, str], TextEmbeddings](_REMEMBERED)
        self._phrases = ExactPhrases(store, self.snapshot)
        self.unavailable: ModelUnavailable | None = None
        """Error of the last vector search; None if the search succeeded."""

    def used(self, mode: Mode) -> tuple[str, ...]:
        """Return the names of the engines that answered the last query."""
        wanted = (Mode.TEXT, Mode.VECTOR) if mode is Mode.BOTH else (mode,)
        return tuple(str(engine) for engine in wanted if engine is Mode.TEXT or self.unavailable is None)

    def find(
        self, query: str, mode: Mode, filters: Filters, depth: int | None = None, *, rerank: bool = True
    ) -> RankedEvents:
        """Return the events that match a query.

        Args:
            query: The text of the query.
            mode: Engines to use.
            filters: Filters that events must satisfy.
            depth: Maximum number of entries and of vectors to fuse; `DEPTH` by default.
            rerank: True to re-rank the first events. Re-ranking does not change the number of events.
        """
        self.snapshot.refresh()
        depth, analyzed = depth or DEPTH, self._analyzed(query, mode)
        return self.ranked(analyzed, mode, *self._found(analyzed, mode, filters, depth), rerank=rerank)

    def ranked(
        self,
        analyzed: AnalyzedQuery,
        mode: Mode,
        matches: TextMatches,
        vectors: VectorMatches,
        truncated: bool = False,
        *,
        rerank: bool = True,
    ) -> RankedEvents:
        """Fuse the results of both engines, and re-rank them if any event is relevant."""
        # Each match of a quoted phrase is relevant, so the threshold is 0.
        both = mode is Mode.BOTH and self.unavailable is None
        threshold = _THRESHOLD + _SHORT_QUERY * analyzed.shortness if both and not analyzed.phrases else 0.0
        by_words = _RELEVANT_WORDS if analyzed.all_known else inf
        is_relevant = matches.fraction.max(initial=0.0) >= by_words
        rerank_from = inf if not rerank else 0.0 if is_relevant else threshold
        events = self._fused(analyzed, mode, matches, vectors, rerank_from)
        return RankedEvents(events, analyzed, threshold, by_words, truncated)

    def _analyzed(self, query: str, mode: Mode) -> AnalyzedQuery:
        """Analyze a query with the whole index. Time expressions that match no entry become words."""
        analyzed = AnalyzedQuery.of(query, dated=self._dated)
        if empty := tuple(each for each in analyzed.times if not self.snapshot.has(_within(each))):
            analyzed = replace(AnalyzedQuery.of(query), empty_times=empty)
        analyzed = self.with_known_phrases(analyzed)
        return analyzed if mode is Mode.VECTOR else self.snapshot.resolve(analyzed)

    def with_known_phrases(self, query: AnalyzedQuery) -> AnalyzedQuery:
        """Return the query with its phrases classified as exact, inexact or relaxed."""
        return self._phrases.resolve(query) if query.phrases else query

    def words(
        self, query: AnalyzedQuery, filters: Filters, limit: int, items: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the entries that best match the words and phrases. `items` restricts the search to these items."""
        found = self._phrases if query.phrases else self.snapshot
        return found.text(query, filters, limit, items)

    def _found(
        self, query: AnalyzedQuery, mode: Mode, filters: Filters, depth: int
    ) -> tuple[TextMatches, VectorMatches, bool]:
        """Return the results of both engines, and True if an engine reached its limit."""
        embedded = None if mode is Mode.TEXT else self._embedding_in_background(query.text)
        every = first = TextMatches.none()
        if mode is not Mode.VECTOR or query.phrases:
            every = self.entries(query, mode, filters, depth)
            first = every.first(depth)
        # In vector mode, text search only locates quoted phrases.
        matches, truncated = TextMatches.none() if mode is Mode.VECTOR else first, len(first) == depth
        if embedded is None:
            return matches, VectorMatches.none(), truncated
        self.unavailable = None
        try:
            vector = embedded()
        except ModelUnavailable as problem:
            self.unavailable = problem
            return matches, VectorMatches.none(), truncated
        # With quoted phrases, only events that contain the phrases are compared.
        nearest = VectorMatches.none() if query.phrases else self.snapshot.nearest(vector, filters, depth)
        # Read all vectors of these events to compare each event completely.
        events, _ = distinct(np.concatenate([first.event, nearest.event]))
        vectors = self.snapshot.of_events(vector, events)
        if mode is Mode.BOTH and len(matches) == depth and not query.phrases:
            matches = completed(matches, vectors, self.words_of(query, filters, every, depth))
        return matches, vectors, truncated or len(nearest) == depth

    def entries(self, query: AnalyzedQuery, mode: Mode, filters: Filters, depth: int) -> TextMatches:
        """Return the best `depth` entries.

        If few entries satisfy the filters and vector search is used too, return up to `_DEEP` entries.
        """
        narrow = mode is Mode.BOTH and self.snapshot.is_narrow(filters)
        return self.words(query, filters, max(depth, _DEEP) if narrow else depth)

    def words_of(self, query: AnalyzedQuery, filters: Filters, found: TextMatches, depth: int) -> WordsOf:
        """Return a function that finds matching entries of given items. If `found` is complete, it filters `found`."""
        if depth < len(found) < _DEEP:
            return lambda _, items: found.of(items)
        return partial(self.snapshot.text, query, filters)

    def _fused(
        self, query: AnalyzedQuery, mode: Mode, matches: TextMatches, vectors: VectorMatches, rerank_from: float
    ) -> list[Event]:
        """Fuse both results, and re-rank them if the best plain score is at least `rerank_from`."""
        both = mode is Mode.BOTH and self.unavailable is None
        pairs = adjacent_pairs(query.text, self.snapshot.idf_of_term)
        return fuse(
            matches,
            vectors,
            partial(self._late_interaction, query.text) if len(vectors) else None,
            partial(self.snapshot.adjacent_terms, pairs),
            rerank_from=rerank_from,
            waiting=self.snapshot.waiting(matches if both else TextMatches.none(), vectors),
            in_date_range=partial(self.snapshot.passing, _within(query.times[0])) if query.times else None,
        )

    def newest(self, filters: Filters) -> Iterator[tuple[int, int]]:
        """Yield all events that satisfy the filters as (instant, event), newest first. Undated events come last."""
        self.snapshot.refresh()
        depth, given, complete = _NEWEST, 0, False
        while not complete:
            found, complete = self.snapshot.newest(filters, depth)
            yield from found[given:]
            depth, given = _GROWTH * depth, len(found)

    def find_all(self, concepts: Sequence[str], mode: Mode, filters: Filters) -> RankedEvents:
        """Return the best event of each conversation that contains all concepts, sorted by mean score.

        An item outside conversations must contain all concepts itself.
        """
        found = [self.find(concept, mode, filters, _DEEP) for concept in concepts]
        places = [self._by_place(each) for each in found]
        rarest = min(range(len(found)), key=lambda number: (found[number].truncated, len(places[number])))
        for number, each in enumerate(found):
            if number != rarest and each.truncated:  # read all conversations of the rarest concept
                within = self._within(places[rarest], each, mode, filters)
                places[number] = self._by_place(within) | places[number]
        events = [
            joined(concepts, [of_one[place] for of_one in places])
            for place in set[Place].intersection(*map(set, places))
        ]
        queries = [each.query for each in found]
        return RankedEvents(
            sorted(events, key=lambda event: (-event.score, event.key)),
            AnalyzedQuery(
                " ".join(each.text for each in queries),
                corrections=tuple(one for each in queries for one in each.corrections),
                inexact=tuple(one for each in queries for one in each.inexact),
                relaxed=tuple(one for each in queries for one in each.relaxed),
                times=tuple(one for each in queries for one in each.times),
                empty_times=tuple(one for each in queries for one in each.empty_times),
            ),
            threshold=0.0 if all(each.relevant for each in found) else inf,
            truncated=found[rarest].truncated,
        )

    def _within(self, places: Iterable[Place], found: RankedEvents, mode: Mode, filters: Filters) -> RankedEvents:
        """Compare all items of these conversations, memories and documents with a concept; return matching events."""
        query = found.query
        sessions, alone = {session for session, _ in places if session}, [key for _, key in places if key]
        items = [*self._store.items.of_sessions(sorted(sessions)), *alone]
        matches, vectors = TextMatches.none(), VectorMatches.none()
        if mode is not Mode.VECTOR or query.phrases:
            matches = _every(partial(self.words, query, filters, items=items))
        if mode is not Mode.TEXT and self.unavailable is None:
            events = matches.event if query.phrases else np.array(items, dtype=np.int64)
            vectors = self.snapshot.of_events(self._vector(query.text), distinct(events)[0])
            vectors = vectors.of(self.snapshot.allowed(filters, items)) if filters else vectors
        matches = TextMatches.none() if mode is Mode.VECTOR else matches
        # Re-ranked and plain scores are not comparable, so either all events are re-ranked or none.
        events_ = self._fused(query, mode, matches, vectors, 0.0 if found.relevant else inf)
        return RankedEvents(events_, query)

    def _by_place(self, found: RankedEvents) -> dict[Place, Event]:
        """Return the best event of each conversation, or item outside conversations, that contains the concept."""
        present = [
            event
            for event in found.events
            if found.query.phrases or event.words >= PRESENT_WORDS or event.semantic >= PRESENT_SEMANTIC
        ]
        items = self._store.items.load([event.key for event in present])
        best: dict[Place, Event] = {}
        for event in present:
            session = items[event.key].session if event.key in items else 0
            best.setdefault((session, 0 if session else event.key), event)
        return best

    def nearest(self, text: str, filters: Filters, limit: int, vector: Array | None = None) -> VectorMatches:
        """Return the vectors nearest to a text, best first. Empty if the model is unavailable.

        The filters apply only to the published index; see `Snapshot.near`.

        Args:
            text: Text to compare.
            filters: Filters that items must satisfy.
            limit: Maximum number of vectors to return.
            vector: Vector of the text, computed by the model of the index; None to compute it.
        """
        self.snapshot.refresh()
        try:
            query = self._model().embed([text])[0, :] if vector is None else vector
        except ModelUnavailable:
            return VectorMatches.none()
        return self.snapshot.near(query, filters, limit)

    def _late_interaction(self, text: str, vectors: VectorMatches) -> Floats:
        tokens = weighted_tokens(text, self._embedding(text), self.snapshot.idf)
        return self.snapshot.late_interaction(tokens, self._vector(text), vectors)

    def _embedding_in_background(self, text: str) -> Callable[[], Array]:
        """Return a function that returns the query's vector. A thread computes the vector during text search.

        Both computations release the GIL. The first query does not use a thread, because loading the model holds the
        GIL.
        """
        if not self._embeddings or (self.snapshot.model, text) in self._embeddings:
            return partial(self._vector, text)
        return self._thread.submit(self._vector, text).result

    @cached_property
    def _thread(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1)

    def _vector(self, text: str) -> Array:
        return self._embedding(text).vectors[0, :]

    def _embedding(self, text: str) -> TextEmbeddings:
        """Return the embeddings of a query; raises `ModelUnavailable`."""
        return self._embeddings.get_or_make((self._model().name, text), lambda key: self._model().read([key[1]]))

    def _model(self) -> Embedder:
        """Return the model of the index. Until all items are re-embedded, it can differ from the configured model."""
        wanted = self.snapshot.model
        if self._embedder.name != wanted:
            self._embedder = load(model_of(wanted))
        if self._embedder.name != wanted:
            raise ModelUnavailable(
                f"this version of Palaver does not include {wanted}, the model of the index", hint=_RE_EMBED
            )
        return self._embedder


def completed(matches: TextMatches, vectors: VectorMatches, words: WordsOf) -> TextMatches:
    """Add the text matches of the best events that only vector search found."""
    vector_only = vectors.where(~among(vectors.event, np.sort(matches.event)))
    best = list(dict.fromkeys(vector_only.best(len(vector_only)).event.tolist()))[:_COMPLETED]
    items, _ = distinct(vector_only.item[among(vector_only.event, np.array(sorted(best), dtype=np.int64))])
    additional = _every(lambda limit: words(limit, items.tolist()))
    return matches.merged_with(additional, len(matches) + len(additional))


def _within(time: TimeExpression) -> Filters:
    return Filters(after=time.after, before=time.before)


def _every(words: Callable[[int], TextMatches]) -> TextMatches:
    """Return all matches. Increase the limit until the number of matches is below it."""
    limit = _DEEP
    while len(found := words(limit)) == limit:
        limit *= _GROWTH
    return found
