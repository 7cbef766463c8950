"""What a person typed, taken apart: words, quoted phrases, beginnings of words. It is never parsed as a language."""

import math
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.results import Correction, TimeExpression

WORD = re.compile(r"[^\W_]+")
"""A word of any text, without the signs that hold names together."""
_QUOTED = re.compile(r'"([^"]*\w[^"]*)"|“([^”]*\w[^”]*)”')
_DATED = re.compile(
    r"day\b|\b(?:days|week|month|quarter|year|(?:19|20)\d\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
"""What every query that names a period has; most have none, and need not know how people say dates."""
_QUOTES = re.compile(r'["“”]')
_AROUND = ".,:;!?()[]`'"
"""Signs at the ends of a word that are none of it."""
_BEGINNING = re.compile(r"(?<!\S)(\w{2,})\*(?!\S)")
_NAME = re.compile(r"(?=\S*\w[^\w\s]+\w|\S*\w_\w)\S+")
"""A path, an error code, a version, an id: one piece without spaces in which signs hold words together."""


SENTENCE = 4
"""Words around what is quoted from which on it is part of a sentence, and may be told from memory like the rest."""
_FEW_TERMS, _MANY_TERMS = 6, 12


def brevity(terms: int) -> float:
    """How much shorter than a dozen terms a query is: 0 to 0.48, and little until it is much shorter."""
    return math.log(_MANY_TERMS / min(max(terms, _FEW_TERMS), _MANY_TERMS)) ** 2


class AnalyzedQuery(Struct, frozen=True):
    """`text` are all words. Each of `phrases`, which were quoted, must stand, or nothing is found: those that are
    `verbatim` word for word, those that are `reworded`, since nothing has them so, in other forms of their words.
    In a sentence, phrases that stand nowhere, or nowhere together, are `loosened`: only words. Which is which is known
    to the archive alone (`Quotations.known`). `beginnings` find every word that begins so.

    A `name` that is all that was typed is such a phrase if it stands anywhere, else words: that, and which words stand
    nowhere, is known to the archive alone (`Snapshot.settled`). `respelled` are words that stand nowhere, instead of
    which `text` has others that are spelled much like them; `complete` is whether no term of it stands nowhere,
    `unheard` whether all do, of what is no sentence. `brevity` is 0 for a dozen terms and grows to 0.48 for six or
    fewer; in a small archive less. `occasions` are no words any more: one at most, and of several concepts the one of
    each. Those of which there is nothing are `vacant`, and words like the others.
    """

    text: str
    phrases: tuple[str, ...] = ()
    name: str = ""
    beginnings: tuple[str, ...] = ()
    respelled: tuple[Correction, ...] = ()
    complete: bool = False
    unheard: bool = False
    brevity: float = 0.0
    in_sentence: bool = False
    verbatim: tuple[str, ...] = ()
    reworded: tuple[str, ...] = ()
    loosened: tuple[str, ...] = ()
    occasions: tuple[TimeExpression, ...] = ()
    vacant: tuple[TimeExpression, ...] = ()

    @classmethod
    def of(cls, typed: str, *, dated: bool = False) -> "AnalyzedQuery":
        """What was typed. A name alone, such as a path or an error code, is wanted as it stands. In a `dated` one it is
        looked for a period.
        """
        around = len(_QUOTED.sub(" ", typed).split())
        occasion = None
        if dated and _DATED.search(typed):
            from .query_dates import taken_out

            typed, occasion = taken_out(typed)
        phrases = tuple(one or other for one, other in _QUOTED.findall(typed))
        name = typed if not phrases and _NAME.fullmatch(typed) else ""
        words, beginnings = _BEGINNING.sub(r"\1", typed), tuple(_BEGINNING.findall(typed))
        return cls(
            words, phrases, name, beginnings, in_sentence=around >= SENTENCE, occasions=(occasion,) if occasion else ()
        )

    def instead(self, respelled: Sequence[Correction]) -> "AnalyzedQuery":
        """With other words in the place of those that are misspelled."""
        if not respelled:
            return self
        known = dict(respelled)
        text = WORD.sub(lambda found: known.get(found[0], found[0]), self.text)
        return replace(self, text=text, respelled=tuple(respelled))

    @property
    def asked(self) -> list[str]:
        """Its words, each once, without the signs around them, and without those of a vacant period."""
        when = {word for each in self.vacant for word in each.text.split()}
        words = (word.strip(_AROUND) for word in unquoted(self.text).split())
        return [word for word in dict.fromkeys(words) if word and word not in when]


def unquoted(typed: str) -> str:
    """The same words, wherever they stand."""
    return " ".join(_QUOTES.sub(" ", typed).split())
