"""Snippets: the stretch of what was said in which a query's words stand."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ..archiver.parse.text import one_line
from . import analysis
from .snapshot import Snapshot
from .wording import WORD, Wording

LENGTH = 300
_SAID, _BEFORE = 2_000, 100
"""Characters that are looked through for the words found; how many of those before them are shown."""
_SHORT = 2
"""Terms of so few letters are not worth showing."""


class Sought(Struct, frozen=True):
    """What was looked for: terms with how many entries have them, and phrases."""

    terms: Mapping[str, int] = field(default_factory=dict[str, int])
    phrases: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = None
    _known: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    """How many entries have each word that was looked at, None where none of the terms is in it: hits repeat words."""

    @classmethod
    def of(cls, wording: Wording, view: Snapshot) -> "Sought":
        """What a wording means in an archive."""
        terms = [term for term in view.terms(wording.text) if len(term) > _SHORT or not term.isascii()]
        return cls(
            {term: view.having(term) for term in terms}, wording.phrases, analysis.forms(terms) if terms else None
        )

    def words(self, text: str) -> dict[str, int]:
        """The words found, as they stand in a text, with how many entries have them."""
        if self._forms is None:
            return {}
        found = {word: self._having(word) for word in self._forms.findall(text)}
        return {word: having for word, having in found.items() if having is not None}

    def _having(self, word: str) -> int | None:
        if word not in self._known:
            known = self.terms.keys() & set(analysis.stems(analysis.expand(word)))
            self._known[word] = min((self.terms[term] for term in known), default=None)
        return self._known[word]

    def snippet(self, texts: Sequence[str]) -> str:
        """Where a phrase stands in these texts, else the rarest word."""
        said = one_line(" ".join(texts)[: 2 * _SAID], _SAID)
        start = _beginning(said, self._first(said))
        shown = one_line(said[start:], LENGTH)
        return f"…{shown}" if start else shown

    def _first(self, said: str) -> int:
        for phrase in self.phrases:
            words = map(re.escape, WORD.findall(phrase))
            if stands := re.search(r"\w*[\W_]+".join(words), said, re.IGNORECASE):
                return stands.start()
        found = self.words(said)
        return said.find(min(found, key=found.__getitem__)) if found else 0


def _beginning(said: str, place: int) -> int:
    """Where what is shown of a place begins: with a word, where there are blanks to tell words by."""
    early = place - _BEFORE
    if early <= 0:
        return 0
    blank = said.rfind(" ", max(early - _BEFORE, 0), early)
    if blank < 0:
        blank = said.find(" ", early, place)
    return blank + 1 or early
