"""Parser of time expressions, such as `yesterday`, `last tuesday`, `a fortnight ago` and `march 2026`.

Options such as `--after`, tool parameters and search queries all use this grammar. Days are in the display time zone of
`local_time.py`. To extend it everywhere, add a unit to `_UNITS` or a phrase to `_FORMS`.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from typing import Final, NamedTuple

from .conversation import Milliseconds, current_day, day_end, day_start
from .errors import InvalidDate, InvalidInput


class DateRange(NamedTuple):
    """Range of days. Both ends are inclusive."""

    first: date
    last: date


class _TimeUnit(NamedTuple):
    """Unit of time: its length, and the margins of imprecise dates in queries.

    Attributes:
        days: Length in days.
        months: Length in months.
        margin: Days added before and after the date that "N units ago" means.
        few_margin: Days added before and after the date that "a few units ago" means.
    """

    days: int = 0
    months: int = 0
    margin: int = 0
    few_margin: int = 0


_UNITS: Final = {
    "day": _TimeUnit(days=1, margin=0, few_margin=2),
    "week": _TimeUnit(days=7, margin=3, few_margin=14),
    "fortnight": _TimeUnit(days=14, margin=5, few_margin=28),
    "month": _TimeUnit(months=1, margin=15, few_margin=60),
    "year": _TimeUnit(months=12, margin=180, few_margin=720),
}
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HINT: Final = (
    "Use YYYY-MM-DD format, or words: yesterday, last tuesday, 3 weeks ago, 7d, last month, march 2026, last july, "
    "q3 2026."
)
_VAGUE: Final = (
    (r"\b(spring|summer|autumn|fall|winter)\b", "Use YYYY-MM-DD format, or name months: seasons differ by hemisphere."),
    (
        r"\b(hours?|minutes?|morning|noon|afternoon|evening|night|tonight|now)\b|\d(h|hrs?|min)\b|\d:\d",
        "Use YYYY-MM-DD format, today or yesterday: the shortest unit is a day.",
    ),
)
"""Patterns of expressions without a unique date range, with a hint for each."""
_MAX_COUNT: Final = 100_000
"""Maximum count of a unit. A larger count would exceed the range of `date`."""


def start_of(text: str, today: date | None = None) -> Milliseconds:
    """Return the first instant of a time expression, which may begin with `since`. Raises `InvalidDate`."""
    plain = re.sub(r"^\s*(?:since|from)\s+(?:the\s+)?", "", text, flags=_FLAGS)
    return day_start(date_range(plain, today).first.isoformat())


def end_of(text: str, today: date | None = None) -> Milliseconds:
    """Return the first instant after a time expression, which may begin with `until`. Raises `InvalidDate`."""
    plain = re.sub(r"^\s*(?:until|till|up to)\s+(?:the\s+)?", "", text, flags=_FLAGS)
    return day_end(date_range(plain, today).last.isoformat())


def between(first: str | None, last: str | None) -> tuple[Milliseconds | None, Milliseconds | None]:
    """Return the start of the expression `first` and the end of the expression `last`, exclusive.

    An instant is None if its expression is None.

    Raises:
        InvalidDate: An expression is not a date range.
        InvalidInput: The range is empty.
    """
    begin = None if first is None else start_of(first)
    end = None if last is None else end_of(last)
    if begin is not None and end is not None and begin >= end:
        raise InvalidInput(f"Invalid date range: {first} is later than {last}", hint="Swap the two dates.")
    return begin, end


def date_range(text: str, today: date | None = None) -> DateRange:
    """Return the date range of a time expression relative to `today`. Raises `InvalidDate`."""
    expression = " ".join(text.lower().replace(",", " ").split())
    for pattern, standard in _SPELLINGS:
        expression = re.sub(pattern, standard, expression, flags=re.ASCII)
    now = today or current_day()
    try:
        for form in _FORMS:
            if match := re.fullmatch(form.pattern, expression, re.ASCII):
                return form.meaning(match, now)
    except (ValueError, OverflowError):
        raise InvalidDate(text, hint=_HINT) from None
    raise InvalidDate(text, hint=next((hint for pattern, hint in _VAGUE if re.search(pattern, expression)), _HINT))


def extract(query: str, today: date | None = None) -> tuple[str, str, DateRange] | None:
    """Return the query without its time expression, the expression itself and its date range.

    Return None if the query contains no time expression, several, or an ambiguous expression. The caller then treats
    the whole query as words.
    """
    if not _TRIGGER.search(query):
        return None
    unquoted = re.sub(_QUOTED, lambda quoted: "_" * len(quoted[0]), query)
    if re.search(_CODE, unquoted) or len(query.split()) > _MAX_WORDS:
        return None
    matches = list(_in_queries().finditer(unquoted))
    if len(matches) != 1 or _has_other_meaning(unquoted, matches[0]):
        return None
    expression = " ".join(matches[0][0].split())
    before, after = query[: matches[0].start()], re.sub(r"\A['’]s\b", "", query[matches[0].end() :])
    remaining = (before.rstrip() if re.match(r"[?!.,)]", after) else before) + after
    try:
        days = _range_in_query(expression, today)
    except (InvalidDate, OverflowError):
        return None
    if len(re.findall(r"[^\W\d_]+", remaining)) < _MIN_WORDS:
        return None
    return " ".join(remaining.split()), expression, days


def _has_other_meaning(query: str, match: re.Match[str]) -> bool:
    """Return whether adjacent words give a date another meaning, as in `due by friday` or `every monday`."""
    before, after = query[: match.start()].lower().split(), query[match.end() :].lower().split()
    return not _OTHER_BEFORE.isdisjoint(before[-1:]) or not _OTHER_AFTER.isdisjoint(after[:1])


def _range_in_query(expression: str, today: date | None) -> DateRange:
    """Return the date range of an expression in a query.

    After `since`, the range extends to today. For `... ago`, the margin of the unit is added before and after the date.
    """
    lead = re.match(r"(from|of|since)\s+(?:the\s+)?", expression, _FLAGS)
    plain = expression[lead.end() :] if lead else expression
    days = date_range(re.sub(r"\ba few\b", "three", plain, flags=_FLAGS), today)
    if ago := re.fullmatch(rf"(?P<few>a few )?.*?(?P<unit>{_UNIT_NAMES})s? ago", plain, _FLAGS):
        unit = _UNITS[ago["unit"].lower()]
        margin = timedelta(days=unit.few_margin if ago["few"] else unit.margin)
        return DateRange(days.first - margin, days.last + margin)
    if lead and lead[1].lower() == "since":
        return DateRange(days.first, max(days.last, date_range("today", today).last))
    return days


def _iso_date(match: re.Match[str], _today: date) -> DateRange:
    year, month, day = match.groups()
    if day:
        return _single_day(date(int(year), int(month), int(day)))
    return _month(int(year), int(month)) if month else DateRange(date(int(year), 1, 1), date(int(year), 12, 31))


def _named_day(match: re.Match[str], today: date) -> DateRange:
    return _single_day(today - timedelta(days=("today", "yesterday", "day before yesterday").index(match[0])))


def _weekday(match: re.Match[str], today: date) -> DateRange:
    """Return the latest day with this weekday. `last` excludes today."""
    back = (today.weekday() - _index(WEEKDAYS, match["name"])) % 7
    return _single_day(today - timedelta(days=7 if match["last"] and not back else back))


def _this_or_last(words: re.Match[str], today: date) -> DateRange:
    """Return the whole current or previous week, month, quarter or year. The end may be in the future."""
    back = int(words[1] != "this")
    match words[2]:
        case "week":
            monday = today - timedelta(days=today.weekday() + 7 * back)
            return DateRange(monday, monday + timedelta(days=6))
        case "month":
            there = _months_before(today.replace(day=1), back)
            return _month(there.year, there.month)
        case "quarter":
            there = _months_before(today.replace(day=1), 3 * back)
            return _quarter(there.year, (there.month + 2) // 3)
        case _:
            return DateRange(date(today.year - back, 1, 1), date(today.year - back, 12, 31))


def _ago(match: re.Match[str], today: date) -> DateRange:
    return _single_day(_before(today, match[1], match[2]))


def _past(match: re.Match[str], today: date) -> DateRange:
    return DateRange(_before(today, match[1], match[2]), today)


def _weekend(_found: re.Match[str], today: date) -> DateRange:
    """Return the latest complete weekend."""
    sunday = today - timedelta(days=today.weekday() + 1)
    return DateRange(sunday - timedelta(days=1), sunday)


def _named_quarter(match: re.Match[str], today: date) -> DateRange:
    """Return a quarter. Without a year, return the latest quarter with this number that has begun."""
    number = int(match["number"] or match["last"])
    year = int(match["first"] or match["year"] or today.year - (number * 3 - 2 > today.month))
    return _quarter(year, number)


def _this_or_last_month(match: re.Match[str], today: date) -> DateRange:
    """Return the month with this name in the current year, or for `last` the latest complete month with this name."""
    month = _index(_MONTHS, match["name"]) + 1
    return _month(today.year - (match["which"] == "last" and month >= today.month), month)


def _named_month(match: re.Match[str], today: date) -> DateRange:
    """Return a month or a day of a month. Without a year, return the latest one that has begun.

    Raises:
        ValueError: The expression contains two days, or the day does not exist.
    """
    if match["day"] and match["late"]:
        raise ValueError(match[0])
    month, day = _index(_MONTHS, match["name"]) + 1, int(match["day"] or match["late"] or 0)
    year = int(match["year"] or today.year - (date(today.year, month, day or 1) > today))
    return _single_day(date(year, month, day)) if day else _month(year, month)


def _week_of_month(match: re.Match[str], today: date) -> DateRange:
    """Return the first or last seven days of a month. Without a year, the month is the latest one that has begun."""
    month = _index(_MONTHS, match["name"]) + 1
    year = int(match["year"] or today.year - (month > today.month))
    first, last = _month(year, month)
    week = timedelta(days=6)
    return DateRange(first, first + week) if match["which"] == "first" else DateRange(last - week, last)


def _before(today: date, count: str, name: str) -> date:
    if count in {"a", "an"}:
        number = 1
    else:
        number = _NUMBERS.index(count) + 1 if count in _NUMBERS else min(int(count), _MAX_COUNT)
    unit = next(unit for each, unit in _UNITS.items() if each.startswith(name))
    return _months_before(today, number * unit.months) - timedelta(days=number * unit.days)


def _months_before(day: date, months: int) -> date:
    """Return the same day of an earlier month, or the last day of that month if the month is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _month(year: int, month: int) -> DateRange:
    return DateRange(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _quarter(year: int, number: int) -> DateRange:
    return DateRange(date(year, number * 3 - 2, 1), _month(year, number * 3).last)


def _single_day(day: date) -> DateRange:
    return DateRange(day, day)


def _index(names: tuple[str, ...], beginning: str) -> int:
    return next(place for place, name in enumerate(names) if name.startswith(beginning))


def _abbreviated(names: tuple[str, ...]) -> str:
    """Return a pattern that matches each name in full or shortened to at least three letters, such as jun or sept."""
    return "|".join(name[:end] for name in names for end in range(len(name), 2, -1))


_FLAGS: Final = re.ASCII | re.IGNORECASE
_UNIT_NAMES: Final = "|".join(_UNITS)
_SPELLINGS: Final = (
    (r"^(?:in|within|over|during) the (?:last|past) (?!week of )", "past "),
    (rf"^past (?=(?:{_UNIT_NAMES})$)", "past 1 "),  # `past week` extends up to today, unlike `last week`.
    (r"^(?:on|in|during) ", ""),
    (r"^the ", ""),
    (r"(?<=[a-z])\.", ""),
    (r"\b(\d{1,2})(?:st|nd|rd|th)(?: of)?\b", r"\1"),
    (r"\ba couple(?: of)?\b", "two"),
)
"""Patterns of spellings, each with the equivalent standard spelling."""

_UNIT: Final = rf"({_UNIT_NAMES})s?"
_COUNT: Final = rf"(\d{{1,9}}|an?|{'|'.join(_NUMBERS)})"
_MONTH: Final = rf"(?P<name>{_abbreviated(_MONTHS)})"

# Fragments of query patterns. `may`, `march` and `dec` also have other meanings, so they need a year or preposition.
_Q_UNIT: Final = rf"(?:{_UNIT_NAMES})s?"
_Q_COUNT: Final = rf"(?:\d{{1,2}}|an?|a couple of|{'|'.join(_NUMBERS)})"
_Q_DAYS: Final = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_Q_CLEAR_MONTHS: Final = "(?:january|february|april|june|july|august|september|october|november|december)"
_Q_MONTHS: Final = f"(?:{_Q_CLEAR_MONTHS}|may|march)"
_Q_SHORT: Final = f"(?:{_Q_MONTHS}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_Q_DAY: Final = r"\d{1,2}(?:(?:st|nd|rd|th)(?: of)?)?"
_Q_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)"
_Q_YEAR: Final = r"(?:19|20)\d\d"
_LEAD: Final = "(?:(?:from|of|on|since) )?"
_DURING: Final = "(?:(?:during|from|of|since) )?"


