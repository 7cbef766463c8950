"""Snippets of hits: the text around the terms and phrases of a query, which they mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from ...archiver.lines import one_line
from ..query import tokenizer
from ..query.query_analysis import WORD, AnalyzedQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..rank.candidates import Candidates

LENGTH = 300
"""Maximum number of characters of a snippet."""
_SEARCHED, _BEFORE = 2_000, 100
"""Maximum number of characters of a text in which words are searched, and of characters shown before a match."""
_SHORT = 2
"""Maximum length of ASCII terms that are too short to be highlighted as matches."""
_NO_WORD_BEFORE = r"(?<![^\W_])"


class SearchTerms(Struct, frozen=True):
    """Terms of a query with their entry counts, and quoted phrases. Phrases in `exact` match literally."""

    terms: Mapping[str, int] = field(default_factory=dict[str, int])
    phrases: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = None
    exact: tuple[str, ...] = ()
    _known: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Cache of the query terms that a word contains, by word. Hits often contain the same words."""

    @classmethod
    def of(cls, query: AnalyzedQuery, snapshot: Candidates) -> SearchTerms:
        """Return the terms of a query with the number of entries that contain each term."""
        terms = [term for term in tokenizer.terms(query.text) if len(term) > _SHORT or not term.isascii()]
        return cls(
            {term: snapshot.entries_with(term) for term in terms},
            query.phrases,
            tokenizer.forms(terms) if terms else None,
            query.exact,
        )

    def words(self, text: str) -> dict[str, int]:
        """Return the matching phrases and words in a text, each with its entry count. Phrases have the count 0."""
        phrases = {match: 0 for phrase in self.phrases for match in self._occurrences(phrase, text)}
        quoted = {term for phrase in self.phrases for term in tokenizer.terms(phrase)} if phrases else set[str]()
        terms_by_word = (
            {word: self._terms_in(word) - quoted for word in self._forms.findall(text)} if self._forms else {}
        )
        return phrases | {
            word: min(map(self.terms.__getitem__, terms)) for word, terms in terms_by_word.items() if terms
        }

    def has_phrase(self, text: str) -> bool:
        """Return whether a text contains any of the phrases."""
        return any(next(self._occurrences(phrase, text), None) for phrase in self.phrases)

    def snippet(self, texts: Sequence[str]) -> str:
        """Return the text around the first phrase, or else around the rarest matching word."""
        joined = " ".join(texts)
        # Phrases are searched in the whole text, words only at the beginning.
        text = one_line(joined, len(joined)) if self.phrases else one_line(joined[: 2 * _SEARCHED], _SEARCHED)
        start = _beginning(text, self._best_position(text))
        excerpt = one_line(text[start:], LENGTH)
        return f"…{excerpt}" if start else excerpt

    def _best_position(self, text: str) -> int:
        """Return the position of the best match in a text."""
        exact = filter(None, (tokenizer.literal_pattern(phrase).search(text) for phrase in self.exact))
        if position := next((match.start() for match in exact), None):
            return position
        counts = self.words(text)
        return text.find(min(counts, key=counts.__getitem__)) if counts else 0

    def _occurrences(self, phrase: str, text: str) -> Iterator[str]:
        """Yield the occurrences of a phrase in a text. Without a literal match, yield inexact occurrences."""
        exact = tokenizer.literal_pattern(phrase).findall(text) if phrase in self.exact else []
        return iter(exact) if exact else _inexact_occurrences(phrase, text)

    def _terms_in(self, word: str) -> frozenset[str]:
        if word not in self._known:
            self._known[word] = frozenset(self.terms).intersection(tokenizer.stems(tokenizer.expand(word)))
        return self._known[word]


def _inexact_occurrences(phrase: str, text: str) -> Iterator[str]:
    """Yield the occurrences of a phrase in a text, including other word endings and punctuation."""
    stems = tokenizer.stems(tokenizer.spaced(phrase))
    matches = (occurrence[0] for occurrence in _forms(phrase).finditer(text)) if stems else ()
    return (match for match in matches if tokenizer.stems(tokenizer.spaced(match)) == stems)


def _forms(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches a phrase with any word endings and any punctuation between words.

    A text can match in only one way, so a long phrase does not cause backtracking.
    """
    words = (
        rf"{_NO_WORD_BEFORE}{_common_prefix(word)}[^\W_]*" if word.isascii() else word for word in WORD.findall(phrase)
    )
    return re.compile(r"[\W_]+".join(words), re.IGNORECASE)


def _common_prefix(word: str) -> str:
    """Return the prefix that all inflected forms of a word share."""
    prefix = word.lower()
    for stem in tokenizer.stems(word):
        prefix = next(prefix[:end] for end in range(len(prefix), -1, -1) if stem.startswith(prefix[:end]))
    return prefix


def _beginning(text: str, position: int) -> int:
    """Return the start of an excerpt around `position`. It is the start of a word if the text contains spaces."""
    early = position - _BEFORE
    if early <= 0:
        return 0
    blank = text.rfind(" ", max(early - _BEFORE, 0), early)
    if blank < 0:
        blank = text.find(" ", early, position)
    return blank + 1 or early
