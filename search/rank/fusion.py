"""Score fusion of text and vector search into one score per event, ranked events, and the relevance threshold.

An event is an exchange with its observations, or a single memory or document chunk. Its score is a weighted sum of:

- words: BM25 divided by the highest BM25 score possible for the query, to the power of 1.5 to discount chance matches
  (3 for code, whose common words are keywords and names).
- prompt and semantic: the cosine of the user's prompt, and the best cosine of any vector of the event.
- late interaction: similarity of the tokens of the query and the event. Code uses the best cosine instead.
- adjacent terms: weight of the query's adjacent-term pairs that are also adjacent in the event. Not used for code.
- date and project: each 1 if the event is within the query's date range, or in the current project, else 0.
- first: 1 if one of several wordings of a query alone ranks the event first, else 0.

Late interaction and adjacent terms re-rank only the first events. All others get the lowest late-interaction score of
these. With several wordings of a query, words, prompt and semantic are means over the wordings.

If an event is not embedded yet, its vector scores are estimated from its rank by text score. The estimate affects
only the order. Relevance then depends on the text score alone, so that a filter never adds results.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store.change_log import PROMPT
from ...core.results import ScorePart
from ..index.matches import Flags, Floats, Integers, TextMatch, TextMatches, VectorMatches, among, distinct
from ..query.query_analysis import AnalyzedQuery


class Weights(NamedTuple):
    """Weights of the parts of a score. Chosen on the train splits of the development sets (bench/RESULTS.md)."""

    words: float = 1.0
    prompt: float = 0.2
    semantic: float = 0.3
    late_interaction: float = 1.0
    adjacent_terms: float = 1.2

    def shares(self, *preferences: float) -> tuple[float, ...]:
        """Return the weights, followed by those of date, project and first (0 by default), with a sum of 1."""
        weights = (*self, *(preferences or _NO_PREFERENCES))
        return tuple(weight / sum(weights) for weight in weights)


_WEIGHTS = Weights()
_NO_PREFERENCES = (0.0, 0.0, 0.0)
_DATE = 0.12
"""Weight of the part `date`. Chosen on the train split (bench/RESULTS.md, "Dates in a question")."""
_PROJECT = 0.06
"""Weight of the part `project`. It only reorders similar scores (bench/RESULTS.md, "Project of the searcher")."""
_FIRST = 0.06
"""Weight of the part `first`. Chosen on the train split (bench/RESULTS.md, "Paraphrases: rejected alternatives")."""
RERANKED = 40
"""Number of events that late interaction and adjacent terms re-rank."""
RERANKED_REWORDED = 15
"""Number of events to re-rank for a query with several wordings, which has more tokens to compare.

Re-ranking 40 events gives equal results (bench/RESULTS.md).
"""
_NONE = np.empty(0, dtype=np.int64)
PARTS = ("words", "prompt", "semantic", "late interaction", "adjacent terms", "date", "project", "first")
"""Names of the parts of a score in the order of summation. The last three are left out if they do not apply."""
_OPTIONAL = PARTS[-3:]

LateInteraction: TypeAlias = Callable[[VectorMatches], Floats]
"""Function that returns the late-interaction score for the item of each vector, -1 to 1, or NaN if unknown."""
AdjacentTerms: TypeAlias = Callable[[Integers], Floats]
"""Function that returns the weight of the query's adjacent-term pairs in each item, 0 to 1."""
Preference: TypeAlias = Callable[[Integers], Flags]
"""Function that returns a flag per event: True if the event is preferred because of its date or project."""


