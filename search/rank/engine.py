"""Search engine, which returns ranked events for a query: text, quoted phrases, embeddings and re-ranking.

Quoted phrases match literally, or else with other forms of the same words. The text index contains stems without
punctuation, so its best matches are compared with the stored text.

Embeddings of queries are computed by the model of the index and cached. For re-ranking, query tokens and
adjacent-term pairs are weighted by inverse document frequency (IDF).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.errors import ModelUnavailable
from ...core.query import Filters, Mode
from ...core.results import TimeExpression
from ...core.text import readable
from ...core.tokens import Memo
from ..index.generation import Generations
from ..index.indexed_texts import TextWindow
from ..index.matches import Flags, Floats, Integers, Span, TextMatches, VectorMatches, among, distinct
from ..index.snapshot import Snapshot
from ..index.text_index import Pairs
from ..index.vector_index import Array
from ..model.embedder import load, model_of
from ..model.embedding import Embedder, TextEmbeddings, TokenVectors
from ..query.query_analysis import WORD, AnalyzedQuery, unquoted
from ..query.tokenizer import composed, literal_pattern, spaced, stems
from .candidates import Candidates
from .fusion import (
    PRESENT_SEMANTIC,
    PRESENT_WORDS,
    RERANKED,
    RERANKED_REWORDED,
    Event,
    Preference,
    RankedEvents,
    Wording,
    fuse,
    joined,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MOST, _FIRST = 2_000, 50
"""Maximum and initial number of candidates to compare. Comparing the maximum takes 0.1 s."""
_PHRASE_GROWTH = 4
"""Factor by which the number of candidates grows while too few match."""
_REMEMBERED = 64


class _Key(NamedTuple):
    """Cache key of the matches of phrases.

    Attributes:
        roles: Roles whose text is searched, or empty for all roles.
        with_context: True if the preceding text that the index adds to short exchanges is searched too.
        seq: Last change that the snapshot contained.
    """

    phrases: tuple[str, ...]
    roles: tuple[str, ...]
    with_context: bool
    seq: int


class ExactPhrases:
    """Search for entries that contain all quoted phrases of a query."""

    def __init__(self, snapshot: Candidates) -> None:
        self._snapshot = snapshot
        self._resolved = Memo[tuple[AnalyzedQuery, int], AnalyzedQuery](_REMEMBERED)
        self._compared = Memo[_Key, _PhraseMatches](_REMEMBERED)

    def resolve(self, query: AnalyzedQuery) -> AnalyzedQuery:
        """Classify each quoted phrase as exact, inexact or relaxed (see `AnalyzedQuery`), regardless of filters."""
        return self._resolved.get_or_make((query, self._snapshot.seq), self._resolve)

    def _resolve(self, key: tuple[AnalyzedQuery, int]) -> AnalyzedQuery:
        query, _ = key
        exact = tuple(phrase for phrase in query.phrases if self._occurs(phrase, (phrase,), (phrase,)))
        occurring = tuple(phrase for phrase in query.phrases if phrase in exact or self._occurs(phrase, (phrase,)))
        if len(occurring) > 1 and not self._occurs(query.text, occurring, exact):
            exact = ()
            occurring = occurring if self._occurs(query.text, occurring) else ()
        return replace(
            query,
            phrases=occurring if query.in_sentence else query.phrases,
            exact=exact,
            inexact=tuple(phrase for phrase in occurring if phrase not in exact),
            relaxed=tuple(phrase for phrase in query.phrases if phrase not in occurring) if query.in_sentence else (),
        )

    def _occurs(self, text: str, phrases: tuple[str, ...], exact: tuple[str, ...] = ()) -> bool:
        return len(self.text(AnalyzedQuery(text, phrases, exact=exact), Filters(), 1)) > 0

    def text(
        self, query: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the best entries that contain all phrases. `among` restricts the search to these items."""
        if not query.exact:
            return self._snapshot.text(query, filters, limit, among)
        key = _Key(query.exact, filters.roles, query.in_sentence, self._snapshot.seq)
        compared, depth = self._compared.get_or_make(key, _PhraseMatches), min(max(limit, _FIRST), _MOST)
        while True:
            matches = self._snapshot.text(query, filters, depth, among)
            compared.add(self._snapshot, matches.key.tolist())
            matching = matches.where(compared.matching(matches)).first(limit)
            if len(matching) == limit or len(matches) < depth or depth == _MOST:
                return matching
            depth = min(depth * _PHRASE_GROWTH, _MOST)