class _Form(NamedTuple):
    """One form of time expressions, such as `N days ago`.

    Attributes:
        pattern: Pattern of the whole expression.
        meaning: Function that returns the date range.
        in_query: Stricter patterns that recognise the expression within a query.
    """

    pattern: str
    meaning: Callable[[re.Match[str], date], DateRange]
    in_query: tuple[str, ...] = ()


_FORMS: Final = (
    _Form(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", _iso_date, (rf"(?:from|of|on|since) {_Q_YEAR}-\d\d-\d\d",)),
    _Form(
        "today|yesterday|day before yesterday",
        _named_day,
        (rf"{_LEAD}(?:the day before )?yesterday", r"today(?=[?!.]*\Z)"),
    ),
    _Form(
        rf"(?:(?P<last>last|past) )?(?P<name>{_abbreviated(WEEKDAYS)})",
        _weekday,
        (rf"{_LEAD}last {_Q_DAYS}", rf"(?:from|on|since) {_Q_DAYS}"),
    ),
    _Form(
        rf"(?P<which>first|last) week of {_MONTH}(?: (?P<year>\d{{4}}))?",
        _week_of_month,
        (rf"(?:(?:during|from|in|of|since) )?(?:the )?(?:first|last) week of {_Q_SHORT}(?:,? {_Q_YEAR})?",),
    ),
    _Form(
        "(this|last) (week|month|quarter|year)",
        _this_or_last,
        (rf"(?<!\bthe\x20){_DURING}(?:last|this) (?:week|month|quarter|year)",),
    ),
    _Form("last weekend", _weekend, (rf"(?<!\bthe\x20){_DURING}last weekend",)),
    _Form(rf"{_COUNT} {_UNIT} ago", _ago, (rf"(?:from |of )?(?:{_Q_COUNT}|a few) {_Q_UNIT} ago",)),
    _Form(r"(\d{1,9})([dw])(?: ago)?", _ago),
    _Form(
        rf"(?:last|past) {_COUNT} {_UNIT}",
        _past,
        (rf"(?:during|in|over|within) the (?:last|past) (?:{_Q_COUNT} )?{_Q_UNIT}",),
    ),
    _Form(
        r"q(?P<number>[1-4])(?: (?P<year>\d{4}))?|(?P<first>\d{4})[ -]?q(?P<last>[1-4])",
        _named_quarter,
        (rf"(?:during|from|in|since) (?:q[1-4],? {_Q_YEAR}|{_Q_YEAR}[ -]?q[1-4])",),
    ),
    _Form(
        rf"(?P<which>this|last) {_MONTH}", _this_or_last_month, (rf"(?:(?:during|from|in|of|since) )?last {_Q_MONTHS}",)
    ),
    _Form(
        rf"(?:(?P<day>\d{{1,2}}) )?{_MONTH}(?: (?P<late>\d{{1,2}}))?(?: (?P<year>\d{{4}}))?",
        _named_month,
        (
            rf"{_LEAD}(?:the )?(?:{_Q_DAY} {_Q_CLEAR_MONTHS}|{_Q_CLEAR_MONTHS} {_Q_DAY})(?:,? {_Q_YEAR})?",
            rf"{_LEAD}(?:the )?(?:{_Q_DAY} {_Q_SHORT}|{_Q_SHORT} {_Q_DAY}),? {_Q_YEAR}",
            rf"{_LEAD}(?:the )?(?:{_Q_ORDINAL}(?: of)? {_Q_MONTHS}|{_Q_MONTHS} {_Q_ORDINAL})",
            rf"(?:on|since) (?:{_Q_DAY} {_Q_SHORT}|{_Q_SHORT} {_Q_DAY})",
            rf"(?:(?:during|from|in|of|since) )?{_Q_SHORT},? {_Q_YEAR}",
            rf"(?:during|from|in|since) {_Q_MONTHS}",
        ),
    ),
)
"""Forms of time expressions. The first form whose pattern matches is used."""

_TRIGGER: Final = re.compile(
    rf"day\b|\b(?:days|{_UNIT_NAMES}|quarter|(?:19|20)\d\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
"""Pattern that matches every query with a time expression.

Most queries do not match and skip the large patterns, which take 2 ms to compile.
"""
_MAX_WORDS: Final = 40
"""Maximum number of words in a query with a time expression. Dates in longer, probably pasted texts are ignored."""
_MIN_WORDS: Final = 2
"""Minimum number of words beside the time expression. In a shorter query, the expression is searched as words."""
_CODE: Final = r"[{}<>=\\`$|:;\[\]]|\w\(|[\r\n]"
"""Pattern of code, logs and messages. Dates in such texts are searched as words."""
_QUOTED: Final = r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|‘[^’]*’"
_OTHER_BEFORE: Final = frozenset(
    "after and as before between by each every except for next not or than through till to until versus vs week".split()
)
"""Words after which a date is not the time of the searched content: `by friday`, `every monday`."""
_OTHER_AFTER: Final = frozenset(("of", "onwards", "through", "till", "to", "until", "-", "–"))


@cache
def _in_queries() -> re.Pattern[str]:
    forms = "|".join(pattern for form in _FORMS for pattern in form.in_query)
    return re.compile(rf"(?<![^\s(])(?:{forms})(?=(?:['’]s)?[?!.,)]*(?:\s|\Z))".replace(" ", r"\s+"), _FLAGS)
