"""Room: how long the titles of a list may be, so that a hit costs about thirty tokens."""

from collections.abc import Sequence
from itertools import groupby

from ..core.clock import show_day
from ..core.results import Hit
from ..core.tokens import count
from .called import called
from .quote import line

_PER_HIT = 30
"""Tokens that a hit of layer 1 may cost on average, its share of heading and closing line included."""
_FULL_LIST = 10
"""Hits of a list that is asked for without a limit."""
_FRAME = 54
"""Tokens of heading and closing line."""
FURTHER = 15
"""Tokens of the way to the next page."""
_HEADING, _CUT = 3, 1
"""Tokens of what stands around a project's name, and at the end of a title that is cut."""
PROJECT, _LEAST_TITLE = 6, 8
"""Tokens that a project's name may have, and that a title gets even where the average is overrun."""


def common_year(hits: Sequence[Hit]) -> str:
    """The year of all these hits, as in `2026`, which then is told once; empty where they are not of one."""
    undated = show_day(None)
    years = {"" if day == undated else day[:4] for day in (show_day(hit.at) for hit in hits)}
    return years.pop() if len(hits) > 1 and len(years) == 1 else ""


def title_room(hits: Sequence[Hit], frame: int = 0, *, year: str = "") -> int:
    """The tokens a title may have, `frame` being what the list has besides and `year` what is told once for all dates.
    What short titles leave over goes to the long ones.
    """
    # A short list pays for its frame only in part: what it saves would be the words that tell its few hits apart.
    columns = sum(count(f"{hit.id} {'12-31' if year else '2026-12-31'} {called(hit)} 0.99\n") for hit in hits)
    room = _PER_HIT * len(hits) - columns - round((_FRAME + frame) * min(1, len(hits) / _FULL_LIST))
    headings = [project for project, _ in groupby(hit.project for hit in hits)]
    if len(headings) > 1:
        room -= sum(min(count(project), PROJECT) + _HEADING for project in headings)
    costs = sorted(count(line(hit.title)) for hit in hits)
    for place, cost in enumerate(costs):
        fair = room // (len(costs) - place)
        if cost > fair:
            return max(fair - _CUT, _LEAST_TITLE)
        room -= cost
    return max([*costs, _LEAST_TITLE])
