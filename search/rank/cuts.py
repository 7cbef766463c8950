"""Cuts: phrases that stand across the place where a text is cut into windows, so that no entry has them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.memo import Memo
from ...core.query import Filters
from ..index.indexed_texts import around_cuts
from ..index.matches import TextMatches, distinct
from ..index.snapshot import Snapshot
from ..query.query_analysis import WORD, AnalyzedQuery
from ..query.tokenizer import composed, spaced, stems, terms, verbatim

_RAREST = 3
"""Words of a phrase by which it is looked for. A cut goes through one at most, so all but one of them are whole."""
_LOOKED_AT = 1_000
"""Entries that each of these words, or a phrase, brings at most."""
_REMEMBERED = 64
_BETWEEN = 100
"""Characters that may stand between the words of a phrase, besides as many as it has itself."""

Whole: TypeAlias = Callable[[AnalyzedQuery, Filters, int, Sequence[int] | None], TextMatches]
"""Finds the best entries that have what is quoted in one piece."""


class _Across(NamedTuple):
    """The items in which a phrase stands across a cut: in any form, and word for word."""

    formed: frozenset[int]
    verbatim: frozenset[int]


class _Asked(NamedTuple):
    """A phrase that was looked for in what satisfies filters, when the last change that was seen was this one."""

    phrase: str
    filters: Filters
    seq: int


class Cuts:
    """Looks for phrases in what is stored, where no entry of the text index has them."""

    def __init__(self, store: Store, view: Snapshot) -> None:
        self._store, self._view = store, view
        self._known = Memo[_Asked, _Across](_REMEMBERED)
        """Where phrases were found; of what is found nowhere it is asked again why."""

    def text(
        self, wording: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None, whole: Whole
    ) -> TextMatches:
        """The entries that words find of the items in which every phrase stands, each in a window, as `whole` finds
        it, or across two.
        """
        asked = [_Asked(phrase, filters, self._view.seq) for phrase in wording.phrases]
        across = [self._known.made(each, self._across) for each in asked]
        exact = [phrase in wording.verbatim for phrase in wording.phrases]
        found = [each.verbatim if so else each.formed for each, so in zip(across, exact, strict=True)]
        if len(found) > 1:
            having = [
                AnalyzedQuery(phrase, (phrase,), verbatim=(phrase,) * so)
                for phrase, so in zip(wording.phrases, exact, strict=True)
            ]
            windows = (whole(phrase, filters, _LOOKED_AT, among) for phrase in having)
            found = [items.union(matches.key.tolist()) for items, matches in zip(found, windows, strict=True)]
        items = sorted(frozenset[int].intersection(*found, *([] if among is None else [frozenset(among)])))
        plain = replace(wording, phrases=(), verbatim=())
        return _two_as_one(self._view.text(plain, filters, limit, items)) if items else TextMatches.none()

    def _across(self, asked: _Asked) -> _Across:
        wanted, reach = stems(spaced(asked.phrase)), 2 * len(asked.phrase) + _BETWEEN
        around = around_cuts(self._store, sorted(self._likely(asked)), reach, asked.filters.roles)
        formed = [(item, text) for item, text in around if _stands(wanted, stems(spaced(text)))]
        exact = verbatim(asked.phrase)
        return _Across(
            frozenset(item for item, _ in formed),
            frozenset(item for item, text in formed if exact.search(composed(text))),
        )

    def _likely(self, asked: _Asked) -> set[int]:
        """Items that have the rarest words of a phrase but for one, which a cut may have taken apart."""
        words = dict.fromkeys(WORD.findall(spaced(asked.phrase)))
        having = {word: min(map(self._view.having, terms(word)), default=0) for word in words}
        whole = sorted(filter(having.__getitem__, having), key=having.__getitem__)
        if len(having) - len(whole) > 1:
            return set()
        rarest = whole[:_RAREST]
        found = [self._view.text(AnalyzedQuery(word), asked.filters, _LOOKED_AT) for word in rarest]
        times = Counter(item for matches in found for item in set(matches.key.tolist()))
        return {item for item, often in times.items() if often >= max(1, len(rarest) - 1)}


def _two_as_one(matches: TextMatches) -> TextMatches:
    """The same, best first, where of each item the best entry has the words of the second best, too."""
    fraction = matches.fraction.copy()
    for item in distinct(matches.key)[0]:
        rows = np.flatnonzero(matches.key == item)
        best = rows[np.argsort(-fraction[rows], kind="stable")[:2]]
        fraction[best[0]] = min(1.0, fraction[best].sum())
    order = np.argsort(-fraction, kind="stable")
    return TextMatches(matches.numbers[:, order], fraction[order])


def _stands(phrase: Sequence[str], said: Sequence[str]) -> bool:
    """Whether the terms of a phrase stand one after the other among those of what was said."""
    first, many = phrase[0], len(phrase)
    return any(term == first and said[place : place + many] == phrase for place, term in enumerate(said))
