"""Query analysis: words, quoted phrases, prefixes and time expressions. There is no query language."""

import math
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import day_end, day_start
from ...core.results import Correction, TimeExpression
from ...core.time_expressions import extract

WORD = re.compile(r"[^\W_]+")
"""A word, without the punctuation that joins names."""
SENTENCE = 4
"""Words outside quotes from which on a query is a sentence, in which a quoted phrase may be inexact."""
_QUOTED = re.compile(r'"([^"]*\w[^"]*)"|“([^”]*\w[^”]*)”')
_QUOTES = re.compile(r'["“”]')
_PUNCTUATION = ".,:;!?()[]`'"
_PREFIX = re.compile(r"(?<!\S)(\w{2,})\*(?!\S)")
_NAME = re.compile(r"(?=\S*\w[^\w\s]+\w|\S*\w_\w)\S+")
"""A path, error code, version or id: no spaces, and punctuation between word characters."""
_FEW_TERMS, _MANY_TERMS = 6, 12


def shortness(terms: int) -> float:
    """Return how much shorter than a dozen terms a query is: 0 to 0.48, and small until it is much shorter."""
    return math.log(_MANY_TERMS / min(max(terms, _FEW_TERMS), _MANY_TERMS)) ** 2


class AnalyzedQuery(Struct, frozen=True):
    """A query taken apart. `Snapshot.resolve` and `ExactPhrases.resolve` add what needs the index.

    Attributes:
        text: All words.
        phrases: Quoted phrases; each must match, or nothing is found.
        name: The query, if it is a single name. It becomes a phrase if it occurs anywhere.
        prefixes: Words with a trailing `*`, which match each word with this beginning.
        corrections: Unknown words that `text` has in a similar, known spelling.
        all_known: True if each term occurs in the index.
        no_known_term: True if no term of a query that is no sentence occurs in the index.
        shortness: 0 for a dozen terms, up to 0.48 for six or fewer; less in a small archive.
        in_sentence: True if at least `SENTENCE` words stand outside quotes.
        exact: Phrases that must match word for word.
        inexact: Phrases that match only with other forms of their words.
        relaxed: Phrases of a sentence without any match, searched as words.
        times: Time expression, which is not part of `text`; one at most for each concept.
        empty_times: Time expression without any entry in its range, searched as words.
    """

    text: str
    phrases: tuple[str, ...] = ()
    name: str = ""
    prefixes: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    all_known: bool = False
    no_known_term: bool = False
    shortness: float = 0.0
    in_sentence: bool = False
    exact: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    empty_times: tuple[TimeExpression, ...] = ()

    @classmethod
    def of(cls, query: str, *, dated: bool = False) -> "AnalyzedQuery":
        """Analyze a query; with `dated`, including its time expression."""
        outside_quotes = len(_QUOTED.sub(" ", query).split())
        times: tuple[TimeExpression, ...] = ()
        if dated and (found := extract(query)):
            query, said, (first, last) = found
            times = (TimeExpression(said, day_start(first.isoformat()), day_end(last.isoformat())),)
        phrases = tuple(one or other for one, other in _QUOTED.findall(query))
        return cls(
            _PREFIX.sub(r"\1", query),
            phrases,
            query if not phrases and _NAME.fullmatch(query) else "",
            tuple(_PREFIX.findall(query)),
            in_sentence=outside_quotes >= SENTENCE,
            times=times,
        )

    def corrected(self, corrections: Sequence[Correction]) -> "AnalyzedQuery":
        """Return the query with misspelled words replaced."""
        if not corrections:
            return self
        known = dict(corrections)
        text = WORD.sub(lambda found: known.get(found[0], found[0]), self.text)
        return replace(self, text=text, corrections=tuple(corrections))

    @property
    def words(self) -> list[str]:
        """Distinct words without surrounding punctuation, and without those of an empty time expression."""
        times = {word for each in self.empty_times for word in each.text.split()}
        words = (word.strip(_PUNCTUATION) for word in unquoted(self.text).split())
        return [word for word in dict.fromkeys(words) if word and word not in times]


def unquoted(query: str) -> str:
    """Return a query without its quotation marks."""
    return " ".join(_QUOTES.sub(" ", query).split())
