"""Score fusion: the scores of text and vector search as one score per event.

An event is an exchange with everything learned from it. Its score is a weighted sum of:

- words: BM25 as a fraction of the most that the query could score. Discounts chance matches: it is the fraction to the
  power of 1.5, or of 3 in code, where common words are keywords and names.
- prompt and semantic: the cosine of the user's prompt, and the best cosine of any vector of the event.
- late interaction: similarity of the query's tokens to those of the event's texts. In code, whose tokens are similar
  whatever the code does, it is the best cosine.
- adjacent terms: how many of the query's pairs of adjacent terms are adjacent in the event; not in code.
- date: whether the event lies within the date range that the query names.

Words and cosines are absolute. So rare words that occur decide a query, and vectors decide a paraphrase. The last two
comparisons are expensive and re-rank only the first events; all others get the lowest late-interaction score of these.

An event that is not embedded yet gets the vector scores of the event with the same rank by words. This affects the
order only: relevance is judged by its words alone, so that a filter never adds results.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store.vector_table import PROMPT
from ...core.results import ScorePart
from ..index.matches import Flags, Fractions, Numbers, TextMatch, TextMatches, VectorMatches, among, distinct


class Weights(NamedTuple):
    """Weights of the parts of a score, chosen on the train splits of the development sets (bench/RESULTS.md)."""

    words: float = 1.0
    prompt: float = 0.2
    semantic: float = 0.3
    late_interaction: float = 1.0
    adjacent_terms: float = 1.2

    def shares(self, date: float = 0.0) -> tuple[float, ...]:
        """Return the weights, and that of the date, normalised to a sum of 1."""
        return tuple(weight / (sum(self) + date) for weight in (*self, date))


_WEIGHTS = Weights()
_DATE = 0.12
"""Weight of a date range in the query, chosen on the train split (bench/RESULTS.md, "Dates in a question")."""
_RERANKED = 40
"""Events that are re-ranked by late interaction and adjacent terms."""
_NONE = np.empty(0, dtype=np.int64)
PARTS = ("words", "prompt", "semantic", "late interaction", "adjacent terms", "date")
"""Names of the parts of a score in the order of summation. A query without a date has no part `date`."""

LateInteraction: TypeAlias = Callable[[VectorMatches], Fractions]
"""Returns the late-interaction score of the text of each vector, -1 to 1; NaN if unknown."""
AdjacentTerms: TypeAlias = Callable[[Numbers], Fractions]
"""Returns the share of the query's adjacent-term pairs that each item has, 0 to 1."""
InDateRange: TypeAlias = Callable[[Numbers], Flags]
"""Returns which events lie within the date range of the query."""


class Event(Struct, eq=False):
    """Score of one event for one query.

    Attributes:
        score: Ranking score, 0 to 1.
        plain: Score without re-ranking, and without expected values; compared with the relevance threshold.
        words: Best fraction of any entry, 0 to 1.
        prompt: Cosine of the prompt, or the expected one; 0 if none was compared.
        similarity: Best cosine of any vector; None if none was compared.
        late_interaction: 0 to 1; 0 without re-ranking.
        adjacent_terms: Share of the query's pairs in the item with the best words, 0 to 1.
        in_date_range: 1 within the date range of the query, else 0.
    """

    key: int
    score: float
    plain: float
    words: float
    prompt: float
    similarity: float | None
    late_interaction: float
    adjacent_terms: float
    in_date_range: float
    _semantic: float
    """Best cosine, or the expected one, at least 0."""
    _best: int
    """Row of the best text match; -1 without one."""
    _matches: TextMatches
    _vectors: VectorMatches
    _shares: tuple[float, ...]
    _concepts: tuple[ScorePart, ...] = ()
    """Parts of the score by concept, for a query of several."""

    @classmethod
    def unranked(cls, key: int) -> "Event":
        """Return an event of a query without words."""
        return cls(key, 0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0, 0.0, -1, TextMatches.none(), VectorMatches.none(), ())

    @property
    def best_match(self) -> TextMatch | None:
        """The entry with the best words, or None."""
        return self._matches[self._best] if self._best >= 0 else None

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        """Parts of the score. Their points, summed in order, equal the score exactly."""
        if self._concepts:
            return self._concepts
        in_code = self._best >= 0 and bool(self._matches.in_code[self._best])
        words, adjacent = _powers(np.array([self.words, self.adjacent_terms]), in_code).tolist()
        cosines = [max(0.0, self.prompt), self._semantic, self.late_interaction]
        values = [self.words, *cosines, self.adjacent_terms, self.in_date_range]
        counted = [words, *cosines, adjacent, self.in_date_range]
        rows = zip(PARTS, values, counted, self._shares, strict=True)
        parts = tuple(ScorePart(name, value, share * counts) for name, value, counts, share in rows)
        return parts if self._shares[-1] else parts[:-1]

    @property
    def semantic(self) -> float:
        """Best compared cosine, at least 0; 0 if none was compared."""
        return max(0.0, self.similarity or 0.0)

    def words_of(self, item: int) -> float:
        """Return the best fraction of one item's own entries."""
        return self._matches.best_of.get(item, 0.0)

    def own(self, item: int) -> float:
        """Return the sum of the best fraction and the best cosine of one item of the event."""
        return self.words_of(item) + max(0.0, self._vectors.best_of.get(item, 0.0))


