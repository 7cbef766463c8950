"""Relevance of a text to a question, computed from the words that both contain."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from .tokenizer import terms

_WORD: Final = re.compile(r"[\w./#@-]*\w")
_EMPTY: Final = frozenset(
    "a an the of to and or nor but for from with without in on at by as into onto over via per is are was were be"
    " been that which who when where why how what while if then than so it its this these those not no do does did"
    " has have had can will would should could must may might both all any each such their our my his her we you"
    " they i me us there here about again ever vs versus happen happens say says said much many couldn didn doesn"
    " isn wasn weren get got make made use used using want need way s t".split()
)
"""Words that say nothing about the topic of a question."""
_EITHER: Final = re.compile(r"([\w./#@-]*\w)\s+(?:or|vs\.?|versus)\s+(?:an?\s+|the\s+)?([\w./#@-]*\w)", re.IGNORECASE)
"""Pattern for two alternatives."""


def key_words(question: str) -> list[str]:
    """Return the words of a question without words such as "the", "how" or "did", which name no topic."""
    return [word for word in _WORD.findall(question) if word.lower() not in _EMPTY]


def alternatives(question: str) -> list[list[str]]:
    """Return the key words of a question, each in a group with its alternatives, as in "sqlite or json"."""
    groups = [[word] for word in key_words(question)]
    for pair in _EITHER.finditer(question):
        first, second = ([group for group in groups if word in group] for word in pair.groups())
        if first and second and first != second:
            first[0].extend(second[0])
            groups.remove(second[0])
    return groups


class Relevance:
    """Weighted share of a question's words in a text. Words that are rare in the compared texts weigh more.

    With `every_word`, words such as "the" count too, because an error message may contain little else.
    """

    def __init__(self, question: str, compared: Iterable[str], *, every_word: bool = False) -> None:
        self._wanted = frozenset(terms(question if every_word else " ".join(key_words(question)) or question))
        texts = [frozenset(terms(text)) for text in compared]
        found = Counter(term for text in texts for term in text & self._wanted)
        self._found = frozenset(found)
        self._weights = {term: math.log(1 + (len(texts) + 1) / (found[term] + 0.5)) for term in self._wanted}
        self._total = sum(self._weights.values()) or 1.0

    def share(self, text: str) -> float:
        """Return the weighted share of the question's words that a text contains, 0 to 1."""
        return self.share_of(frozenset(terms(text)))

    def contains(self, word: str, text: str) -> bool:
        """Return whether a text contains a word, or at least half of the parts of a compound word."""
        own = frozenset(terms(word))
        return 2 * len(own & frozenset(terms(text))) >= len(own)

    def gain(self, text: str, known: Sequence[str]) -> float:
        """Return the weighted share of the question's words that a text adds to the known texts.

        Words that the known texts already contain count one tenth.
        """
        shown = frozenset(term for each in known for term in terms(each))
        own = frozenset(terms(text))
        return self.share_of(own - shown) + self.share_of(own & shown) / 10

    def unknown(self, question: str, *others: str) -> list[str]:
        """Return the key words of the question that are missing from the compared texts and from the other texts."""
        words = dict.fromkeys(key_words(question))
        found = self._found.union(*map(terms, others))
        return [word for word in words if (own := frozenset(terms(word))) and not own & found]

    def share_of(self, found: frozenset[str]) -> float:
        """Return the weighted share of the question's words that a set of terms contains, 0 to 1."""
        return sum(self._weights[term] for term in found & self._wanted) / self._total


def repeats(text: str, known: Iterable[str], share: float = 0.7) -> bool:
    """Return whether one of the known texts contains at least the given share of the text's words."""
    own = frozenset(terms(text))
    return any(len(own & frozenset(terms(each))) >= share * len(own) for each in known)
