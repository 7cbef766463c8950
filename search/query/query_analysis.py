"""Query analysis: words, quoted phrases, prefixes and time expressions. No other syntax is supported."""

import math
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import day_end, day_start
from ...core.results import Correction, TimeExpression
from ...core.time_expressions import extract

WORD = re.compile(r"[^\W_]+")
"""Pattern of a word. Punctuation separates words, even inside a name."""
SENTENCE = 4
"""Minimum number of words outside quotes that make a query a sentence. Its quoted phrases may match inexactly."""
_QUOTED = re.compile(r'"([^"]*\w[^"]*)"|“([^”]*\w[^”]*)”')
_QUOTES = re.compile(r'["“”]')
_PUNCTUATION = ".,:;!?()[]`'"
_PREFIX = re.compile(r"(?<!\S)(\w{2,})\*(?!\S)")
_NAME = re.compile(r"(?=\S*\w[^\w\s]+\w|\S*\w_\w)\S+")
"""Pattern of a path, error code, version or ID: no whitespace, and punctuation between word characters."""
_FEW_TERMS, _MANY_TERMS = 6, 12


def shortness(terms: int) -> float:
    """Return a measure of how much shorter than 12 terms a query is.

    The value is 0 for 12 or more terms and 0.48 for 6 or fewer terms. Each missing term adds more than the one before.
    """
    return math.log(_MANY_TERMS / min(max(terms, _FEW_TERMS), _MANY_TERMS)) ** 2


class AnalyzedQuery(Struct, frozen=True):
    """Parts of a query. `Snapshot.resolve` and `ExactPhrases.resolve` add the attributes that depend on the index.

    Attributes:
        text: All words, including quoted words.
        phrases: Quoted phrases. An entry must contain each of these phrases.
        name: The whole query if it is a single name. A name that occurs in the index becomes a phrase.
        prefixes: Words with a trailing `*`. A prefix matches every word that begins with it.
        corrections: Unknown words, and the similar known words that replace them in `text`.
        all_known: True if each term occurs in the index.
        no_known_term: True if the query is not a sentence and none of its terms occurs in the index.
        shortness: Result of `shortness` for the query, reduced in a small archive.
        archive_size: Size of the archive: its number of entries divided by 1,000, at most 1.
        in_sentence: True if at least `SENTENCE` words are outside quotes.
        exact: Phrases that must match literally.
        inexact: Phrases that match only with other forms of their words.
        relaxed: Phrases without a match, if the query is a sentence. Their words are searched separately.
        times: Time expressions, which are not part of `text`. At most one per concept.
        empty_times: Time expressions whose date range contains no entry. They are searched as words.
    """

    text: str
    phrases: tuple[str, ...] = ()
    name: str = ""
    prefixes: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    all_known: bool = False
    no_known_term: bool = False
    shortness: float = 0.0
    archive_size: float = 0.0
    in_sentence: bool = False
    exact: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    empty_times: tuple[TimeExpression, ...] = ()

    @classmethod
    def of(cls, query: str, *, dated: bool = False) -> "AnalyzedQuery":
        """Return the analyzed query. With `dated`, recognise a time expression."""
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

    @classmethod
    def joined(cls, wordings: Sequence["AnalyzedQuery"]) -> "AnalyzedQuery":
        """Combine several wordings of a query into one query. All wordings must have the same phrases."""
        first, *others = wordings
        if not others:
            return first
        texts = dict.fromkeys(each.text for each in wordings)
        return replace(
            first,
            text=" ".join(texts),
            corrections=tuple(dict.fromkeys(one for each in wordings for one in each.corrections)),
            all_known=all(each.all_known for each in wordings),
            no_known_term=all(each.no_known_term for each in wordings),
            shortness=sum(each.shortness for each in wordings) / len(wordings),
            times=next((each.times for each in wordings if each.times), ()),
            empty_times=next((each.empty_times for each in wordings if each.empty_times), ()),
        )

    def corrected(self, corrections: Sequence[Correction]) -> "AnalyzedQuery":
        """Return the query with misspelled words replaced by their corrections."""
        if not corrections:
            return self
        known = dict(corrections)
        text = WORD.sub(lambda found: known.get(found[0], found[0]), self.text)
        return replace(self, text=text, corrections=tuple(corrections))

    @property
    def words(self) -> list[str]:
        """Distinct words without surrounding punctuation and without words of empty time expressions."""
        times = {word for each in self.empty_times for word in each.text.split()}
        words = (word.strip(_PUNCTUATION) for word in unquoted(self.text).split())
        return [word for word in dict.fromkeys(words) if word and word not in times]


def unquoted(query: str) -> str:
    """Return a query without its quotation marks."""
    return " ".join(_QUOTES.sub(" ", query).split())
