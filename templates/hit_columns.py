"""Columns of a hit in a list: ID, date, session, type and title."""

from collections.abc import Sequence
from typing import Final

from ..core.clock import show_day
from ..core.results import Hit
from .labels import label
from .quote import brief

_SHORT_PROMPT: Final = 3
"""Maximum number of words of a prompt that says too little without the title of its session."""
_SESSION: Final = 12
"""Maximum tokens of a session ID."""


def complete_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit, with its full date and its session."""
    return [_joined(hit, show_day(hit.at), hit.short_session_id) for hit in hits]


def brief_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit. The year is shown only where it changes, so that more of the title fits."""
    rows, year = list[str](), ""
    for hit in hits:
        day, before = show_day(hit.at), year
        year = f"{day[:4]}-"
        rows.append(_joined(hit, day.removeprefix(before) if before else day, hit.short_session_id))
    return rows


def _joined(hit: Hit, day: str, session: str) -> str:
    if hit.kind == "session":  # its ID already is that of the session
        return f"{hit.id} {day}"
    return " ".join(filter(None, (hit.id, day, brief(session, _SESSION), label(hit))))


def listed_title(hit: Hit) -> str:
    """Return the title of a hit in a list. The title of the session follows a short prompt, such as `commit`."""
    short = hit.kind == "exchange" and len(hit.title.split()) <= _SHORT_PROMPT
    named = hit.session_title and hit.session_title.casefold() != hit.title.casefold()
    return f"{hit.title} in: {hit.session_title}" if short and named else hit.title
