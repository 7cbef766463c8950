"""Snippets: the stretch of what was said in which a query's words stand."""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ...archiver.files.clipping import one_line
from ..index.snapshot import Snapshot
from ..query import tokenizer
from ..query.query_analysis import WORD, AnalyzedQuery

LENGTH = 300
_SAID, _BEFORE = 2_000, 100
"""Characters that are looked through for the words found; how many of those before them are shown."""
_SHORT = 2
"""Terms of so few letters are not worth showing."""
_NO_WORD_BEFORE = r"(?<![^\W_])"


class Sought(Struct, frozen=True):
    """What was looked for: terms with how many entries have them, and phrases, of which some are `verbatim`."""

    terms: Mapping[str, int] = field(default_factory=dict[str, int])
    phrases: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = None
    verbatim: tuple[str, ...] = ()
    _known: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Which of the terms are in each word that was looked at: hits repeat words."""

    @classmethod
    def of(cls, wording: AnalyzedQuery, view: Snapshot) -> "Sought":
        """What a wording means in an archive."""
        terms = [term for term in tokenizer.terms(wording.text) if len(term) > _SHORT or not term.isascii()]
        return cls(
            {term: view.having(term) for term in terms},
            wording.phrases,
            tokenizer.forms(terms) if terms else None,
            wording.verbatim,
        )

    def words(self, text: str) -> dict[str, int]:
        """What was found, as it stands in a text, with how many entries have it: words, and phrases with 0, which come
        first. Beside a phrase its words count no more.
        """
        stand = {said: 0 for phrase in self.phrases for said in self._standing(phrase, text)}
        quoted = {term for phrase in self.phrases for term in tokenizer.terms(phrase)} if stand else set[str]()
        found = {word: self._terms_in(word) - quoted for word in self._forms.findall(text)} if self._forms else {}
        return stand | {word: min(map(self.terms.__getitem__, terms)) for word, terms in found.items() if terms}

    def _place(self, said: str) -> int:
        """Where what is shown first of a text stands in it."""
        exact = filter(None, (tokenizer.verbatim(phrase).search(said) for phrase in self.verbatim))
        if place := next((stands.start() for stands in exact), None):
            return place
        found = self.words(said)
        return said.find(min(found, key=found.__getitem__)) if found else 0

    def stands(self, text: str) -> bool:
        """Whether any of what was quoted stands in a text."""
        return any(next(self._standing(phrase, text), None) for phrase in self.phrases)

    def _standing(self, phrase: str, text: str) -> Iterator[str]:
        """A phrase as it stands in a text; with other endings and signs only where it need not, or does not there."""
        exact = tokenizer.verbatim(phrase).findall(text) if phrase in self.verbatim else []
        return iter(exact) if exact else _standing(phrase, text)

    def _terms_in(self, word: str) -> frozenset[str]:
        if word not in self._known:
            self._known[word] = frozenset(self.terms).intersection(tokenizer.stems(tokenizer.expand(word)))
        return self._known[word]

    def snippet(self, texts: Sequence[str]) -> str:
        """Where a phrase stands in these texts, else the rarest word."""
        whole = " ".join(texts)
        # A phrase is looked for wherever it stands, as it is what was asked for.
        said = one_line(whole, len(whole)) if self.phrases else one_line(whole[: 2 * _SAID], _SAID)
        start = _beginning(said, self._place(said))
        shown = one_line(said[start:], LENGTH)
        return f"…{shown}" if start else shown


def _standing(phrase: str, text: str) -> Iterator[str]:
    """A phrase as it stands in a text, with other endings and signs, too."""
    wanted = tokenizer.stems(tokenizer.spaced(phrase))
    stands = (found[0] for found in _forms(phrase).finditer(text)) if wanted else ()
    return (said for said in stands if tokenizer.stems(tokenizer.spaced(said)) == wanted)


def _forms(phrase: str) -> re.Pattern[str]:
    """What may be a phrase: its words, each with any ending, and signs between them. Whatever matches does so in one
    way, so that a long phrase takes no longer to miss.
    """
    words = (rf"{_NO_WORD_BEFORE}{_begun(word)}[^\W_]*" if word.isascii() else word for word in WORD.findall(phrase))
    return re.compile(r"[\W_]+".join(words), re.IGNORECASE)


def _begun(word: str) -> str:
    """What a word begins with, whatever its ending."""
    begun = word.lower()
    for stem in tokenizer.stems(word):
        begun = next(begun[:end] for end in range(len(begun), -1, -1) if stem.startswith(begun[:end]))
    return begun


def _beginning(said: str, place: int) -> int:
    """Where what is shown of a place begins: with a word, where there are blanks to tell words by."""
    early = place - _BEFORE
    if early <= 0:
        return 0
    blank = said.rfind(" ", max(early - _BEFORE, 0), early)
    if blank < 0:
        blank = said.find(" ", early, place)
    return blank + 1 or early
