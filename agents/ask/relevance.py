"""Relevance of a sentence to a question, computed from the words that both contain."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from ...search.query.tokenizer import terms
from .question_plan import key_words


class Relevance:
    """Weighted share of a question's words in a text. Words that are rare in the compared texts weigh more."""

    def __init__(self, question: str, compared: Iterable[str]) -> None:
        self._wanted = frozenset(terms(" ".join(key_words(question)) or question))
        texts = [frozenset(terms(text)) for text in compared]
        found = Counter(term for text in texts for term in text & self._wanted)
        self._found = frozenset(found)
        self._weights = {term: math.log(1 + (len(texts) + 1) / (found[term] + 0.5)) for term in self._wanted}
        self._total = sum(self._weights.values()) or 1.0

    def share(self, text: str) -> float:
        """Return the weighted share of the question's words that a text contains, 0 to 1."""
        return self._sum(frozenset(terms(text)))

    def common(self, one: str, other: str) -> float:
        """Return the weighted share of the question's words that both texts contain, 0 to 1."""
        return self._sum(frozenset(terms(one)) & frozenset(terms(other)))

    def gain(self, text: str, known: Sequence[str]) -> float:
        """Return the weighted share of the question's words that a text adds to the known texts.

        Words that the known texts already contain count one tenth.
        """
        shown = frozenset(term for each in known for term in terms(each))
        own = frozenset(terms(text))
        return self._sum(own - shown) + self._sum(own & shown) / 10

    def unknown(self, question: str, *others: str) -> list[str]:
        """Return the key words of the question that are missing from the compared texts and from the other texts."""
        words = dict.fromkeys(key_words(question))
        found = self._found.union(*map(terms, others))
        return [word for word in words if (own := frozenset(terms(word))) and not own & found]

    def _sum(self, found: frozenset[str]) -> float:
        return sum(self._weights[term] for term in found & self._wanted) / self._total


def repeats(text: str, known: Iterable[str], share: float = 0.7) -> bool:
    """Return whether one of the known texts contains at least the given share of the text's words."""
    own = frozenset(terms(text))
    return any(len(own & frozenset(terms(each))) >= share * len(own) for each in known)
