"""Fusion: what words say and what meaning says about an event, as one score.

An event is an exchange with everything learned from it. Words count as the fraction of what the query could score at
most, meaning as cosines; both are absolute, so no engine is stretched to look sure when it is not. A query of rare
words that stand somewhere is decided by them; a paraphrase, whose words are nowhere, is decided by the vectors. What a
person asked is the best key to what they half remember, so prompts count apart from everything else that was said.
What was said just before and after counts a little: work on one thing goes on from one exchange to the next.

What was stored a moment ago waits to be embedded, and cannot be compared. It counts as what stands where it does by
words does by meaning: the event with the best words as the nearest of the others, the second as the second. Counting
nothing it would sink below all that lacks its words. That orders it and no more: whether it is relevant its own words
tell alone, or a filter, under which others are found, would bring to light what nobody finds without it.

What these rank first is looked at more closely: how near each token of the query comes to some token of one of the
event's texts (`signs.py`), a rare word's counting more (`emphasis.py`). An event that is not looked at counts as the
least close of those that are. The tokens of code are names and keywords, which are near each other whatever it does:
there the whole vector says more, and counts instead. And it is looked for which of the query's words stand next to
each other there as they do in the query (`neighbours.py`): several words in one window may be chance, two in a row are
rarely so. In code, where much stands in a row, that counts nothing.

Words count more than in proportion, because a few of a question's words stand anywhere by chance and most of them
together do not: the fraction to the power of 1.5. In code, where common words are keywords and names, to that of 3.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store.vector_table import PROMPT
from ...core.results import ScorePart
from ..index.matches import Flags, Fractions, Numbers, TextMatch, TextMatches, VectorMatches, among, distinct


class Weights(NamedTuple):
    """What each part of a score counts. Chosen on the tuning halves of the development sets; what each adds is in
    bench/RESULTS.md, under "Ablation".
    """

    words: float = 1.0
    words_around: float = 0.2
    prompts: float = 0.2
    meaning: float = 0.3
    meaning_around: float = 0.07
    closeness: float = 1.2
    words_together: float = 1.0

    def shares(self, period: float = 0.0) -> tuple[float, ...]:
        """The weights and that of the period, so that a score is at most 1."""
        return tuple(weight / (sum(self) + period) for weight in (*self, period))


_WEIGHTS = Weights()
_PERIOD = 0.12
"""What it counts to be of the period that a query names: 0.03 of a score. Chosen on the tuning half of the paraphrases
about coding sessions (bench/RESULTS.md, "Dates in a question").
"""
_NONE = np.empty(0, dtype=np.int64)
_CLOSELY = 40
"""Events that are looked at closely."""
NAMES = ("words", "words around", "prompt", "meaning", "meaning around", "closeness", "words together")
"""What the parts of a score are called, in the order in which they are added up."""
PERIOD = "period"
"""What the last part is called, which there is where the query names a period."""

Compare: TypeAlias = Callable[[VectorMatches], Fractions]
"""How close the texts of some vectors come to the query, -1 to 1; NaN where that cannot be told."""
Together: TypeAlias = Callable[[Numbers], Fractions]
"""How much of what stands next to each other in the query does so in some items, 0 to 1."""
OfPeriod: TypeAlias = Callable[[Numbers], Flags]
"""Which of some events are of the period that the query names."""


class Event(Struct, eq=False):
    """What is known of one event for one query."""

    key: int
    score: float
    """What orders events, 0 to 1."""
    plain: float
    """The score without a close look, 0 to 1, of what waits by words alone: what tells whether anything is relevant
    (`engine.py`).
    """
    words: float
    """The best fraction of any entry, 0 to 1."""
    words_around: float
    """The best fraction of the exchanges just before and after."""
    prompt: float
    """The similarity of what the person asked, or what is expected of it; 0 where nothing was compared."""
    similarity: float | None
    """The best cosine of any vector; None where none was compared."""
    meaning_around: float
    """The best cosine of the exchanges just before and after."""
    closeness: float
    """How close the best of its texts comes to the query, 0 to 1; of code the best cosine. 0 where nothing was looked
    at closely.
    """
    words_together: float
    """How much of what stands next to each other in the query does so in the item whose words match best."""
    of_period: float
    """1 for what is of the period that the query names, else 0."""
    _meant: float
    """The best cosine as far as it counts, or what is expected of it."""
    _best: int
    """The row of the best match; -1 where no word was found."""
    _matches: TextMatches
    _nears: VectorMatches
    _shares: tuple[float, ...]
    _concepts: tuple[ScorePart, ...] = ()
    """What each of several concepts adds to the score, where several were asked for."""

    @classmethod
    def unranked(cls, key: int) -> "Event":
        """An event that no words were looked for in."""
        return cls(
            key,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            None,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            -1,
            TextMatches.none(),
            VectorMatches.none(),
            (),
        )

    @property
    def best_match(self) -> TextMatch | None:
        """The entry whose words match best; None where no word was found."""
        return self._matches[self._best] if self._best >= 0 else None

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        """What the score is made of: the points, added one after the other, are the score, to the last bit."""
        if self._concepts:
            return self._concepts
        in_code = self._best >= 0 and bool(self._matches.in_code[self._best])
        said = np.array([self.words, self.words_around, self.words_together])
        meant = [max(0.0, self.prompt), self._meant, self.meaning_around, self.closeness]
        words, around, together = _counted(said, in_code).tolist()
        values = [self.words, self.words_around, *meant, self.words_together, self.of_period]
        counted = [words, around, *meant, together, self.of_period]
        rows = zip((*NAMES, PERIOD), values, counted, self._shares, strict=True)
        parts = tuple(ScorePart(name, value, share * counts) for name, value, counts, share in rows)
        return parts if self._shares[-1] else parts[:-1]

    @property
    def meaning(self) -> float:
        """The best cosine as far as it counts: 0 where none was compared or all point away."""
        return max(0.0, self.similarity or 0.0)

    def words_of(self, item: int) -> float:
        """The best fraction of one item's own entries."""
        return self._matches.best_of.get(item, 0.0)

    def own(self, item: int) -> float:
        """How well one item of the event matches by itself."""
        return self.words_of(item) + max(0.0, self._nears.best_of.get(item, 0.0))