def joined(concepts: Sequence[str], events: Sequence[Event]) -> Event:
    """Return the best of the events that several concepts found in one conversation, with the mean of their scores."""
    parts = tuple(
        ScorePart(concept, event.score, event.score / len(events))
        for concept, event in zip(concepts, events, strict=True)
    )
    best = max(events, key=lambda event: event.score)
    return replace(best, score=sum(part.points for part in parts), _concepts=parts)


def fuse(
    matches: TextMatches,
    vectors: VectorMatches,
    late_interaction: LateInteraction | None = None,
    adjacent_terms: AdjacentTerms | None = None,
    weights: Weights = _WEIGHTS,
    *,
    rerank_from: float = 0.0,
    waiting: Numbers = _NONE,
    in_date_range: InDateRange | None = None,
) -> list[Event]:
    """Return all events that were found, best first; equal scores in order of key.

    Args:
        matches: Result of text search.
        vectors: Result of vector search.
        late_interaction: Compares token embeddings; None if there are none.
        adjacent_terms: Compares adjacent terms; None to leave them out.
        weights: Weights of the parts.
        rerank_from: Least plain score of the best event for which the first events are re-ranked.
        waiting: Events that are not embedded yet, ascending.
        in_date_range: Filters by the date range that the query names; None without one.
    """
    keys, _ = distinct(np.concatenate([matches.event, vectors.event]))
    found = _Measured.of(keys, matches, vectors, among(keys, waiting))
    parts, used = found.counted(), weights._replace(late_interaction=0.0, adjacent_terms=0.0)
    plain, dated, date = found.plain(used), np.zeros(len(keys)), 0.0
    if in_date_range:
        dated, date = in_date_range(keys).astype(np.float64), _DATE
    late, adjacent = np.zeros(len(keys)), np.zeros(len(keys))
    score = _total((*parts, late, adjacent, dated), used.shares(date))
    if plain.max(initial=0.0) >= rerank_from:
        first = np.sort(keys[_order(keys, score)[:_RERANKED]])
        compared = _late_interaction(keys, first, vectors, late_interaction, found) if late_interaction else None
        if compared is not None:
            late, used = compared, used._replace(late_interaction=weights.late_interaction)
        if adjacent_terms:
            in_prose = among(keys, first) & (found.best >= 0) & ~found.in_code
            adjacent[in_prose] = adjacent_terms(matches.key[found.best[in_prose]])
            used = used._replace(adjacent_terms=weights.adjacent_terms)
        score = _total((*parts, late, _powers(adjacent, found.in_code), dated), used.shares(date))
    order = _order(keys, score)
    similarity = found.similarity.astype(object)
    similarity[np.isinf(found.similarity)] = None
    columns = (keys, score, plain, found.words, found.prompt, similarity, late, adjacent, dated, found.semantic)
    rows = (column[order].tolist() for column in (*columns, found.best))
    return list(map(Event, *rows, repeat(matches), repeat(vectors), repeat(used.shares(date))))


