"""Dates as people say them: `yesterday`, `last tuesday`, `3 weeks ago`, `march 2026`. Days are those of UTC."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from .clock import day_end, day_start
from .conversation import Milliseconds
from .errors import InvalidDate, InvalidInput

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HINT: Final = (
    "Use YYYY-MM-DD format, or words: yesterday, last tuesday, 3 weeks ago, last month, march 2026, last july, q3 2026."
)
_VAGUE: Final = (
    (
        re.compile(r"\b(spring|summer|autumn|fall|winter)\b"),
        "Use YYYY-MM-DD format, or name months: a season is not the same ones everywhere.",
    ),
    (
        re.compile(r"\b(hours?|minutes?|morning|noon|afternoon|evening|night|tonight|now)\b"),
        "Use YYYY-MM-DD format, today or yesterday: nothing is finer than a day.",
    ),
)
"""What people say that no dates can be made of without a guess, and what to say instead."""
_FAR = 100_000
"""More of any unit leads out of the calendar."""


class Period(NamedTuple):
    """A stretch of days, both included."""

    first: date
    last: date


def start_of(text: str, today: date | None = None) -> Milliseconds:
    """The first instant of a period in words, also of one `since` then; raises `InvalidDate`."""
    return day_start(period(_SINCE.sub("", text), today).first.isoformat())


def end_of(text: str, today: date | None = None) -> Milliseconds:
    """The first instant after a period in words, also of one `until` then, so that an upper bound includes it; raises
    `InvalidDate`.
    """
    return day_end(period(_UNTIL.sub("", text), today).last.isoformat())


def between(first: str | None, last: str | None) -> tuple[Milliseconds | None, Milliseconds | None]:
    """The first instant of one period and the first after another, None where none is given; raises `InvalidDate`, and
    `InvalidInput` where that leaves no day.
    """
    begin = None if first is None else start_of(first)
    end = None if last is None else end_of(last)
    if begin is not None and end is not None and begin >= end:
        raise InvalidInput(f"Invalid date range: {first} is later than {last}", hint="Swap the two dates.")
    return begin, end


def period(text: str, today: date | None = None) -> Period:
    """The days that `text` means, seen from `today`; raises `InvalidDate` for what names none."""
    said = " ".join(text.lower().replace(",", " ").split())
    for form, meant in _WRITTEN_OUT:
        said = form.sub(meant, said)
    now = today or datetime.now(UTC).date()
    try:
        for form, meaning in _FORMS:
            if found := form.fullmatch(said):
                return meaning(found, now)
    except (ValueError, OverflowError):
        raise InvalidDate(text, hint=_HINT) from None
    raise InvalidDate(text, hint=next((hint for form, hint in _VAGUE if form.search(said)), _HINT))


def _written(found: re.Match[str], _today: date) -> Period:
    year, month, day = found.groups()
    if day:
        return _one(date(int(year), int(month), int(day)))
    return _month(int(year), int(month)) if month else Period(date(int(year), 1, 1), date(int(year), 12, 31))


def _near(found: re.Match[str], today: date) -> Period:
    return _one(today - timedelta(days=("today", "yesterday", "day before yesterday").index(found[0])))


def _weekday(found: re.Match[str], today: date) -> Period:
    """The latest such day; `last` leaves today out."""
    back = (today.weekday() - _named(_DAYS, found["name"])) % 7
    return _one(today - timedelta(days=7 if found["last"] and not back else back))


def _unit(found: re.Match[str], today: date) -> Period:
    """This or last week, month, quarter or year; what is still running ends with its own last day."""
    back = int(found[1] != "this")
    match found[2]:
        case "week":
            monday = today - timedelta(days=today.weekday() + 7 * back)
            return Period(monday, monday + timedelta(days=6))
        case "month":
            there = _earlier(today.replace(day=1), back)
            return _month(there.year, there.month)
        case "quarter":
            there = _earlier(today.replace(day=1), 3 * back)
            return _quarter(there.year, (there.month + 2) // 3)
        case _:
            return Period(date(today.year - back, 1, 1), date(today.year - back, 12, 31))


def _ago(found: re.Match[str], today: date) -> Period:
    return _one(_before(today, found[1], found[2]))


def _past(found: re.Match[str], today: date) -> Period:
    return Period(_before(today, found[1], found[2]), today)


def _weekend(_found: re.Match[str], today: date) -> Period:
    """The latest that is over."""
    sunday = today - timedelta(days=today.weekday() + 1)
    return Period(sunday - timedelta(days=1), sunday)


def _in_quarter(found: re.Match[str], today: date) -> Period:
    """A quarter; without a year the latest that has begun."""
    number = int(found["number"] or found["last"])
    year = int(found["first"] or found["year"] or today.year - (number * 3 - 2 > today.month))
    return _quarter(year, number)


def _whole_month(found: re.Match[str], today: date) -> Period:
    """A month of this year, or the latest of its name that is over."""
    month = _named(_MONTHS, found["name"]) + 1
    return _month(today.year - (found["which"] == "last" and month >= today.month), month)


def _in_month(found: re.Match[str], today: date) -> Period:
    """A month or a day of it; without a year the latest that has begun. Raises `ValueError` for two days."""
    if found["day"] and found["late"]:
        raise ValueError(found[0])
    month, day = _named(_MONTHS, found["name"]) + 1, int(found["day"] or found["late"] or 0)
    year = int(found["year"] or today.year - (date(today.year, month, day or 1) > today))
    return _one(date(year, month, day)) if day else _month(year, month)


def _before(today: date, count: str, unit: str) -> date:
    number = 1 if count in {"a", "an"} else _NUMBERS.index(count) + 1 if count in _NUMBERS else min(int(count), _FAR)
    if unit in {"month", "year"}:
        return _earlier(today, number * (12 if unit == "year" else 1))
    return today - timedelta(days=number * (7 if unit in {"week", "w"} else 1))


def _earlier(day: date, months: int) -> date:
    """So many months before, on the same day of the month or its last one."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _month(year: int, month: int) -> Period:
    return Period(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _quarter(year: int, number: int) -> Period:
    return Period(date(year, number * 3 - 2, 1), _month(year, number * 3).last)


def _one(day: date) -> Period:
    return Period(day, day)


def _named(names: tuple[str, ...], beginning: str) -> int:
    return next(place for place, name in enumerate(names) if name.startswith(beginning))


def _short(names: tuple[str, ...]) -> str:
    """Each name whole or cut short, to three letters at least: jun, sept, tues, thurs."""
    return "|".join(name[:end] for name in names for end in range(len(name), 2, -1))


_SINCE: Final = re.compile(r"^\s*(?:since|from)\s+(?:the\s+)?", re.ASCII | re.IGNORECASE)
_UNTIL: Final = re.compile(r"^\s*(?:until|till|up to)\s+(?:the\s+)?", re.ASCII | re.IGNORECASE)
_WRITTEN_OUT: Final = tuple(
    (re.compile(form, re.ASCII), meant)
    for form, meant in (
        (r"^(?:in|within|over|during) the (?:last|past) ", "past "),
        (r"^past (?=(?:day|week|month|year)$)", "past 1 "),  # the days up to now, unlike `last week`
        (r"^(?:on|in|during) ", ""),
        (r"^the ", ""),
        (r"(?<=[a-z])\.", ""),
        (r"\b(\d{1,2})(?:st|nd|rd|th)(?: of)?\b", r"\1"),
        (r"\ba couple(?: of)?\b", "two"),
    )
)
"""Other ways to write the same, and how it is read."""
_COUNT = rf"(\d{{1,9}}|an?|{'|'.join(_NUMBERS)})"
_MONTH = rf"(?P<name>{_short(_MONTHS)})"
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Period]], ...]] = tuple(
    (re.compile(form, re.ASCII), meaning)
    for form, meaning in (
        (r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", _written),
        (r"today|yesterday|day before yesterday", _near),
        (rf"(?:(?P<last>last|past) )?(?P<name>{_short(_DAYS)})", _weekday),
        (r"(this|last) (week|month|quarter|year)", _unit),
        (r"last weekend", _weekend),
        (rf"{_COUNT} (day|week|month|year)s? ago", _ago),
        (r"(\d{1,9})([dw])(?: ago)?", _ago),
        (rf"(?:last|past) {_COUNT} (day|week|month|year)s?", _past),
        (r"q(?P<number>[1-4])(?: (?P<year>\d{4}))?|(?P<first>\d{4})[ -]?q(?P<last>[1-4])", _in_quarter),
        (rf"(?P<which>this|last) {_MONTH}", _whole_month),
        (rf"(?:(?P<day>\d{{1,2}}) )?{_MONTH}(?: (?P<late>\d{{1,2}}))?(?: (?P<year>\d{{4}}))?", _in_month),
    )
)
