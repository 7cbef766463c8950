"""Queries that search for the answer to a question."""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import InvalidInput
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
"""Maximum number of hits of the search for decisions, and of the search for fixes."""


class QuestionPlan(Struct, frozen=True):
    """Queries for one question.

    Attributes:
        question: Query with the question as it was asked. If it has no hit, the other queries are not run.
        terms: Query with only the key terms, or None if there are none or the question consists of them.
        kinds: Query for decisions and query for fixes.
    """

    question: Query
    terms: Query | None
    kinds: tuple[Query, ...]


def plan(question: str, filters: Filters, here: str = "") -> QuestionPlan:
    """Return the queries for a question. Entries of the project `here` rank higher.

    Raises:
        InvalidInput: The question is too short, or none of its words names a topic.
    """
    asked = replace(Query.parse(question), filters=filters)
    if not key_words(question):
        raise InvalidInput("The question names no topic", hint="Name a subject, a file, a command or an error message.")
    if asked.prefers_project:
        asked = replace(asked, here=here)
    words = " ".join(key_words(question))
    terms = replace(asked, concepts=(words,)) if len(words) > 1 and words != question.strip() else None
    kinds = ((ObservationType.DECISION,), (ObservationType.BUG_FIX, ObservationType.DEBUG))
    return QuestionPlan(
        asked, terms, tuple(replace(asked, limit=_OF_KIND, filters=replace(filters, types=each)) for each in kinds)
    )


def key_words(question: str) -> list[str]:
    """Return the words of a question without words such as "the", "how" or "did", which name no topic."""
    return [word for word in _WORD.findall(question) if word.lower() not in _EMPTY]
