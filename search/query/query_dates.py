"""The occasion of a query: the one period in it that can be meant as time alone. When in doubt it is words."""

import re
from datetime import date, timedelta
from typing import Final

from ...core.clock import day_end, day_start
from ...core.errors import InvalidDate
from ...core.periods import Period, period
from ...core.results import TimeExpression

_LONGEST: Final = 40
"""Words of a question; what is longer was pasted, and tells its own dates."""
_LEAST: Final = 2
"""Words that must be left: a date alone is looked for as it stands."""
_FOREIGN: Final = re.compile(r"[{}<>=\\`$|:;\[\]]|\w\(|[\r\n]")
"""Signs of code, of logs and of messages, in which dates are texts."""
_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|‘[^’]*’")
_WORD: Final = re.compile(r"[^\W\d_]+")
_OTHER_BEFORE: Final = frozenset(
    "after and as before between by each every except for next not or than through till to until versus vs week".split()
)
"""Words that make another thing of the date that follows: a bound, a deadline, something that returns."""
_OTHER_AFTER: Final = frozenset(("of", "onwards", "through", "till", "to", "until", "-", "–"))

_DAYS: Final = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SURE: Final = "(?:january|february|april|june|july|august|september|october|november|december)"
_MONTHS: Final = f"(?:{_SURE}|may|march)"
_SHORT: Final = f"(?:{_MONTHS}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
"""`may`, `march` and `dec` are other words, too, and need more beside them to be months."""
_DAY: Final = r"\d{1,2}(?:(?:st|nd|rd|th)(?: of)?)?"
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)"
_YEAR: Final = r"(?:19|20)\d\d"
_COUNT: Final = r"(?:\d{1,2}|an?|a couple of|one|two|three|four|five|six|seven|eight|nine|ten)"
_UNIT: Final = "(?:week|month|quarter|year)"
_FORMS: Final = (
    r"(?:(?:from|of|on|since) )?(?:the day before )?yesterday",
    rf"(?:from |of )?(?:{_COUNT}|a few) (?:day|week|month)s? ago",
    rf"(?:during|in|over|within) the (?:last|past) (?:{_COUNT} )?(?:day|week|month)s?",
    rf"(?:(?:from|of|on|since) )?last {_DAYS}",
    rf"(?:from|on|since) {_DAYS}",
    rf"(?<!\bthe\x20)(?:(?:during|from|of|since) )?(?:last (?:weekend|{_UNIT})|this {_UNIT})",
    rf"(?:(?:from|of|on|since) )?(?:the )?(?:{_DAY} {_SURE}|{_SURE} {_DAY})(?:,? {_YEAR})?",
    rf"(?:(?:from|of|on|since) )?(?:the )?(?:{_DAY} {_SHORT}|{_SHORT} {_DAY}),? {_YEAR}",
    rf"(?:(?:from|of|on|since) )?(?:the )?(?:{_ORDINAL}(?: of)? {_MONTHS}|{_MONTHS} {_ORDINAL})",
    rf"(?:on|since) (?:{_DAY} {_SHORT}|{_SHORT} {_DAY})",
    rf"(?:from|of|on|since) {_YEAR}-\d\d-\d\d",
    rf"(?:(?:during|from|in|of|since) )?(?:{_SHORT},? {_YEAR}|last {_MONTHS})",
    rf"(?:during|from|in|since) (?:{_MONTHS}|q[1-4],? {_YEAR}|{_YEAR}[ -]?q[1-4])",
    r"today(?=[?!.]*\Z)",
)
_SAID: Final = re.compile(
    rf"(?<![^\s(])(?:{'|'.join(_FORMS)})(?=(?:['’]s)?[?!.,)]*(?:\s|\Z))".replace(" ", r"\s+"), re.ASCII | re.IGNORECASE
)
_LED: Final = re.compile(r"(from|of|since)\s+(?:the\s+)?", re.ASCII | re.IGNORECASE)
_AGO: Final = re.compile(r"(?P<few>a few )?.*?(?P<unit>day|week|month)s? ago", re.ASCII | re.IGNORECASE)
_SPREAD: Final = {"day": (0, 2), "week": (3, 14), "month": (15, 60)}
"""Days before and after the one that so many units ago was: nobody counts weeks by the day. The second is of `a few`,
which is three at first.
"""
_FEW: Final = re.compile(r"\ba few\b", re.ASCII | re.IGNORECASE)
_STOP: Final = re.compile(r"[?!.,)]")
_POSSESSIVE: Final = re.compile(r"\A['’]s\b")


def taken_out(typed: str, today: date | None = None) -> tuple[str, TimeExpression | None]:
    """What was typed without the words of its occasion, which is meant as seen from `today`; all of it, and None, where
    no period, or more than one, is said.
    """
    plain = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), typed)
    if _FOREIGN.search(plain) or len(typed.split()) > _LONGEST:
        return typed, None
    found = list(_SAID.finditer(plain))
    if len(found) != 1 or _is_other(plain, found[0]):
        return typed, None
    said = " ".join(found[0][0].split())
    before, after = typed[: found[0].start()], _POSSESSIVE.sub("", typed[found[0].end() :])
    left = (before.rstrip() if _STOP.match(after) else before) + after
    try:
        days = _meant(said, today)
    except (InvalidDate, OverflowError):
        return typed, None
    if len(_WORD.findall(left)) < _LEAST:
        return typed, None
    begin, end = day_start(days.first.isoformat()), day_end(days.last.isoformat())
    return " ".join(left.split()), TimeExpression(said, begin, end)


def _is_other(plain: str, found: re.Match[str]) -> bool:
    """Whether the words beside it make a date something else than when it was."""
    before, after = plain[: found.start()].lower().split(), plain[found.end() :].lower().split()
    return not _OTHER_BEFORE.isdisjoint(before[-1:]) or not _OTHER_AFTER.isdisjoint(after[:1])


def _meant(said: str, today: date | None) -> Period:
    """The days of it; since some day, those up to today; some time ago, those around that. Raises `InvalidDate`."""
    led = _LED.match(said)
    plain = said[led.end() :] if led else said
    days = period(_FEW.sub("three", plain), today)
    if ago := _AGO.fullmatch(plain):
        around = timedelta(days=_SPREAD[ago["unit"].lower()][bool(ago["few"])])
        return Period(days.first - around, days.last + around)
    if led and led[1].lower() == "since":
        return Period(days.first, max(days.last, period("today", today).last))
    return days
