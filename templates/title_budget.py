"""Title budget: the maximum tokens per title, chosen so that a hit in a list costs about 30 tokens."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..core.results import Hit
from ..core.tokens import count
from .hit_columns import complete_columns
from .quote import brief, line

_PER_HIT: Final = 30
"""Average tokens of a hit, including its share of heading and footer. In short lists, the average is higher."""
_FULL_LIST: Final = 10
"""Number of hits in a list of default length."""
_FRAME: Final = 50
"""Tokens of the heading, the markers and the footer."""
NEXT_PAGE: Final = 15
"""Tokens of the hint for the next page."""
_HEADING, _ELLIPSIS = 3, 1
"""Tokens that a heading adds to the name of a project, and tokens of an ellipsis after a truncated title."""
PROJECT: Final = 6
"""Maximum tokens of a project's name."""
_MIN_TITLE: Final = 8
"""Minimum tokens of a title, even if the average is exceeded."""
_SHORT_LIST, _WHOLE_TITLE = 5, 25
"""Maximum number of hits in a short list, and maximum tokens of each title in a short list."""

_SHORT_PROMPT: Final = 3
"""Maximum number of words of a prompt that says too little without the title of its session."""


def listed_title(hit: Hit) -> str:
    """Return the title of a hit in a list. The title of the session follows a short prompt, such as `commit`."""
    short = hit.kind == "exchange" and len(hit.title.split()) <= _SHORT_PROMPT
    named = hit.session_title and hit.session_title.casefold() != hit.title.casefold()
    return f"{hit.title} in: {hit.session_title}" if short and named else hit.title


def title_budget(hits: Sequence[Hit]) -> int:
    """Return the maximum tokens of a title if all titles have the same maximum.

    Tokens that short titles do not use are available to long titles.
    """
    return _fair(sorted(count(line(hit.title)) for hit in hits), _room(hits, complete_columns(hits), 0))


def titles(hits: Sequence[Hit], columns: Sequence[str], frame: int = 0) -> list[str]:
    """Return the truncated title of each hit. If tokens are left, the best of the truncated titles are lengthened.

    `columns` is the text before each title, and `frame` the number of additional tokens in the footer.
    """
    full = [listed_title(hit) for hit in hits]
    if len(hits) <= _SHORT_LIST:
        return [brief(title, _WHOLE_TITLE) for title in full]
    room = _room(hits, columns, frame)
    whole = [count(line(title)) for title in full]
    fair = _fair(sorted(whole), room)
    shown = [brief(title, fair) for title in full]
    costs = [count(title) for title in shown]
    left = room - _ELLIPSIS - sum(costs)
    for place, title in enumerate(full):
        if left <= _ELLIPSIS:
            break
        if costs[place] < whole[place]:
            wider = brief(title, costs[place] + left - _ELLIPSIS)
            gained = count(wider) - costs[place]
            if 0 < gained <= left:
                shown[place], left = wider, left - gained
    return shown


def _room(hits: Sequence[Hit], columns: Sequence[str], frame: int) -> int:
    """Return the number of tokens that are available for all titles of a list together."""
    # Only a share of the frame counts for a short list, because its titles would otherwise become too short.
    room = _PER_HIT * len(hits) - round((_FRAME + frame) * min(1, len(hits) / _FULL_LIST))
    room -= sum(count(f"{each}\n") for each in columns)
    headings = [project for project, _ in groupby(hit.project for hit in hits)]
    if any(headings):
        room -= sum(min(count(project), PROJECT) + _HEADING for project in headings)
    return room


def _fair(costs: Sequence[int], room: int) -> int:
    """Return the largest limit per title with which all titles fit into `room` tokens. `costs` must be sorted."""
    for place, cost in enumerate(costs):
        fair = room // (len(costs) - place)
        if cost > fair:
            return max(fair - _ELLIPSIS, _MIN_TITLE)
        room -= cost
    return max([*costs, _MIN_TITLE])
