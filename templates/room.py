"""Room: how long the titles of a list may be, so that a hit costs about thirty tokens."""

from collections.abc import Sequence
from itertools import groupby

from ..core.disclosure import Hit
from ..core.tokens import count
from .quote import line

_PER_HIT = 30
"""Tokens that a hit of layer 1 may cost on average, its share of heading and closing line included."""
_FULL_LIST = 10
"""Hits of a list that is asked for without a limit."""
_FRAME, _COLUMNS = 33, 17
"""Tokens of heading and closing line; of a hit's id, date, type and score."""
FURTHER = 12
"""Tokens of the way to the next page."""
PROJECT, _LEAST_TITLE = 6, 8
"""Tokens that a project's name may have, and that a title gets even where the average is overrun."""


def title_room(hits: Sequence[Hit], frame: int = 0) -> int:
    """The tokens a title may have, `frame` being what the list has besides: what short titles leave over goes to the
    long ones.
    """
    # A short list pays for its frame only in part: what it saves would be the words that tell its few hits apart.
    room = (_PER_HIT - _COLUMNS) * len(hits) - round((_FRAME + frame) * min(1, len(hits) / _FULL_LIST))
    headings = [project for project, _ in groupby(hit.project for hit in hits)]
    if len(headings) > 1:
        room -= sum(min(count(project), PROJECT) + 2 for project in headings)
    costs = sorted(count(line(hit.title)) for hit in hits)
    for place, cost in enumerate(costs):
        fair = room // (len(costs) - place)
        if cost > fair:
            return max(fair, _LEAST_TITLE)
        room -= cost
    return max([*costs, _LEAST_TITLE])