class _PhraseMatches:
    """Cache of the items that were searched, and of the entry locations whose text contains all phrases literally."""

    def __init__(self, key: _Key) -> None:
        self._key, self._patterns = key, [*map(literal_pattern, key.phrases)]
        # Check the longest word of each phrase first. This is fast, and few inexact candidates contain it.
        self._words = [max(WORD.findall(composed(phrase)), key=len, default="").lower() for phrase in key.phrases]
        self._items, self._spans = set[int](), set[Span]()

    def add(self, snapshot: Candidates, items: Iterable[int]) -> None:
        """Search for the phrases in the items that are not in the cache."""
        new = set(items) - self._items
        self._items |= new
        for key, window in snapshot.windows(sorted(new), with_context=self._key.with_context):
            if any(map(self._matches, self._texts(window))):
                self._spans.add((key, window.start_line, window.end_line))

    def matching(self, matches: TextMatches) -> Flags:
        """Return a flag per entry of `matches`: True if the entry contains all phrases."""
        return np.fromiter((span in self._spans for span in matches.spans), bool, len(matches))

    def _texts(self, window: TextWindow) -> list[str]:
        roles = self._key.roles
        return [text for role, text in window.said if role in roles] if roles else [window.text]

    def _matches(self, text: str) -> bool:
        plain = composed(text)
        small = plain.lower()
        return all(word in small for word in self._words) and all(pattern.search(plain) for pattern in self._patterns)


_TOKENS = 48
"""Maximum number of query tokens to compare. One question in 50 has more tokens."""
_PAIRS = 12
"""Maximum number of adjacent-term pairs to compare. Pairs with a lower IDF do not improve results."""


def weighted_tokens(text: str, embeddings: TextEmbeddings, idf: Callable[[str], float]) -> TokenVectors:
    """Return the token embeddings of a query, scaled by the square root of the IDF of their words.

    Tokens of weight 0 are left out. If all weights are 0, all tokens have the same weight. At most `_TOKENS`
    tokens with the highest weights are kept. On a tie, earlier tokens are kept.
    """
    [tokens], [spans] = embeddings.tokens, embeddings.spans
    if not len(tokens):
        return tokens
    read = readable(text)[: spans[-1][1]]
    weight_of: dict[str, float] = {}
    by_character = np.zeros(len(read))
    for word in WORD.finditer(read):
        if word[0] not in weight_of:
            weight_of[word[0]] = idf(word[0])
        by_character[word.start() : word.end()] = weight_of[word[0]]
    weights = np.array([by_character[start:end].max(initial=0.0) for start, end in spans])
    weights = np.sqrt(weights) if weights.any() else np.ones(len(tokens))
    units = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    kept = np.sort(np.argsort(-weights, kind="stable")[:_TOKENS])
    kept = kept[weights[kept] > 0]
    weighted: TokenVectors = (units[kept] * weights[kept, None]).astype(np.float32)
    return weighted


def adjacent_pairs(text: str, idf: Callable[[str], float]) -> Pairs:
    """Return the pairs of adjacent terms with the highest IDF, with weights proportional to the IDF.

    The weights add up to 1. The result is empty if no pair has a positive IDF.
    """
    weights = {pair: sum(map(idf, pair)) for pair in pairwise(stems(spaced(text)))}
    best = sorted(weights, key=lambda pair: -weights[pair])[:_PAIRS]
    total = sum(weights[pair] for pair in best)
    return {pair: weights[pair] / total for pair in best} if total else {}