class Event(Struct, eq=False):
    """Score of one event for one query.

    Attributes:
        score: Ranking score, 0 to 1.
        plain: Score without re-ranking and without estimated vector scores. The relevance threshold applies to it.
        words: Highest text score of any entry, 0 to 1.
        prompt: Cosine of the prompt, or its expected value, or 0 if no prompt was compared.
        similarity: Best cosine of any vector, or None if no vector was compared.
        late_interaction: Late-interaction score, 0 to 1, or 0 without re-ranking.
        adjacent_terms: Weight of the query's adjacent-term pairs in the best-matching item, 0 to 1.
        in_date_range: 1 if the event is within the date range of the query, else 0.
        in_project: 1 if the event belongs to the user's current project, else 0.
        is_first: 1 if one of several wordings alone ranks the event first, else 0.
        evidence: Re-ranked score without date, project and first. None if no event was re-ranked, if no token
            embeddings exist, or if this event is not embedded yet.
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
    in_project: float
    is_first: float
    evidence: float | None
    _semantic: float
    """Best cosine or its expected value, at least 0."""
    _best: int
    """Row of the best text match, or -1 if no text matches."""
    _matches: TextMatches
    _vectors: VectorMatches
    _shares: tuple[float, ...]
    _means: tuple[float, float, float] | None = None
    """Mean values of the parts `words`, `prompt` and `semantic` over several wordings, or None for one wording."""
    _concepts: tuple[ScorePart, ...] = ()
    """Parts of the score by concept, for a query with several concepts."""

    @classmethod
    def unranked(cls, key: int) -> "Event":
        """Return an event without scores, for a query without words."""
        scores = (0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0, 0.0, 0.0, None, 0.0)
        return cls(key, *scores, -1, TextMatches.none(), VectorMatches.none(), ())

    @property
    def best_match(self) -> TextMatch | None:
        """Entry with the highest text score, or None if no entry matches."""
        return self._matches[self._best] if self._best >= 0 else None

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        """Parts of the score. The sum of their points, added in order, equals the score exactly."""
        if self._concepts:
            return self._concepts
        in_code = self._best >= 0 and bool(self._matches.in_code[self._best])
        words, adjacent = _powers(np.array([self.words, self.adjacent_terms]), in_code).tolist()
        prompt = max(0.0, self.prompt)
        preferences = (self.in_date_range, self.in_project, self.is_first)
        values = [self.words, prompt, self._semantic, self.late_interaction, self.adjacent_terms, *preferences]
        means = self._means or (words, prompt, self._semantic)
        counted = [*means, self.late_interaction, adjacent, *preferences]
        rows = zip(PARTS, values, counted, self._shares, strict=True)
        return tuple(
            ScorePart(name, value, share * counts)
            for name, value, counts, share in rows
            if share or name not in _OPTIONAL
        )

    @property
    def semantic(self) -> float:
        """Best cosine of the compared vectors, at least 0, or 0 if no vector was compared."""
        return max(0.0, self.similarity or 0.0)

    def words_of(self, item: int) -> float:
        """Return the highest text score among the entries of one item, 0 to 1."""
        return self._matches.best_of.get(item, 0.0)

    def score_of(self, item: int) -> float:
        """Return the score of one item of the event: its highest text score plus its best cosine."""
        return self.words_of(item) + max(0.0, self._vectors.best_of.get(item, 0.0))


def joined(concepts: Sequence[str], events: Sequence[Event]) -> Event:
    """Combine the events of several concepts, one per concept: return the best event with the mean score of all."""
    parts = tuple(
        ScorePart(concept, event.score, event.score / len(events))
        for concept, event in zip(concepts, events, strict=True)
    )
    best = max(events, key=lambda event: event.score)
    return replace(best, score=sum(part.points for part in parts), _concepts=parts)


class Wording(NamedTuple):
    """Results of both engines for one wording of a query."""

    matches: TextMatches
    vectors: VectorMatches


def fuse(
    matches: TextMatches,
    vectors: VectorMatches,
    late_interaction: LateInteraction | None = None,
    adjacent_terms: AdjacentTerms | None = None,
    weights: Weights = _WEIGHTS,
    *,
    rerank_from: float = 0.0,
    waiting: Integers = _NONE,
    in_date_range: Preference | None = None,
    in_project: Preference | None = None,
    is_first: Preference | None = None,
    reranked: int = RERANKED,
    rewordings: Sequence[Wording] = (),
) -> list[Event]:
    """Return the events of all matches, best first. Events with equal scores are sorted by key.

    Args:
        matches: Result of text search.
        vectors: Result of vector search.
        late_interaction: Function that compares token embeddings, or None to skip this part.
        adjacent_terms: Function that compares adjacent terms, or None to skip this part.
        weights: Weights of the parts.
        rerank_from: Plain score that the best event must reach for events to be re-ranked.
        waiting: Events that are not embedded yet, ascending.
        in_date_range: Function that flags events in the date range of the query, or None without a date range.
        in_project: Function that flags events of the user's current project, or None without a preference.
        is_first: Function that flags events that one wording alone ranks first, or None for one wording.
        reranked: Maximum number of events to re-rank.
        rewordings: Results of other wordings of the query. Each vector result must contain the same events.
    """
    matches, vectors, keys, scored = _scored_events(Wording(matches, vectors), rewordings, waiting)
    parts, used = scored.counted(), weights._replace(late_interaction=0.0, adjacent_terms=0.0)
    plain, preferences = scored.plain(used), (in_date_range, in_project, is_first)
    flags = [_flags(preference, keys) for preference in preferences]
    weighted = zip(preferences, (_DATE, _PROJECT, _FIRST), strict=True)
    preferred = [weight if preference else 0.0 for preference, weight in weighted]
    late, adjacent, evidence = np.zeros(len(keys)), np.zeros(len(keys)), np.full(len(keys), None, dtype=object)
    score = _total((*parts, late, adjacent, *flags), used.shares(*preferred))
    if plain.max(initial=0.0) >= rerank_from:
        first = np.sort(keys[_order(keys, score)[:reranked]])
        compared = _late_interaction(keys, first, vectors, late_interaction, scored) if late_interaction else None
        if compared is not None:
            late, used = compared, used._replace(late_interaction=weights.late_interaction)
        if adjacent_terms:
            in_prose = among(keys, first) & (scored.best >= 0) & ~scored.in_code
            adjacent[in_prose] = adjacent_terms(matches.key[scored.best[in_prose]])
            used = used._replace(adjacent_terms=weights.adjacent_terms)
        all_parts = (*parts, late, _powers(adjacent, scored.in_code))
        score = _total((*all_parts, *flags), used.shares(*preferred))
        if compared is not None:
            evidence[~scored.waiting] = _total(all_parts, used.shares())[~scored.waiting]
    order = _order(keys, score)
    similarity = scored.similarity.astype(object)
    similarity[np.isinf(scored.similarity)] = None
    columns = (keys, score, plain, scored.words, scored.prompt, similarity, late, adjacent, *flags, evidence)
    rows = (column[order].tolist() for column in (*columns, scored.semantic, scored.best))
    shares = repeat(used.shares(*preferred))
    return list(map(Event, *rows, repeat(matches), repeat(vectors), shares, scored.means_of(order)))


def _scored_events(
    first: Wording, rewordings: Sequence[Wording], waiting: Integers
) -> tuple[TextMatches, VectorMatches, Integers, "_Scores"]:
    """Return the matches of all wordings, the keys of their events in ascending order, and the scores of the events."""
    wordings = [first, *rewordings]
    keys, _ = distinct(np.concatenate([column.event for wording in wordings for column in wording]))
    flags = among(keys, waiting)
    scores = [_Scores.of(keys, *wording, flags) for wording in wordings]
    if not rewordings:
        return first.matches, first.vectors, keys, scores[0]
    matches = TextMatches.concatenated([wording.matches for wording in wordings])
    vectors = VectorMatches.concatenated([wording.vectors for wording in wordings])
    offsets = np.cumsum([0, *(len(wording.matches) for wording in wordings[:-1])])
    return matches, vectors, keys, _Scores.mean(scores, offsets)


class _Scores(NamedTuple):
    """Columns with one value per event, shape (events,).

    Attributes:
        words: Highest text score, or 0 if no text matches.
        prompt: Cosine of the prompt, or its expected value.
        similarity: Best cosine, or minus infinity if no vector was compared.
        semantic: Best cosine, at least 0, or its expected value.
        best: Row of the best text match, or -1 if no text matches.
        in_code: True if the best text match is code.
        waiting: True if the event is not embedded yet.
        means: Mean of `counted` over several wordings, or None for one wording. With several wordings, the other values
            are the best of all wordings.
    """

    words: Floats
    prompt: Floats
    similarity: Floats
    semantic: Floats
    best: Integers
    in_code: Flags
    waiting: Flags
    means: tuple[Floats, Floats, Floats] | None = None

    @classmethod
    def of(cls, keys: Integers, matches: TextMatches, vectors: VectorMatches, waiting: Flags) -> "_Scores":
        best = _best_matches(keys, matches)
        has_match, words, in_code = best >= 0, np.zeros(len(keys)), np.zeros(len(keys), dtype=bool)
        words[has_match], in_code[has_match] = matches.fraction[best[has_match]], matches.in_code[best[has_match]]
        similarity = np.full(len(keys), -np.inf)
        np.maximum.at(similarity, np.searchsorted(keys, vectors.event), vectors.similarity)
        asked, prompts = (vectors.item == vectors.event) & (vectors.part == PROMPT), np.zeros(len(keys))
        prompts[np.searchsorted(keys, vectors.event[asked])] = vectors.similarity[asked]
        prompt, semantic = (
            _expected(values, words, waiting, ~waiting) for values in (prompts, np.maximum(similarity, 0))
        )
        return cls(words, prompt, similarity, semantic, best, in_code, waiting)

    @classmethod
    def mean(cls, wordings: Sequence["_Scores"], offsets: Integers) -> "_Scores":
        """Return the mean scores of each event over all wordings. Matches of wording i begin at row `offsets[i]`."""
        words = np.stack([scores.words for scores in wordings])
        best, columns = words.argmax(axis=0), np.arange(len(wordings[0].words))
        rows = [np.where(scores.best >= 0, scores.best + at, -1) for scores, at in zip(wordings, offsets, strict=True)]
        in_code = np.stack([scores.in_code for scores in wordings])
        counted = zip(*(scores.counted() for scores in wordings), strict=True)
        first, second, third = (np.mean(scores, axis=0) for scores in counted)
        return cls(
            words.max(axis=0),
            np.max([scores.prompt for scores in wordings], axis=0),
            np.max([scores.similarity for scores in wordings], axis=0),
            np.max([scores.semantic for scores in wordings], axis=0),
            np.stack(rows)[best, columns],
            in_code[best, columns],
            wordings[0].waiting,
            (first, second, third),
        )

    def counted(self) -> tuple[Floats, Floats, Floats]:
        """Return the values to multiply by the weights: text score, prompt cosine and semantic cosine."""
        if self.means is not None:
            return self.means
        return _powers(self.words, self.in_code), np.maximum(self.prompt, 0), self.semantic

    def means_of(self, order: Integers) -> Iterator[tuple[float, float, float] | None]:
        """Yield the means of each event in this order, or None for one wording."""
        if self.means is None:
            return repeat(None)
        return zip(*(column[order].tolist() for column in self.means), strict=True)

    def plain(self, weights: Weights) -> Floats:
        """Return the scores with these weights. An event that is not embedded yet is scored by its text score alone."""
        score = _total(self.counted(), weights.shares())
        if self.waiting.any():
            by_words = weights._replace(prompt=0.0, semantic=0.0)
            score[self.waiting] = _total(self.counted(), by_words.shares())[self.waiting]
        return score


def _flags(preference: Preference | None, keys: Integers) -> Floats:
    """Return 1 for each preferred event, else 0. Without a preference, all values are 0."""
    return np.zeros(len(keys)) if preference is None else preference(keys).astype(np.float64)


def _expected(values: Floats, words: Floats, waiting: Flags, has_words: Flags) -> Floats:
    """Return the values, and estimate the values of events that are not embedded yet.

    An event whose text score has rank n gets the n-th highest known value.
    """
    if not waiting.any() or not has_words.any():
        return values
    expected, others = values.copy(), np.sort(words[has_words])
    better = len(others) - np.searchsorted(others, words[waiting], "right")
    expected[waiting] = np.sort(values[has_words])[::-1][np.minimum(better, len(others) - 1)]
    return expected


def _total(parts: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Return the weighted sum of the parts. They are added in their order, so that rounding is reproducible."""
    total = np.zeros(len(parts[0]))
    for share, part in zip(shares, parts, strict=False):
        total += share * part
    return total


