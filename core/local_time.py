"""Local times: instants in a time zone, and time expressions that may be in the future, such as `next monday`.

Time zones are those of the system's database. Expressions about days use the grammar of `time_expressions.py`.
"""

import os
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from .conversation import EPOCH, Milliseconds, first_instant
from .errors import InvalidDate, InvalidInput
from .time_expressions import WEEKDAYS, DateRange, date_range

_LOCALTIME: Final = Path("/etc/localtime")
_HINT: Final = (
    "Use an expression such as now, tomorrow, end of week or next Monday, an ISO date, or epoch milliseconds."
)
_DURATIONS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
"""Units of a duration, each with its seconds."""


class LocalTime(Struct, frozen=True):
    """Instant in a time zone, with the texts that tools return to clients.

    Attributes:
        offset: Offset from UTC, such as `+05:30`.
        time: Time of day, such as `9:15 AM`.
        day: Date, such as `Wednesday, February 25, 2026`.
        week: Number of the week, as in ISO 8601.
    """

    at: Milliseconds
    iso: str
    timezone: str
    offset: str
    time: str
    day: str
    weekday: str
    is_weekend: bool
    week: int


def find_zone(name: str | None) -> ZoneInfo:
    """Return the time zone with an IANA name, or the time zone of the system. Raises `InvalidInput`."""
    try:
        return ZoneInfo(name if name is not None else _system_zone())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"Unknown time zone: {name}", hint="Use an IANA name, such as Europe/London.") from None


def local_time(at: Milliseconds, zone: ZoneInfo) -> LocalTime:
    """Return an instant in a time zone. Raises `InvalidInput` for years outside 1 to 9999."""
    moment = _moment(at, zone)
    offset = moment.isoformat()[19:] if not moment.microsecond else moment.isoformat()[26:]
    weekday = WEEKDAYS[moment.weekday()].capitalize()
    return LocalTime(
        at,
        moment.isoformat("T", "milliseconds"),
        zone.key,
        offset,
        f"{moment.hour % 12 or 12}:{moment.minute:02} {'AM' if moment.hour < 12 else 'PM'}",
        f"{weekday}, {_MONTHS[moment.month - 1]} {moment.day}, {moment.year}",
        weekday,
        moment.weekday() >= 5,
        moment.isocalendar().week,
    )


def resolve(expression: str, zone: ZoneInfo, at: Milliseconds) -> Milliseconds:
    """Return the instant of an expression in a time zone, relative to the instant `at`.

    A date without a time zone belongs to `zone`. A date range means its first instant, except after `end of`.

    Raises:
        InvalidDate: The expression is unknown.
    """
    plain = " ".join(expression.lower().split())
    if plain == "now":
        return at
    if re.fullmatch(r"-?\d{10,15}", plain, re.ASCII):
        return _checked(int(plain), zone, expression)
    try:
        if re.match(r"\d{4}-?\d\d-?\d\dt?", plain, re.ASCII) or re.match(r"\d{4}-?w\d\d", plain, re.ASCII):
            return _of_iso(expression.strip(), zone)
        today = _moment(at, zone).date()
        edge = re.fullmatch(r"(start|end) of (.+)", plain)
        named = edge[2] if edge else plain
        days = _days({"day": "today", "week": "this week"}.get(named, named) if edge else named, today)
        return day_end(days.last, zone) if edge and edge[1] == "end" else day_start(days.first, zone)
    except (ValueError, OverflowError, InvalidInput):
        raise InvalidDate(expression, hint=_HINT) from None


def day_start(day: date, zone: ZoneInfo) -> Milliseconds:
    """Return the first instant of a day. If midnight is skipped, the day begins when the clock is set forward."""
    return first_instant(day, zone)


def day_end(day: date, zone: ZoneInfo) -> Milliseconds:
    """Return the last millisecond of a day."""
    return day_start(day + timedelta(days=1), zone) - 1


def show_duration(milliseconds: int) -> str:
    """Return a duration in its two largest units, such as `2 days 3 hours`."""
    seconds, parts = max(0, milliseconds) // 1_000, list[str]()
    for unit, length in _DURATIONS:
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(f"{number} {unit}{'s'[: number != 1]}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 seconds"


def _days(expression: str, today: date) -> DateRange:
    """Return the date range of an expression.

    Recognise expressions about the future, such as `next week`, and all expressions that `date_range` parses.
    """
    for pattern, meaning in _FUTURE:
        if found := re.fullmatch(pattern, expression):
            return meaning(found, today)
    return date_range(expression, today)


def _tomorrow(_found: re.Match[str], today: date) -> DateRange:
    return DateRange(today + timedelta(days=1), today + timedelta(days=1))


def _next_week(_found: re.Match[str], today: date) -> DateRange:
    monday = today + timedelta(days=7 - today.weekday())
    return DateRange(monday, monday + timedelta(days=6))


def _next_weekday(found: re.Match[str], today: date) -> DateRange:
    """Return the next day after today with this weekday."""
    ahead = (WEEKDAYS.index(found[1]) - today.weekday() - 1) % 7 + 1
    return DateRange(today + timedelta(days=ahead), today + timedelta(days=ahead))


_FUTURE: Final[tuple[tuple[str, Callable[[re.Match[str], date], DateRange]], ...]] = (
    ("tomorrow", _tomorrow),
    ("next week", _next_week),
    (f"next ({'|'.join(WEEKDAYS)})", _next_weekday),
)
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _of_iso(text: str, zone: ZoneInfo) -> Milliseconds:
    moment = datetime.fromisoformat(text)
    return _milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=zone))


def _moment(at: Milliseconds, zone: ZoneInfo) -> datetime:
    try:
        return (EPOCH + timedelta(milliseconds=at)).astimezone(zone)
    except (OverflowError, ValueError):
        raise InvalidInput(f"Instant out of range: {at}", hint="Use a year from 1 to 9999.") from None


def _checked(at: Milliseconds, zone: ZoneInfo, expression: str) -> Milliseconds:
    try:
        _moment(at, zone)
    except InvalidInput:
        raise InvalidDate(expression, hint=_HINT) from None
    return at


def _milliseconds(moment: datetime) -> Milliseconds:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _system_zone() -> str:
    """Return the IANA name of the system's time zone, from `TZ` or from the target of the link /etc/localtime."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        try:
            return ZoneInfo(named).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return "UTC"
    _, found, name = str(_LOCALTIME.resolve()).partition("zoneinfo/")
    return name if found else "UTC"
