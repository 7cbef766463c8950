"""Search for quoted phrases: literal matches, or else matches with other forms of the same words.

The text index contains stems without punctuation. Its best matches are therefore compared with the stored text.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.memo import Memo
from ...core.query import Filters
from ..index.indexed_texts import TextWindow, entry_windows
from ..index.matches import Flags, Span, TextMatches
from ..index.snapshot import Snapshot
from ..query.query_analysis import WORD, AnalyzedQuery
from ..query.tokenizer import composed, literal_pattern

_MOST, _FIRST = 2_000, 50
"""Maximum and initial number of candidates to compare. Comparing the maximum takes 0.1 s."""
_GROWTH = 4
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

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self._store, self._snapshot = store, snapshot
        self._resolved = Memo[tuple[AnalyzedQuery, int], AnalyzedQuery](_REMEMBERED)
        self._compared = Memo[_Key, _PhraseMatches](_REMEMBERED)

    def resolve(self, query: AnalyzedQuery) -> AnalyzedQuery:
        """Classify each quoted phrase as exact, inexact or relaxed (see `AnalyzedQuery`), regardless of filters."""
        return self._resolved.get_or_make((query, self._snapshot.seq), self._resolve)

    def _resolve(self, key: tuple[AnalyzedQuery, int]) -> AnalyzedQuery:
        query, _ = key
        exact = tuple(phrase for phrase in query.phrases if self._occurs(phrase, (phrase,), (phrase,)))
        known = tuple(phrase for phrase in query.phrases if phrase in exact or self._occurs(phrase, (phrase,)))
        if len(known) > 1 and not self._occurs(query.text, known, exact):
            exact = ()
            known = known if self._occurs(query.text, known) else ()
        return replace(
            query,
            phrases=known if query.in_sentence else query.phrases,
            exact=exact,
            inexact=tuple(phrase for phrase in known if phrase not in exact),
            relaxed=tuple(phrase for phrase in query.phrases if phrase not in known) if query.in_sentence else (),
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
            found = self._snapshot.text(query, filters, depth, among)
            compared.add(self._store, found.key.tolist())
            matching = found.where(compared.matching(found)).first(limit)
            if len(matching) == limit or len(found) < depth or depth == _MOST:
                return matching
            depth = min(depth * _GROWTH, _MOST)


class _PhraseMatches:
    """Cache of the items that were searched, and of the entry locations whose text contains all phrases literally."""

    def __init__(self, key: _Key) -> None:
        self._key, self._patterns = key, [*map(literal_pattern, key.phrases)]
        # Check the longest word of each phrase first. This is fast, and few inexact candidates contain it.
        self._words = [max(WORD.findall(composed(phrase)), key=len, default="").lower() for phrase in key.phrases]
        self._items, self._spans = set[int](), set[Span]()

    def add(self, store: Store, items: Iterable[int]) -> None:
        """Search for the phrases in the items that are not in the cache."""
        new = set(items) - self._items
        self._items |= new
        for key, window in entry_windows(store, sorted(new), with_context=self._key.with_context):
            if any(map(self._matches, self._texts(window))):
                self._spans.add((key, window.start_line, window.end_line))

    def matching(self, found: TextMatches) -> Flags:
        """Return a flag per entry of `found`: True if the entry contains all phrases."""
        return np.fromiter((span in self._spans for span in found.spans), bool, len(found))

    def _texts(self, window: TextWindow) -> list[str]:
        roles = self._key.roles
        return [text for role, text in window.said if role in roles] if roles else [window.text]

    def _matches(self, text: str) -> bool:
        plain = composed(text)
        small = plain.lower()
        return all(word in small for word in self._words) and all(each.search(plain) for each in self._patterns)