def joined(concepts: Sequence[str], events: Sequence[Event]) -> Event:
    """The best of these, the events of one place that each concept found, with the mean of their scores as its own."""
    parts = tuple(
        ScorePart(concept, event.score, event.score / len(events))
        for concept, event in zip(concepts, events, strict=True)
    )
    best = max(events, key=lambda event: event.score)
    return replace(best, score=sum(part.points for part in parts), _concepts=parts)


def gather(
    matches: TextMatches,
    nears: VectorMatches,
    compare: Compare | None = None,
    together: Together | None = None,
    weights: Weights = _WEIGHTS,
    *,
    at_least: float = 0.0,
    waiting: Numbers = _NONE,
    of_period: OfPeriod | None = None,
) -> list[Event]:
    """Everything both engines found, by event, best first; equal scores in order of key. The first are looked at as
    closely as `compare` and `together` can, where one of them has a plain score of `at_least` this. Events that are
    `waiting`, ascending, were not embedded yet. What is `of_period` comes earlier, and is no more relevant for it.
    """
    keys, _ = distinct(np.concatenate([matches.event, nears.event]))
    found = _measured(keys, matches, nears, among(keys, waiting))
    parts, alone = found.counted(), weights._replace(closeness=0.0, words_together=0.0)
    plain, timely, weight = found.plain(alone), np.zeros(len(keys)), 0.0
    if of_period:
        timely, weight = of_period(keys).astype(np.float64), _PERIOD
    shares = alone.shares(weight)
    closeness, beside = np.zeros(len(keys)), np.zeros(len(keys))
    score = _total((*parts, closeness, beside, timely), shares)
    if plain.max(initial=0.0) >= at_least:
        first = np.sort(keys[_order(keys, score)[:_CLOSELY]])
        looked = _closeness(keys, first, nears, compare, found) if compare and weights.closeness else None
        if looked is not None:
            closeness, alone = looked, alone._replace(closeness=weights.closeness)
        if together and weights.words_together:
            beside = _together(among(keys, first), matches, together, found)
            alone = alone._replace(words_together=weights.words_together)
        shares = alone.shares(weight)
        score = _total((*parts, closeness, _counted(beside, found.in_code), timely), shares)
    order = _order(keys, score)
    columns = (keys, score, plain, *found.shown(), closeness, beside, timely, found.meant, found.best)
    told = (column[order].tolist() for column in columns)
    return list(map(Event, *told, repeat(matches), repeat(nears), repeat(shares)))


class _Measured(NamedTuple):
    """What was found, by event. `best` is the row of its best match; `in_code` says whether that is code, and `waiting`
    which events were not embedded yet: of these `prompt` and `meant` are what is expected.
    """

    words: Fractions
    words_around: Fractions
    prompt: Fractions
    similarity: Fractions
    meant: Fractions
    meaning_around: Fractions
    best: Numbers
    in_code: Flags
    waiting: Flags

    def shown(self) -> tuple[npt.NDArray[Any], ...]:
        """As an event tells it."""
        told = self.similarity.astype(object)
        told[np.isinf(self.similarity)] = None
        return self.words, self.words_around, self.prompt, told, self.meaning_around

    def counted(self) -> tuple[Fractions, ...]:
        """As it counts."""
        said = (_counted(words, self.in_code) for words in (self.words, self.words_around))
        return (*said, np.maximum(self.prompt, 0), self.meant, self.meaning_around)

    def plain(self, weights: Weights) -> Fractions:
        """By these weights alone; what waits by those of words."""
        score = _total(self.counted(), weights.shares())
        if self.waiting.any():
            words = weights._replace(prompts=0.0, meaning=0.0, meaning_around=0.0)
            score[self.waiting] = _total(self.counted(), words.shares())[self.waiting]
        return score