def common_pairs(wordings: Sequence[Pairs]) -> Pairs:
    """Return the pairs with the highest mean weights over several wordings, each with its mean weight."""
    if len(wordings) == 1:
        return wordings[0]
    weights = Counter[tuple[str, str]]()
    for pairs in wordings:
        weights.update({pair: weight / len(wordings) for pair, weight in pairs.items()})
    return dict(weights.most_common(_PAIRS))


_RE_EMBED = "Run `palaver archive` to embed everything again."


class QueryEmbeddings:
    """Cache of query embeddings. The first query loads the model. All methods raise `ModelUnavailable`."""

    def __init__(self, snapshot: Candidates, embedder: Embedder) -> None:
        self._snapshot, self._embedder = snapshot, embedder
        self._known = Memo[tuple[str, str], TextEmbeddings](_REMEMBERED)
        self.hits = self.misses = 0
        """Number of query texts whose embedding was cached, and of texts that had to be embedded."""

    def in_background(self, texts: Sequence[str]) -> Callable[[], list[Array]]:
        """Start a thread that embeds these texts, and return a function that waits for the vectors.

        Text search can run meanwhile, because both computations release the GIL. The first query does not use a thread,
        because loading the model holds the GIL.
        """
        cached = sum((self._snapshot.model, text) in self._known for text in texts)
        self.hits, self.misses = self.hits + cached, self.misses + len(texts) - cached
        if not self._known or cached == len(texts):
            return partial(self.vectors, texts)
        return self._thread.submit(self.vectors, texts).result

    def vectors(self, texts: Sequence[str]) -> list[Array]:
        """Return the unit vector of each text. Texts that are not cached are embedded in one batch."""
        model = self.model()
        missing = [text for text in dict.fromkeys(texts) if (model.name, text) not in self._known]
        if len(missing) > 1:
            for text, embedding in zip(missing, model.read(missing).singly(), strict=True):
                self._known.put((model.name, text), embedding)
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Array:
        """Return the unit vector of a text."""
        return self.of(text).vectors[0, :]

    def mean_vector(self, texts: Sequence[str]) -> Array:
        """Return the normalised sum of the vectors of these texts."""
        if len(texts) == 1:
            return self.vector(texts[0])
        total = np.sum([self.vector(text) for text in texts], axis=0)
        mean: Array = (total / max(float(np.linalg.norm(total)), 1e-9)).astype(np.float32)
        return mean

    def of(self, text: str) -> TextEmbeddings:
        """Return the embeddings of a text."""
        return self._known.get_or_make((self.model().name, text), lambda key: self.model().read([key[1]]))

    def model(self) -> Embedder:
        """Return the model of the index. Until all items are re-embedded, it can differ from the configured model."""
        name = self._snapshot.model
        if self._embedder.name != name:
            self._embedder = load(model_of(name))
        if self._embedder.name != name:
            raise ModelUnavailable(
                f"this version of Palaver does not include {name}, the model of the index", hint=_RE_EMBED
            )
        return self._embedder

    @cached_property
    def _thread(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1)


DEPTH = 200
"""Maximum number of text entries, and of vectors, whose scores are combined for a query."""
_DEEP = 1_600
"""Depth per concept, instead of `DEPTH`, for a query with several concepts.

A single conversation can contain more matching entries than `DEPTH`.
"""
_COMPLETED = 25
"""Maximum number of events for which text scores are computed although only vector search found the events."""
_THRESHOLD, _SHORT_QUERY = 0.088, 0.25
"""Relevance threshold of `Event.plain`, and factor by which the shortness of a query raises this threshold.

Short queries usually repeat words of the wanted text, while most words of a sentence may differ. The values were chosen
on the train split of questions about coding sessions. They remove no answer from the top 5 (bench/RESULTS.md).
"""
_EVIDENCE = 0.13
"""Relevance threshold of `Event.evidence` in a large archive. `_SHORT_QUERY` also raises this threshold.

The value was chosen on the train split of the same questions, and costs at most one point of hit@5 (bench/RESULTS.md).
"""
_RELEVANT_WORDS = PRESENT_WORDS
"""Minimum text score that makes an entry relevant regardless of the threshold, if each query term occurs."""
_NONE = np.empty(0, dtype=np.int64)
_NEWEST, _GROWTH = 2_000, 8
"""Initial number of entries to read for a query without words, and its growth factor."""

