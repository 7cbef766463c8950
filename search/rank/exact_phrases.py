"""Quotations: what stands word for word as it was quoted, else in other forms of its words.

The text index knows words without their endings and without the signs between them. What it finds is looked at in the
stored text itself, best first, so that what was quoted is found as it was typed.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.memo import Memo
from ...core.query import Filters
from ..index import indexed_texts
from ..index.matches import Flags, Span, TextMatches
from ..index.snapshot import Snapshot
from ..query.query_analysis import WORD, AnalyzedQuery
from ..query.tokenizer import composed, verbatim
from .cuts import Cuts

_LOOKED_AT, _AT_FIRST = 2_000, 50
"""Entries with the words of what is quoted that are looked at, at most and at first: 2,000 take a tenth of a second."""
_FURTHER = 4
"""How many times more are looked at wherever too few have it word for word."""
_REMEMBERED = 64


class _Asked(NamedTuple):
    """Phrases that were looked for, said by one of these roles, if any, when the archive's last change was this one. Of
    a sentence what is quoted may have been said just before: whoever asks of a book means what is told of it.
    """

    phrases: tuple[str, ...]
    roles: tuple[str, ...]
    in_sentence: bool
    seq: int


class Quotations:
    """Finds what has all that was quoted in a query."""

    def __init__(self, store: Store, view: Snapshot) -> None:
        self._store, self._view = store, view
        self._cuts = Cuts(store, view)
        self._known = Memo[tuple[AnalyzedQuery, int], AnalyzedQuery](_REMEMBERED)
        """What was typed as the archive of some change knows it: the next page asks it again."""
        self._looked = Memo[_Asked, _Looked](_REMEMBERED)

    def known(self, wording: AnalyzedQuery) -> AnalyzedQuery:
        """What was typed, seen against the whole archive, whatever the filters are: what of it stands word for word.
        In a sentence, what stands nowhere, or nowhere together, is words like the others.
        """
        return self._known.made((wording, self._view.seq), self._as_known)

    def _as_known(self, typed: tuple[AnalyzedQuery, int]) -> AnalyzedQuery:
        wording, _ = typed
        phrases = wording.phrases
        exact = tuple(phrase for phrase in phrases if self._stands(phrase, (phrase,), (phrase,)))
        standing = tuple(phrase for phrase in phrases if phrase in exact or self._stands(phrase, (phrase,)))
        if len(standing) > 1 and not self._stands(wording.text, standing, exact):
            exact = ()
            standing = standing if self._stands(wording.text, standing) else ()
        loosened = tuple(phrase for phrase in phrases if phrase not in standing) if wording.in_sentence else ()
        return replace(
            wording,
            phrases=standing if wording.in_sentence else phrases,
            verbatim=exact,
            reworded=tuple(phrase for phrase in standing if phrase not in exact),
            loosened=loosened,
        )

    def _stands(self, text: str, phrases: tuple[str, ...], exact: tuple[str, ...] = ()) -> bool:
        return len(self.text(AnalyzedQuery(text, phrases, verbatim=exact), Filters(), 1)) > 0

    def text(
        self, wording: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Entries that have all that is quoted; where none has, of what has it across a cut. Of these items alone,
        where some are given.

        None of all there are: else a filter would bring to light what nobody finds without it.
        """
        found = self._whole(wording, filters, limit, among)
        if len(found) or len(self._whole(wording, Filters(), 1)):
            return found
        return self._cuts.text(wording, filters, limit, among, self._whole)

    def _whole(
        self, wording: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Entries that have all that is quoted, each of it in one piece; of the first `_LOOKED_AT` with its words."""
        if not wording.verbatim:
            return self._view.text(wording, filters, limit, among)
        asked = _Asked(wording.verbatim, filters.roles, wording.in_sentence, self._view.seq)
        looked = self._looked.made(asked, _Looked)
        depth = min(max(limit, _AT_FIRST), _LOOKED_AT)
        while True:
            found = self._view.text(wording, filters, depth, among)
            looked.at(self._store, found.key.tolist())
            having = found.where(looked.having(found)).first(limit)
            if len(having) == limit or len(found) < depth or depth == _LOOKED_AT:
                return having
            depth = min(depth * _FURTHER, _LOOKED_AT)


class _Looked:
    """Where what was quoted stands word for word, of the items that were looked at."""

    def __init__(self, asked: _Asked) -> None:
        phrases, self._roles, self._borrowed, _ = asked
        self._patterns = [*map(verbatim, phrases)]
        self._words = [max(WORD.findall(composed(phrase)), key=len, default="").lower() for phrase in phrases]
        """The longest word of each: most texts that have other forms lack it, and looking for it takes no time."""
        self._items, self._spans = set[int](), set[Span]()

    def at(self, store: Store, items: Iterable[int]) -> None:
        """Look at these items as well."""
        new = set(items) - self._items
        self._items |= new
        for key, window in indexed_texts.unlabelled(store, sorted(new), borrowed=self._borrowed):
            if any(map(self._stand, self._said(window))):
                self._spans.add((key, window.start_line, window.end_line))

    def having(self, found: TextMatches) -> Flags:
        """Which of the found entries have all of it."""
        return np.fromiter((span in self._spans for span in found.spans), bool, len(found))

    def _said(self, window: indexed_texts.TextWindow) -> list[str]:
        """What is looked at of a window: where it is asked who said it, of each of these what was theirs."""
        return [text for role, text in window.said if role in self._roles] if self._roles else [window.text]

    def _stand(self, text: str) -> bool:
        plain = composed(text)
        small = plain.lower()
        return all(word in small for word in self._words) and all(each.search(plain) for each in self._patterns)