def _measured(keys: Numbers, matches: TextMatches, nears: VectorMatches, waiting: Flags) -> _Measured:
    best = _best_matches(keys, matches)
    found = best >= 0
    words, words_around, meaning_around = (np.zeros(len(keys)) for _ in range(3))
    words[found] = matches.fraction[best[found]]
    similarity = np.full(len(keys), -np.inf)
    np.maximum.at(similarity, np.searchsorted(keys, nears.event), nears.similarity)
    places = matches.place[best[found]]
    words_around[found] = _around(places, words[found])
    meant = np.maximum(similarity, 0)
    meaning_around[found] = _around(places, meant[found])
    in_code = np.zeros(len(keys), dtype=bool)
    in_code[found] = matches.in_code[best[found]]
    prompt, meant = (_expected(each, words, waiting, ~waiting) for each in (_prompts(keys, nears), meant))
    return _Measured(words, words_around, prompt, similarity, meant, meaning_around, best, in_code, waiting)


def _expected(values: Fractions, words: Fractions, waiting: Flags, known: Flags) -> Fractions:
    """The values of all events, those of the waiting ones being what stands where they do by words among the known."""
    if not waiting.any() or not known.any():
        return values
    expected, others = values.copy(), np.sort(words[known])
    better = len(others) - np.searchsorted(others, words[waiting], "right")
    expected[waiting] = np.sort(values[known])[::-1][np.minimum(better, len(others) - 1)]
    return expected


def _total(parts: Sequence[Fractions], shares: Sequence[float]) -> Fractions:
    """The sum of these parts, which may be fewer than the shares, added up in their order."""
    total = np.zeros(len(parts[0]))
    for share, part in zip(shares, parts, strict=False):
        total += share * part
    return total


def _order(keys: Numbers, score: Fractions) -> Numbers:
    """The places of the events, best first."""
    return np.lexsort((keys, -score))


def _closeness(
    keys: Numbers, first: Numbers, nears: VectorMatches, compare: Compare, measured: "_Measured"
) -> Fractions | None:
    """How close each event comes; what is not among the first as the least of these, what cannot be compared as they do
    on average, what waits as its words let expect. None where nothing can be.
    """
    compared = nears.where(among(nears.event, first))
    close = compare(compared)
    known = ~np.isnan(close)
    if not known.any():
        return None
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, np.searchsorted(keys, compared.event[known]), close[known])
    found = np.isfinite(best)
    best = np.where(found & measured.in_code, measured.similarity, best)
    least, mean = best[found].min(), best[found].mean()
    is_first = among(keys, first)
    best[~found] = np.where(is_first, mean, least)[~found]
    waiting = measured.waiting & is_first
    return _expected(np.maximum(best, 0), measured.words, waiting, is_first & ~waiting)


def _together(first: Flags, matches: TextMatches, together: Together, measured: "_Measured") -> Fractions:
    """How much of what stands next to each other in the query does so in the item of each event's best match; nothing
    in code, and in what is not among the first.
    """
    looked = first & (measured.best >= 0) & ~measured.in_code
    beside = np.zeros(len(first))
    beside[looked] = together(matches.key[measured.best[looked]])
    return beside


def _counted(fractions: Fractions, in_code: Flags | bool) -> Fractions:
    """What fractions of words count. Roots and products are exact, so that parts told later add up to the score."""
    return np.where(in_code, fractions * fractions * fractions, fractions * np.sqrt(fractions))


def _best_matches(keys: Numbers, matches: TextMatches) -> Numbers:
    """The row of each event's best match, the first of equals; -1 where there is none."""
    order = np.lexsort((-matches.fraction, matches.event))
    events, first = distinct(matches.event[order])
    best = np.full(len(keys), -1)
    best[np.searchsorted(keys, events)] = order[first]
    return best


def _around(places: Numbers, values: Fractions) -> Fractions:
    """For each of these places the value of the one just before or after it, whichever is higher."""
    order = np.argsort(places)
    known = places[order]
    around = np.zeros(len(places))
    for step in (-1, 1):
        beside = np.minimum(np.searchsorted(known, places + step), len(known) - 1)
        around = np.maximum(around, np.where(known[beside] == places + step, values[order[beside]], 0))
    return around


def _prompts(keys: Numbers, nears: VectorMatches) -> Fractions:
    """The similarity of what the person asked, by event."""
    asked = (nears.item == nears.event) & (nears.part == PROMPT)
    prompt = np.zeros(len(keys))
    prompt[np.searchsorted(keys, nears.event[asked])] = nears.similarity[asked]
    return prompt