WordsOf: TypeAlias = Callable[[int, Sequence[int]], TextMatches]
"""Function that takes a limit and item keys, and returns the best matching text entries of these items."""
Place: TypeAlias = tuple[int, int]
"""Key of a conversation, (session, 0), or of a memory or document chunk, (0, item key)."""


class Engine:
    """Search over one index.

    The model is loaded by the first query that needs it. If the model is unavailable, only text search works.
    """

    def __init__(
        self,
        snapshot: Candidates,
        embedder: Embedder,
        *,
        dated: bool = True,
        size: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Search an index.

        Args:
            snapshot: View of the index.
            embedder: Model for queries.
            dated: True if time expressions in queries, such as "yesterday", become date ranges.
            size: Function that returns the number of entries that can match, or None for the whole index.
        """
        self._dated, self._size = dated, size
        self.snapshot = snapshot
        """View of the index at the time of the last search."""
        self.embeddings = QueryEmbeddings(snapshot, embedder)
        """Embeddings of queries."""
        self._phrases = ExactPhrases(snapshot)
        self.unavailable: ModelUnavailable | None = None
        """Error of the last vector search, or None if the search succeeded."""

    @classmethod
    def of(
        cls,
        store: Store,
        generations: Generations,
        embedder: Embedder,
        *,
        dated: bool = True,
        size: Callable[[], int | None] = lambda: None,
    ) -> "Engine":
        """Return the engine of the archive on this machine: of a store and the generations of its index."""
        return cls(Snapshot(store, generations, embedder), embedder, dated=dated, size=size)

    def used(self, mode: Mode) -> tuple[str, ...]:
        """Return the names of the engines that answered the last query."""
        engines = (Mode.TEXT, Mode.VECTOR) if mode is Mode.BOTH else (mode,)
        return tuple(str(engine) for engine in engines if engine is Mode.TEXT or self.unavailable is None)

    def find(
        self,
        query: str,
        mode: Mode,
        filters: Filters,
        depth: int | None = None,
        *,
        also: Sequence[str] = (),
        here: str = "",
    ) -> RankedEvents:
        """Return the events that match a query.

        Args:
            query: The text of the query.
            mode: Engines to use.
            filters: Filters that events must satisfy.
            depth: Maximum number of entries and of vectors to fuse, by default `DEPTH`.
            also: Other wordings of the same question.
            here: The user's current project. Its events rank slightly higher. Empty for no preference.
        """
        self.snapshot.refresh()
        depth, first = depth or DEPTH, self._analyzed(query, mode)
        analyzed = [first, *(_reworded(self._analyzed(unquoted(wording), mode), first) for wording in also)]
        results, truncated = self._results(analyzed, mode, filters, depth)
        return self.ranked(analyzed, mode, results, truncated, here)

    def ranked(
        self,
        analyzed: Sequence[AnalyzedQuery],
        mode: Mode,
        results: Sequence[Wording],
        truncated: bool = False,
        here: str = "",
    ) -> RankedEvents:
        """Fuse the results of both engines, and re-rank them if any event is relevant.

        Args:
            analyzed: All wordings of the query.
            mode: Engines that were used.
            results: Results of each wording.
            truncated: True if an engine reached its limit.
            here: The user's current project, or an empty string.
        """
        query = AnalyzedQuery.joined(analyzed)
        # Each match of a quoted phrase is relevant, so the threshold is 0.
        both = mode is Mode.BOTH and self.unavailable is None
        threshold = _THRESHOLD + _SHORT_QUERY * query.shortness if both and not query.phrases else 0.0
        by_words = _RELEVANT_WORDS if query.all_known else inf
        is_relevant = max(result.matches.fraction.max(initial=0.0) for result in results) >= by_words
        rerank_from = 0.0 if is_relevant else threshold
        events = self._fused(analyzed, mode, results, rerank_from, here)
        evidence = _EVIDENCE * query.archive_size + _SHORT_QUERY * query.shortness
        return RankedEvents(events, query, threshold, by_words, truncated, evidence)

    def with_known_phrases(self, query: AnalyzedQuery) -> AnalyzedQuery:
        """Return the query with each quoted phrase classified as exact, inexact or relaxed (see `AnalyzedQuery`)."""
        return self._phrases.resolve(query) if query.phrases else query

    def words(
        self, query: AnalyzedQuery, filters: Filters, limit: int, items: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the entries that best match the words and phrases. `items` restricts the search to these items."""
        searcher = self._phrases if query.phrases else self.snapshot
        return searcher.text(query, filters, limit, items)

    def entries(self, query: AnalyzedQuery, mode: Mode, filters: Filters, depth: int) -> TextMatches:
        """Return the best `depth` text entries.

        If few entries satisfy the filters and vector search is used too, return up to `_DEEP` entries.
        """
        narrow = mode is Mode.BOTH and self.snapshot.is_narrow(filters)
        return self.words(query, filters, max(depth, _DEEP) if narrow else depth)

    def words_of(self, query: AnalyzedQuery, filters: Filters, matches: TextMatches, depth: int) -> WordsOf:
        """Return a function that finds the matching entries of given items.

        If `matches` contains all matches, the function selects from `matches` instead of searching again.
        """
        if depth < len(matches) < _DEEP:
            return lambda _, items: matches.of(items)
        return partial(self.snapshot.text, query, filters)

    def newest(self, filters: Filters) -> Iterator[tuple[int, int]]:
        """Yield all events that satisfy the filters as (instant, event), newest first. Undated events come last."""
        self.snapshot.refresh()
        depth, yielded, complete = _NEWEST, 0, False
        while not complete:
            events, complete = self.snapshot.newest(filters, depth)
            yield from events[yielded:]
            depth, yielded = _GROWTH * depth, len(events)

    def find_all(self, concepts: Sequence[str], mode: Mode, filters: Filters) -> RankedEvents:
        """Return the best event of each conversation that contains all concepts, sorted by mean score.

        A memory or document chunk must contain all concepts itself.
        """
        rankings = [self.find(concept, mode, filters, _DEEP) for concept in concepts]
        places = [self._by_place(each) for each in rankings]
        rarest = min(range(len(rankings)), key=lambda number: (rankings[number].truncated, len(places[number])))
        for number, each in enumerate(rankings):
            if number != rarest and each.truncated:  # read all conversations of the rarest concept
                in_places = self._in_places(places[rarest], each, mode, filters)
                places[number] = self._by_place(in_places) | places[number]
        events = [
            joined(concepts, [of_one[common_place] for of_one in places])
            for common_place in set[Place].intersection(*map(set, places))
        ]
        queries = [each.query for each in rankings]
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
            threshold=0.0 if all(each.plausible for each in rankings) else inf,
            truncated=rankings[rarest].truncated,
        )

    def nearest(self, text: str, filters: Filters, limit: int, vector: Array | None = None) -> VectorMatches:
        """Return the vectors nearest to a text, best first. The result is empty if the model is unavailable.

        The filters apply only to the published index, as in `Snapshot.near`.

        Args:
            text: Text to compare.
            filters: Filters that items must satisfy.
            limit: Maximum number of vectors to return.
            vector: Vector of the text, computed by the model of the index, or None to compute it.
        """
        self.snapshot.refresh()
        try:
            query = self.embeddings.model().embed([text])[0, :] if vector is None else vector
        except ModelUnavailable:
            return VectorMatches.none()
        return self.snapshot.near(query, filters, limit)

    def _analyzed(self, query: str, mode: Mode) -> AnalyzedQuery:
        """Analyze a query with the whole index. A time expression without any entry in its date range becomes words."""
        analyzed = AnalyzedQuery.of(query, dated=self._dated)
        if empty := tuple(time for time in analyzed.times if not self.snapshot.has(_date_filter(time))):
            analyzed = replace(AnalyzedQuery.of(query), empty_times=empty)
        analyzed = self.with_known_phrases(analyzed)
        return analyzed if mode is Mode.VECTOR else self.snapshot.resolve(analyzed, self._size())

    def _results(
        self, wordings: Sequence[AnalyzedQuery], mode: Mode, filters: Filters, depth: int
    ) -> tuple[list[Wording], bool]:
        """Return the results of both engines for each wording, and True if an engine reached its limit."""
        phrases = wordings[0].phrases  # all wordings have the same phrases
        embedded = None if mode is Mode.TEXT else self.embeddings.in_background([each.text for each in wordings])
        every = [TextMatches.none()] * len(wordings)
        if mode is not Mode.VECTOR or phrases:
            every = [self.entries(each, mode, filters, depth) for each in wordings]
        first = [each.first(depth) for each in every]
        # In vector mode, text search only locates quoted phrases.
        matches = [TextMatches.none()] * len(wordings) if mode is Mode.VECTOR else first
        truncated, no_vectors = any(len(each) == depth for each in first), VectorMatches.none()
        if embedded is None:
            return [Wording(each, no_vectors) for each in matches], truncated
        self.unavailable = None
        try:
            vectors = embedded()
        except ModelUnavailable as problem:
            self.unavailable = problem
            return [Wording(each, no_vectors) for each in matches], truncated
        # With quoted phrases, only events that contain the phrases are compared.
        nearest = [] if phrases else [self.snapshot.nearest(each, filters, depth) for each in vectors]
        # Read all vectors of these events to compare each event completely.
        events, _ = distinct(np.concatenate([*(each.event for each in first), *(each.event for each in nearest)]))
        compared = [self.snapshot.of_events(each, events) for each in vectors]
        if mode is Mode.BOTH and not phrases:
            # Completing the other wordings would double the time of text search, and does not improve results.
            matches = [
                completed(text_matches, vector_matches, self.words_of(query, filters, deeper, depth))
                if len(text_matches) == depth and query is wordings[0]
                else text_matches
                for query, text_matches, vector_matches, deeper in zip(wordings, matches, compared, every, strict=True)
            ]
        truncated = truncated or any(len(each) == depth for each in nearest)
        return list(map(Wording, matches, compared)), truncated

    def _fused(
        self,
        wordings: Sequence[AnalyzedQuery],
        mode: Mode,
        results: Sequence[Wording],
        rerank_from: float,
        here: str = "",
    ) -> list[Event]:
        """Fuse the results of all wordings, and re-rank them if the best plain score is at least `rerank_from`."""
        both = mode is Mode.BOTH and self.unavailable is None
        waiting = self._waiting(results) if both else _NONE
        times = AnalyzedQuery.joined(wordings).times
        in_date_range = partial(self.snapshot.passing, _date_filter(times[0])) if times else None
        in_project = partial(self.snapshot.passing, Filters(projects=(here,))) if here else None

        def fused(
            texts: Sequence[str], results: Sequence[Wording], reranked: int, is_first: Preference | None = None
        ) -> list[Event]:
            pairs = common_pairs([adjacent_pairs(text, self.snapshot.idf_of_term) for text in texts])
            (matches, vectors), *rewordings = results
            return fuse(
                matches,
                vectors,
                partial(self._late_interaction, texts) if len(vectors) else None,
                partial(self.snapshot.adjacent_terms, pairs),
                rerank_from=rerank_from,
                waiting=waiting,
                in_date_range=in_date_range,
                in_project=in_project,
                is_first=is_first,
                reranked=reranked,
                rewordings=rewordings,
            )

        texts = [wording.text for wording in wordings]
        if len(texts) == 1:
            return fused(texts, results, RERANKED)
        alone = [fused([text], [result], RERANKED_REWORDED) for text, result in zip(texts, results, strict=True)]
        firsts = np.array(sorted({events[0].key for events in alone if events}), dtype=np.int64)
        return fused(texts, results, RERANKED_REWORDED, lambda keys: among(keys, firsts))

    def _in_places(self, places: Iterable[Place], ranked: RankedEvents, mode: Mode, filters: Filters) -> RankedEvents:
        """Search for the concept of `ranked` in all items of these places, and return the matching events."""
        query = ranked.query
        sessions, alone = {session for session, _ in places if session}, [key for _, key in places if key]
        items = [*self.snapshot.items_of(sorted(sessions)), *alone]
        matches, vectors = TextMatches.none(), VectorMatches.none()
        if mode is not Mode.VECTOR or query.phrases:
            matches = _every(partial(self.words, query, filters, items=items))
        if mode is not Mode.TEXT and self.unavailable is None:
            events = matches.event if query.phrases else np.array(items, dtype=np.int64)
            vectors = self.snapshot.of_events(self.embeddings.vector(query.text), distinct(events)[0])
            vectors = vectors.of(self.snapshot.allowed(filters, items)) if filters else vectors
        matches = TextMatches.none() if mode is Mode.VECTOR else matches
        # Re-ranked and plain scores are not comparable, so either all events are re-ranked or none.
        rerank_from = 0.0 if ranked.plausible else inf
        return RankedEvents(self._fused([query], mode, [Wording(matches, vectors)], rerank_from), query)

    def _by_place(self, ranked: RankedEvents) -> dict[Place, Event]:
        """Return the best event of each conversation, memory or document chunk that contains the concept."""
        present = [
            event
            for event in ranked.events
            if ranked.query.phrases or event.words >= PRESENT_WORDS or event.semantic >= PRESENT_SEMANTIC
        ]
        sessions = self.snapshot.sessions_of([event.key for event in present])
        best: dict[Place, Event] = {}
        for event in present:
            session = sessions.get(event.key, 0)
            best.setdefault((session, 0 if session else event.key), event)
        return best

    def _waiting(self, results: Sequence[Wording]) -> Integers:
        """Return the keys of the events in `results` that are not embedded yet, in ascending order."""
        (matches, vectors), *others = results
        if others:  # each wording has the same events in its vectors
            matches = TextMatches.concatenated([result.matches for result in results])
        return self.snapshot.waiting(matches, vectors)

    def _late_interaction(self, texts: Sequence[str], vectors: VectorMatches) -> Floats:
        tokens = [weighted_tokens(text, self.embeddings.of(text), self.snapshot.idf) for text in texts]
        return self.snapshot.late_interaction(np.concatenate(tokens), self.embeddings.mean_vector(texts), vectors)