class _Measured(NamedTuple):
    """Measurements by event, each of shape (events,).

    `best` is the row of the best text match and `in_code` whether that is code. `prompt` and `semantic` are expected
    values for events that are `waiting` to be embedded.
    """

    words: Fractions
    prompt: Fractions
    similarity: Fractions
    semantic: Fractions
    best: Numbers
    in_code: Flags
    waiting: Flags

    @classmethod
    def of(cls, keys: Numbers, matches: TextMatches, vectors: VectorMatches, waiting: Flags) -> "_Measured":
        best = _best_matches(keys, matches)
        found, words, in_code = best >= 0, np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
        words[found], in_code[found] = matches.fraction[best[found]], matches.in_code[best[found]]
        similarity = np.full(len(keys), -np.inf)
        np.maximum.at(similarity, np.searchsorted(keys, vectors.event), vectors.similarity)
        asked, prompts = (vectors.item == vectors.event) & (vectors.part == PROMPT), np.zeros(len(keys))
        prompts[np.searchsorted(keys, vectors.event[asked])] = vectors.similarity[asked]
        prompt, semantic = (_expected(each, words, waiting, ~waiting) for each in (prompts, np.maximum(similarity, 0)))
        return cls(words, prompt, similarity, semantic, best, in_code, waiting)

    def counted(self) -> tuple[Fractions, ...]:
        """Return the values that are summed."""
        return _powers(self.words, self.in_code), np.maximum(self.prompt, 0), self.semantic

    def plain(self, weights: Weights) -> Fractions:
        """Return the scores by these weights; those of waiting events by words alone."""
        score = _total(self.counted(), weights.shares())
        if self.waiting.any():
            by_words = weights._replace(prompt=0.0, semantic=0.0)
            score[self.waiting] = _total(self.counted(), by_words.shares())[self.waiting]
        return score


def _expected(values: Fractions, words: Fractions, waiting: Flags, known: Flags) -> Fractions:
    """Return the values with those of waiting events replaced by the value of equal rank among the known ones."""
    if not waiting.any() or not known.any():
        return values
    expected, others = values.copy(), np.sort(words[known])
    better = len(others) - np.searchsorted(others, words[waiting], "right")
    expected[waiting] = np.sort(values[known])[::-1][np.minimum(better, len(others) - 1)]
    return expected


def _total(parts: Sequence[Fractions], shares: Sequence[float]) -> Fractions:
    """Return the weighted sum of the parts, added in order."""
    total = np.zeros(len(parts[0]))
    for share, part in zip(shares, parts, strict=False):
        total += share * part
    return total


def _order(keys: Numbers, score: Fractions) -> Numbers:
    return np.lexsort((keys, -score))


def _late_interaction(
    keys: Numbers, first: Numbers, vectors: VectorMatches, compare: LateInteraction, measured: _Measured
) -> Fractions | None:
    """Return the late-interaction score of each event; None if nothing can be compared.

    Events outside `first` get the lowest score of these, those without token embeddings the mean, and waiting ones the
    expected score.
    """
    compared = vectors.where(among(vectors.event, first))
    scores = compare(compared)
    known = ~np.isnan(scores)
    if not known.any():
        return None
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, np.searchsorted(keys, compared.event[known]), scores[known])
    found = np.isfinite(best)
    best = np.where(found & measured.in_code, measured.similarity, best)
    least, mean = best[found].min(), best[found].mean()
    is_first = among(keys, first)
    best[~found] = np.where(is_first, mean, least)[~found]
    waiting = measured.waiting & is_first
    return _expected(np.maximum(best, 0), measured.words, waiting, is_first & ~waiting)


def _powers(fractions: Fractions, in_code: Flags | bool) -> Fractions:
    """Return fractions to the power of 1.5, or of 3 in code; exact, so that parts add up to the score."""
    return np.where(in_code, fractions * fractions * fractions, fractions * np.sqrt(fractions))


def _best_matches(keys: Numbers, matches: TextMatches) -> Numbers:
    """Return the row of each event's best match, the first of equals; -1 without one."""
    order = np.lexsort((-matches.fraction, matches.event))
    events, first = distinct(matches.event[order])
    best = np.full(len(keys), -1)
    best[np.searchsorted(keys, events)] = order[first]
    return best