def _order(keys: Integers, score: Floats) -> Integers:
    return np.lexsort((keys, -score))


def _late_interaction(
    keys: Integers, first: Integers, vectors: VectorMatches, compare: LateInteraction, scored: _Scores
) -> Floats | None:
    """Return the late-interaction score of each event, or None if no event can be compared.

    Events outside `first` get the lowest score. In `first`, events without token embeddings get the mean score, and
    events that are not embedded yet get the expected score.
    """
    compared = vectors.where(among(vectors.event, first))
    values = compare(compared)
    is_scored = ~np.isnan(values)
    if not is_scored.any():
        return None
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, np.searchsorted(keys, compared.event[is_scored]), values[is_scored])
    is_finite = np.isfinite(best)
    best = np.where(is_finite & scored.in_code, scored.similarity, best)
    least, mean = best[is_finite].min(), best[is_finite].mean()
    is_first = among(keys, first)
    best[~is_finite] = np.where(is_first, mean, least)[~is_finite]
    waiting = scored.waiting & is_first
    return _expected(np.maximum(best, 0), scored.words, waiting, is_first & ~waiting)


def _powers(fractions: Floats, in_code: Flags | bool) -> Floats:
    """Return each fraction raised to the power of 1.5, or 3 for code, with the same rounding on every machine."""
    return np.where(in_code, fractions * fractions * fractions, fractions * np.sqrt(fractions))


