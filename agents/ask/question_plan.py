"""Queries that search for the answer to a question."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import InvalidInput
from ...core.observation import ObservationType
from ...core.query import Filters, Query
from ...core.time_expressions import extract
from ...search.query.relevance import key_words

_ACTIVITY: Final = frozenset(
    "change changed changes conversation day doing done happen happened last latest most new newest recent recently"
    " session sessions task tasks thing things work worked working".split()
)
"""Words that ask for the activity of a time or project, as in "what did we work on yesterday"."""
_OPEN: Final = frozenset("left next open outstanding pending remaining todo todos undone unfinished".split())
"""Words that ask for open items and next steps, as in "what is still open"."""
_ITEMS: Final = frozenset("item items point points question questions step steps still".split())
_NEWEST: Final = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?"
    r"|last(?= (?:bug|change|commit|conversation|decision|fix|plan|release|session|time)\b))\s*",
    re.IGNORECASE,
)
"""Words that ask for the newest of several matches. `last` can have other meanings, as in "the last line"."""
_HITS: Final = 20
"""Number of hits of the search for the question. A second hit of a session raises the session's rank."""
_FEW: Final = 2
"""Maximum number of key terms for a search of only these terms. With more, the question is searched as it was asked.

The other words of a question would outweigh one or two key terms.
"""
_OF_KIND: Final = 3
"""Maximum number of hits of the search for decisions, and of the search for fixes."""
_KINDS: Final = (
    (
        (ObservationType.DECISION,),
        re.compile(
            r"\b(?:why|deci(?:de|sion)\w*|ch(?:oo|o)se\w*|choice|prefer\w*|agreed?|instead|rather|or|vs|versus|should)\b",
            re.IGNORECASE,
        ),
    ),
    (
        (ObservationType.BUG_FIX, ObservationType.DEBUG),
        re.compile(
            r"\b(?:why|fix\w*|repair\w*|solved?|resolved?|bugs?|\w*errors?|\w*exceptions?|fail\w*|br(?:oke|eak)\w*|crash\w*"
            r"|wrong|issues?|problems?|flaky|stuck|slow)\b",
            re.IGNORECASE,
        ),
    ),
)
"""Types of observations, each with the words of a question that asks for them."""


class QuestionPlan(Struct, frozen=True):
    """Queries for one question.

    Attributes:
        question: Query with the question as it was asked, or with its key terms if there are only one or two. If
            neither it nor the search for documents has a hit, the other queries are not run.
        kinds: Query for decisions, if the question asks for one, and query for fixes, if it asks for one.
    """

    question: Query
    kinds: tuple[Query, ...] = ()


def plan(question: str, filters: Filters, here: str = "", also: Sequence[str] = ()) -> QuestionPlan:
    """Return the queries for a question. Entries of the project `here` rank higher. `also` are other wordings.

    Raises:
        InvalidInput: The question is too short, or none of its words names a topic.
    """
    asked = replace(Query.parse(question, limit=_HITS, also=also), filters=filters)
    words = key_words(question)
    if not words:
        raise InvalidInput("The question names no topic", hint="Name a subject, a file, a command or an error message.")
    if asked.prefers_project:
        asked = replace(asked, here=here)
    terms = " ".join(words)
    # A date is recognised only with the words around it. A number can be part of one.
    if len(words) <= _FEW and len(terms) > 1 and not re.search(r"\d", terms) and not extract(question):
        asked = replace(asked, concepts=(terms,))
    wanted = (types for types, words in _KINDS if words.search(question))
    return QuestionPlan(
        asked, tuple(replace(asked, limit=_OF_KIND, filters=replace(filters, types=types)) for types in wanted)
    )


def without_newest(question: str) -> str:
    """Return the question without words such as "latest", which ask for the newest match and name no topic."""
    return _NEWEST.sub("", question)


def asks_for_newest(question: str) -> bool:
    """Return whether a question asks for the newest of several matches, or for what was done last."""
    return without_newest(question) != question or re.search(r"\blast\W*\Z", question, re.IGNORECASE) is not None


def asks_for_open_items(question: str) -> bool:
    """Return whether a question names no topic, and asks for open items or next steps."""
    words = {word.lower() for word in key_words(question)}
    return not words.isdisjoint(_OPEN) and words <= _OPEN | _ITEMS | _ACTIVITY


def names_no_topic(question: str, times: Sequence[str] = ()) -> bool:
    """Return whether a question is empty, or consists of these time expressions and words such as "what did we do"."""
    for time in times:
        question = question.replace(time, " ")
    return {word.lower() for word in key_words(question)} <= _ACTIVITY
