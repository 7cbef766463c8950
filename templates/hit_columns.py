"""Columns before the title of a hit in a list: ID, date, session and type."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..core.clock import show_day
from ..core.results import Hit
from .labels import label
from .quote import brief

_SESSION: Final = 12
"""Maximum tokens of a session ID."""


def complete_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit, with its full date and its session."""
    return [_joined(hit, show_day(hit.at), hit.short_session_id) for hit in hits]


def brief_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit without what the list already shows, so that more of its title fits.

    The year is shown where it changes, and the session where the list has several hits of it.
    """
    times, rows, year = Counter(hit.session_id for hit in hits), list[str](), ""
    for hit in hits:
        day, before = show_day(hit.at), year
        year = f"{day[:4]}-"
        session = hit.short_session_id if times[hit.session_id] > 1 else ""
        rows.append(_joined(hit, day.removeprefix(before) if before else day, session))
    return rows


def _joined(hit: Hit, day: str, session: str) -> str:
    if hit.kind == "session":  # the ID and the type of such a hit are those of its session
        return f"{hit.id} {day}"
    return " ".join(filter(None, (hit.id, day, brief(session, _SESSION), label(hit))))
