"""Elsewhere: the other sessions in which the same stands, as forks, resumed sessions and copies have it."""

from collections.abc import Sequence
from typing import Final, TypedDict

from ..core.amount import many
from .quote import brief, clean

_NAMED: Final = 3
"""Sessions that are named; an id costs about 25 tokens."""
_NAME: Final = 40


class AlsoInJson(TypedDict):
    """How many other sessions repeat it, and the ids of the first of them."""

    sessions: int
    ids: list[str]


def also_in_json(sessions: Sequence[str]) -> AlsoInJson:
    """Other sessions as JSON."""
    return AlsoInJson(sessions=len(sessions), ids=[clean(name) for name in sessions[:_NAMED]])


def also_in(sessions: Sequence[str]) -> str:
    """How many other sessions, and what the first of them are called; empty where there are none."""
    if not sessions:
        return ""
    named = ", ".join(brief(name, _NAME) for name in sessions[:_NAMED])
    return f"{many(len(sessions), 'session')}: {named}{', …' if len(sessions) > _NAMED else ''}"
