"""Time: one way to read it, one way to write it. All instants are milliseconds since 1970 in UTC."""

import re
import time
from datetime import UTC, date, datetime, timedelta

from .conversation import Milliseconds
from .errors import InvalidDate

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_DAY = 24 * 3600 * 1000
"""Milliseconds; in UTC each day has as many."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def now() -> Milliseconds:
    """This instant."""
    return time.time_ns() // 1_000_000


def parse_instant(text: str) -> Milliseconds | None:
    """RFC 3339 text as an instant; None when it is not one. Text without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def day_start(text: str) -> Milliseconds:
    """The first instant of a calendar day written YYYY-MM-DD; raises `InvalidDate`."""
    return round(datetime.combine(_day(text), datetime.min.time(), UTC).timestamp() * 1000)


def day_end(text: str) -> Milliseconds:
    """The first instant after a calendar day, so that a day given as an upper bound is included, the last one too;
    raises `InvalidDate`.
    """
    return day_start(text) + _WHOLE_DAY


def show_day(at: Milliseconds | None) -> str:
    """YYYY-MM-DD in UTC, or `undated`."""
    return show_minute(at)[:10]


def show_minute(at: Milliseconds | None) -> str:
    """YYYY-MM-DD HH:MM in UTC, or `undated`, which an instant outside the calendar is too."""
    moment = _moment(at)
    return moment.isoformat(" ", "minutes")[:16] if moment else "undated"


def show_instant(at: Milliseconds) -> str:
    """YYYY-MM-DDTHH:MM:SSZ, or `undated` outside the calendar."""
    moment = _moment(at)
    return f"{moment.replace(tzinfo=None).isoformat('T', 'seconds')}Z" if moment else "undated"


def show_millisecond(at: Milliseconds) -> str:
    """YYYY-MM-DDTHH:MM:SS.mmmZ, or `undated` outside the calendar."""
    shown = show_instant(at)
    return shown if shown == "undated" else f"{shown[:-1]}.{at % 1000:03}Z"


def _moment(at: Milliseconds | None) -> datetime | None:
    """An instant on the calendar; None for one outside it."""
    try:
        return None if at is None else _EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return None


def _day(text: str) -> date:
    if not _DAY.match(text):
        raise InvalidDate(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidDate(text) from None
