"""The JSON that says why a search found nothing."""

from collections.abc import Iterable
from typing import TypedDict

from ..core.clock import show_day
from ..core.results import Correction, ZeroResultExplanation
from .quote import clean


class SpellingJson(TypedDict):
    """A word that stands nowhere, and the one that is spelled most like it."""

    word: str
    nearest: str


class UnknownJson(TypedDict):
    """A name that a filter asked for and nothing has, the nearest that something has, and how many more there are."""

    filter: str
    name: str
    nearest: list[str]
    more: int


class PresentJson(TypedDict):
    """In how many conversations one of several concepts is by itself."""

    concept: str
    conversations: int


class PlaceJson(TypedDict):
    """A line of an archived transcript, and what is said there."""

    path: str
    line: int
    said: str


class WhyJson(TypedDict):
    """Why nothing was found: how many there would be without each filter, the nearest days outside the range of dates
    that have some, words that are spelled much alike, names that filters asked for and nothing has, and what was quoted
    and nothing has so. Of several concepts `present` tells each, and `apart` pairs that no conversation has together.
    `printed` are places where tools printed what was quoted; so many copies were `unread` when the time was up.
    `nowhere` are those of a few words that stand nowhere; there would be `others` without them, null where there are no
    other words.
    """

    relevant: bool
    without: dict[str, int]
    earlier: str | None
    later: str | None
    spelling: list[SpellingJson]
    unknown: list[UnknownJson]
    phrases: list[str]
    present: list[PresentJson]
    apart: list[list[str]]
    printed: list[PlaceJson]
    unread: int
    nowhere: list[str]
    others: int | None


def why_json(why: ZeroResultExplanation) -> WhyJson:
    """Why nothing was found as JSON."""
    return WhyJson(
        relevant=not (why.weak or why.no_known_term),
        without=dict(why.without),
        earlier=None if why.earlier is None else show_day(why.earlier),
        later=None if why.later is None else show_day(why.later),
        spelling=spelling_json(why.similar),
        unknown=[
            UnknownJson(filter=field, name=clean(name), nearest=[clean(one) for one in nearest], more=more)
            for field, name, nearest, more in why.unknown
        ],
        phrases=[clean(phrase) for phrase in why.phrases],
        present=[PresentJson(concept=clean(each.concept), conversations=each.conversations) for each in why.concepts],
        apart=[[clean(concept) for concept in pair] for pair in why.disjoint],
        printed=[
            PlaceJson(path=clean(path), line=line, said=clean(said)) for path, line, said in why.tool_output.lines
        ],
        unread=why.tool_output.unread,
        nowhere=[clean(word) for word in why.missing],
        others=why.without_missing,
    )


def spelling_json(words: Iterable[Correction]) -> list[SpellingJson]:
    """Words and what is spelled like them as JSON."""
    return [SpellingJson(word=clean(word), nearest=clean(nearest)) for word, nearest in words]
