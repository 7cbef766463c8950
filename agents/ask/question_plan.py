"""Plan of the searches for a question."""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.observation import ObservationType
from ...core.query import Filters, Query

_WORD: Final = re.compile(r"[\w./#@-]*\w")
_EMPTY: Final = frozenset(
    "a an the of to and or nor but for from with without in on at by as into onto over via per is are was were be been"
    " that which who when where why how what while if then than so it its this these those not no do does did has have"
    " had can will would should could must may might both all any each such their our my his her we you they i me us"
    " there here about again ever get got make made use used using want need way".split()
)
"""Words that say nothing about the topic of a question."""
_OF_KIND: Final = 3
"""Maximum hits of the searches for decisions and for fixes."""


class QuestionPlan(Struct, frozen=True):
    """Searches for a question.

    Attributes:
        question: Search for the question as it was asked. Without a hit, the other searches are left out.
        terms: Search for the key terms of the question, or None if the question has no other words.
        kinds: Searches for decisions and for fixes.
    """

    question: Query
    terms: Query | None
    kinds: tuple[Query, ...]


def plan(question: str, filters: Filters, here: str = "") -> QuestionPlan:
    """Return the searches for a question. The entries of the project `here` rank higher.

    Raises:
        InvalidInput: The question is too short.
    """
    asked = replace(Query.parse(question), filters=filters)
    if asked.prefers_project:
        asked = replace(asked, here=here)
    words = " ".join(key_words(question))
    terms = replace(asked, concepts=(words,)) if len(words) > 1 and words != question.strip() else None
    kinds = ((ObservationType.DECISION,), (ObservationType.BUG_FIX, ObservationType.DEBUG))
    return QuestionPlan(
        asked, terms, tuple(replace(asked, limit=_OF_KIND, filters=replace(filters, types=each)) for each in kinds)
    )


def key_words(question: str) -> list[str]:
    """Return the words of a question that say something about its topic."""
    return [word for word in _WORD.findall(question) if word.lower() not in _EMPTY]