def completed(matches: TextMatches, vectors: VectorMatches, words: WordsOf) -> TextMatches:
    """Return `matches` with additional text matches for the best events that only vector search found."""
    vector_only = vectors.where(~among(vectors.event, np.sort(matches.event)))
    best = list(dict.fromkeys(vector_only.best(len(vector_only)).event.tolist()))[:_COMPLETED]
    items, _ = distinct(vector_only.item[among(vector_only.event, np.array(sorted(best), dtype=np.int64))])
    additional = _every(lambda limit: words(limit, items.tolist()))
    return matches.merged_with(additional, len(matches) + len(additional))


def _reworded(wording: AnalyzedQuery, query: AnalyzedQuery) -> AnalyzedQuery:
    """Return another wording with the quoted phrases of the main query, which every result must contain."""
    return replace(
        wording,
        phrases=query.phrases,
        name=query.name,
        in_sentence=query.in_sentence,
        exact=query.exact,
        inexact=query.inexact,
        relaxed=query.relaxed,
    )


def _date_filter(time: TimeExpression) -> Filters:
    return Filters(after=time.after, before=time.before)


def _every(words: Callable[[int], TextMatches]) -> TextMatches:
    """Return all matches of a search function, by calling it with higher limits until it returns fewer."""
    limit = _DEEP
    while len(matches := words(limit)) == limit:
        limit *= _GROWTH
    return matches