def _best_matches(keys: Integers, matches: TextMatches) -> Integers:
    """Return the row of each event's best match, or -1 without a match. On a tie, the first row is returned."""
    order = np.lexsort((-matches.fraction, matches.event))
    events, first = distinct(matches.event[order])
    best = np.full(len(keys), -1)
    best[np.searchsorted(keys, events)] = order[first]
    return best


PRESENT_WORDS, PRESENT_SEMANTIC = 0.25, 0.4
"""Minimum text score and minimum cosine. An event that reaches one of them counts as containing the concept.

If each word of the concept occurs once, the text score is 0.45 in a window of average length. In a window three times
as long, it is 0.25.
"""
RELEVANT_SIMILARITY = 0.7
"""Value of `RankedEvents.similarity` at the relevance threshold. The toolset `fabric` uses it as the default."""
_LISTED = 0.6
"""Share of the relevance threshold that an event must reach to be listed after relevant events.

On 400 questions of the train split, 314 of the 315 correct answers in the top 10 are still listed.
"""
_MATCHING = 0.6
"""Share of the best score that an event must reach so that its session matches.

On 337 questions about 98 sessions, every correct session in the first ten is still listed, among 6 sessions on average
instead of 10.
"""


class RankedEvents(Struct, frozen=True):
    """Events of one search, best first.

    Attributes:
        threshold: Minimum plain score of a relevant event.
        words_threshold: Minimum text score that makes an event relevant regardless of its other scores.
        truncated: True if an engine reached its limit, so that more events can match.
        evidence_threshold: Minimum evidence that at least one event must have. Otherwise, no event is relevant.
    """

    events: list[Event]
    query: AnalyzedQuery
    threshold: float = 0.0
    words_threshold: float = inf
    truncated: bool = False
    evidence_threshold: float = 0.0

    def is_relevant(self, event: Event) -> bool:
        """Return whether an event is relevant by its plain score or its text score."""
        return event.plain >= self.threshold or event.words >= self.words_threshold

    @property
    def listed(self) -> list[Event]:
        """Events to show: the events near or above the threshold, or all events if no event is relevant."""
        if not self.relevant:
            return self.events
        return [event for event in self.events if self.is_relevant(event) or event.plain >= _LISTED * self.threshold]

    @property
    def matching(self) -> list[Event]:
        """Events that make their session match the query: each is relevant by itself and near the best score.

        A list of sessions claims that each of them is about the query, so it is shorter than `listed`.
        """
        if not (self.relevant and self.threshold):
            return self.listed
        least = _MATCHING * max(event.score for event in self.events)
        return [
            event
            for event in self.events
            if event.score >= least and self.is_relevant(event) and self._is_proven(event)
        ]

    @property
    def plausible(self) -> bool:
        """True if any event is relevant when its evidence is ignored, or if the threshold is 0."""
        return self.threshold == 0 or any(map(self.is_relevant, self.events))

    @property
    def relevant(self) -> bool:
        """True if any event is relevant and has enough evidence, or if the threshold is 0."""
        return self.threshold == 0 or any(self.is_relevant(event) and self._is_proven(event) for event in self.events)

    def similarity(self, event: Event) -> float:
        """Return the score of an event on a scale of 0 to 1 where 0.7 is the relevance threshold.

        The result does not depend on the other events, so the best of several unrelated events has a low value.
        """
        strength = event.words / self.words_threshold
        if self.threshold:
            strength = max(strength, event.plain / self.threshold)
        else:  # One engine was used, or a quoted phrase matched.
            strength = max(event.words / PRESENT_WORDS, event.semantic / PRESENT_SEMANTIC)
        share = RELEVANT_SIMILARITY
        return share * strength if strength < 1 else share + (1 - share) * min(1.0, max(0.0, event.score))

    def _is_proven(self, event: Event) -> bool:
        if event.evidence is None or event.words >= self.words_threshold:
            return True
        return event.evidence >= self.evidence_threshold
