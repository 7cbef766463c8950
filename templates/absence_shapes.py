"""The JSON that says why a search found nothing."""

from typing import TypedDict

from ..core.clock import show_day
from ..core.disclosure import Absence
from .quote import clean


class SpellingJson(TypedDict):
    """A word that stands nowhere, and one that is spelled much like it."""

    word: str
    nearest: str


class UnknownJson(TypedDict):
    """A name that a filter asked for and nothing has, and the nearest that something has."""

    filter: str
    name: str
    nearest: list[str]


class WhyJson(TypedDict):
    """Why nothing was found: how many there would be without each filter, the nearest days outside the range of dates
    that have some, words that are spelled much alike, and names that filters asked for and nothing has.
    """

    relevant: bool
    without: dict[str, int]
    earlier: str | None
    later: str | None
    spelling: list[SpellingJson]
    unknown: list[UnknownJson]


def why_json(why: Absence) -> WhyJson:
    """Why nothing was found as JSON."""
    return WhyJson(
        relevant=not why.weak,
        without=dict(why.without),
        earlier=None if why.earlier is None else show_day(why.earlier),
        later=None if why.later is None else show_day(why.later),
        spelling=[SpellingJson(word=clean(word), nearest=clean(nearest)) for word, nearest in why.spelling],
        unknown=[
            UnknownJson(filter=field, name=clean(name), nearest=[clean(one) for one in nearest])
            for field, name, nearest in why.unknown
        ],
    )
