"""Conversion of times. A time is an integer: the milliseconds since 1970-01-01T00:00Z.

Days, and the times that pages show, are in the display time zone: the zone of the system, unless an entry point selects
another one with `use_time_zone`. Instants in JSON and in files are in UTC.
"""

import re
import time
from datetime import UTC, date, datetime, timedelta, tzinfo

from .conversation import Milliseconds
from .errors import InvalidDate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_DAY = 24 * 3600 * 1000
"""Milliseconds per day in UTC."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_RANGE = (ValueError, OverflowError, OSError)
"""Errors of `datetime` for times that the calendar or the C library of the system does not support."""

_display_zone: tzinfo | None = None
"""Time zone of days and shown times. None selects the zone of the system."""


def use_time_zone(zone: tzinfo | None) -> None:
    """Select the time zone of days and shown times in this process. None selects the zone of the system."""
    global _display_zone  # noqa: PLW0603 - like the variable TZ, the zone belongs to the process
    _display_zone = zone


def now() -> Milliseconds:
    """Return the current instant."""
    return time.time_ns() // 1_000_000


def current_day() -> date:
    """Return the current day."""
    return datetime.now(UTC).astimezone(_display_zone).date()


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
    return first_instant(_day(text), _display_zone)


def day_end(text: str) -> Milliseconds:
    """Return the first instant after a day written as YYYY-MM-DD, for use as an exclusive upper bound.

    Raises:
        InvalidDate: The text is not a valid day.
    """
    day = _day(text)
    if day == date.max:
        return first_instant(day, _display_zone) + _WHOLE_DAY
    return first_instant(day + timedelta(days=1), _display_zone)


def first_instant(day: date, zone: tzinfo | None) -> Milliseconds:
    """Return the first instant of a day in a time zone, or in that of the system.

    If midnight is skipped, the day begins when the clock is set forward. A day can have 23 or 25 hours.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    try:  # `timestamp` interprets a datetime without a zone in that of the system.
        return round(midnight.timestamp() * 1000)
    except _RANGE:
        return round(midnight.replace(tzinfo=UTC).timestamp() * 1000)


def show_day(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD, or return `undated`."""
    return show_minute(at)[:10]


def show_minute(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD HH:MM. Return `undated` for None and for years outside 1 to 9999."""
    moment = _moment(at)
    return _local(moment).isoformat(" ", "minutes")[:16] if moment else "undated"


def show_instant(at: Milliseconds) -> str:
    """Format an instant in UTC as YYYY-MM-DDTHH:MM:SSZ. Return `undated` for years outside 1 to 9999."""
    moment = _moment(at)
    return f"{moment.replace(tzinfo=None).isoformat('T', 'seconds')}Z" if moment else "undated"


def show_millisecond(at: Milliseconds) -> str:
    """Format an instant in UTC as YYYY-MM-DDTHH:MM:SS.mmmZ. Return `undated` for years outside 1 to 9999."""
    shown = show_instant(at)
    return shown if shown == "undated" else f"{shown[:-1]}.{at % 1000:03}Z"


def _day(text: str) -> date:
    if not _DAY.match(text):
        raise InvalidDate(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidDate(text) from None


def _moment(at: Milliseconds | None) -> datetime | None:
    """Return an instant as a date and time in UTC, or None for years outside 1 to 9999."""
    try:
        return None if at is None else EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return None


def _local(moment: datetime) -> datetime:
    """Return a time in the display time zone. A time that this zone does not support stays in UTC."""
    try:
        return moment.astimezone(_display_zone)
    except _RANGE:
        return moment
