"""Conversion of times. A time is an integer: the milliseconds since 1970-01-01T00:00Z."""

import re
import time
from datetime import UTC, datetime, timedelta

from .conversation import Milliseconds
from .errors import InvalidDate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_DAY = 24 * 3600 * 1000
"""Milliseconds per day."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def now() -> Milliseconds:
    """Return the current instant."""
    return time.time_ns() // 1_000_000


def has_elapsed(period: Milliseconds, since: Milliseconds) -> bool:
    """Return whether a period has elapsed since an instant.

    An instant in the future, which a wrong clock left behind, counts as long ago.
    """
    return not 0 <= now() - since < period


def parse_instant(text: str) -> Milliseconds | None:
    """Return the instant of an RFC 3339 text, or None for other text. The default time zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def day_start(text: str) -> Milliseconds:
    """Return the first instant of a day written as YYYY-MM-DD.

    Raises:
        InvalidDate: The text is not a valid day.
    """
    if not _DAY.match(text):
        raise InvalidDate(text)
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidDate(text) from None
    return round(day.replace(tzinfo=UTC).timestamp() * 1000)


def day_end(text: str) -> Milliseconds:
    """Return the first instant after a day written as YYYY-MM-DD, for use as an exclusive upper bound.

    Raises:
        InvalidDate: The text is not a valid day.
    """
    return day_start(text) + _WHOLE_DAY


def show_day(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD in UTC, or return `undated`."""
    return show_minute(at)[:10]


def show_minute(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD HH:MM in UTC. Return `undated` for None and for years outside 1 to 9999."""
    moment = _moment(at)
    return moment.isoformat(" ", "minutes")[:16] if moment else "undated"


def show_instant(at: Milliseconds) -> str:
    """Format an instant as YYYY-MM-DDTHH:MM:SSZ. Return `undated` for years outside 1 to 9999."""
    moment = _moment(at)
    return f"{moment.replace(tzinfo=None).isoformat('T', 'seconds')}Z" if moment else "undated"


def show_millisecond(at: Milliseconds) -> str:
    """Format an instant as YYYY-MM-DDTHH:MM:SS.mmmZ. Return `undated` for years outside 1 to 9999."""
    shown = show_instant(at)
    return shown if shown == "undated" else f"{shown[:-1]}.{at % 1000:03}Z"


def _moment(at: Milliseconds | None) -> datetime | None:
    """Return an instant as a date and time, or None for years outside 1 to 9999."""
    try:
        return None if at is None else EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return None
