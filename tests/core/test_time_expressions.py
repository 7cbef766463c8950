"""Tests of core/time_expressions.py."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import day_end, day_start
from palaver.core.errors import InvalidDate, InvalidInput
from palaver.core.time_expressions import between, date_range, end_of, start_of

from ..cases import for_each

TODAY = date(2026, 3, 31)
"""Date used as today: a Tuesday, and the last day of its month."""


@for_each(
    "text, first, last",
    [
        ("2026-03-01", "2026-03-01", "2026-03-01"),
        ("2026-02", "2026-02-01", "2026-02-28"),
        ("2025", "2025-01-01", "2025-12-31"),
        (" Yesterday ", "2026-03-30", "2026-03-30"),
        ("the day before yesterday", "2026-03-29", "2026-03-29"),
        ("tuesday", "2026-03-31", "2026-03-31"),
        ("last tuesday", "2026-03-24", "2026-03-24"),
        ("on wed", "2026-03-25", "2026-03-25"),
        ("3 weeks ago", "2026-03-10", "2026-03-10"),
        ("a month ago", "2026-02-28", "2026-02-28"),
        ("two years ago", "2024-03-31", "2024-03-31"),
        ("past 7 days", "2026-03-24", "2026-03-31"),
        ("last week", "2026-03-23", "2026-03-29"),
        ("this month", "2026-03-01", "2026-03-31"),
        ("march", "2026-03-01", "2026-03-31"),
        ("april", "2025-04-01", "2025-04-30"),
        ("3 march", "2026-03-03", "2026-03-03"),
        ("March 3, 2025", "2025-03-03", "2025-03-03"),
        ("march 3rd", "2026-03-03", "2026-03-03"),
        ("the 1st of february", "2026-02-01", "2026-02-01"),
        ("in february", "2026-02-01", "2026-02-28"),
        ("during Sept.", "2025-09-01", "2025-09-30"),
        ("last july", "2025-07-01", "2025-07-31"),
        ("last february", "2026-02-01", "2026-02-28"),
        ("last march", "2025-03-01", "2025-03-31"),
        ("this march", "2026-03-01", "2026-03-31"),
        ("q3 2025", "2025-07-01", "2025-09-30"),
        ("2025-Q4", "2025-10-01", "2025-12-31"),
        ("q1", "2026-01-01", "2026-03-31"),
        ("q2", "2025-04-01", "2025-06-30"),
        ("this quarter", "2026-01-01", "2026-03-31"),
        ("last quarter", "2025-10-01", "2025-12-31"),
        ("last week of july", "2025-07-25", "2025-07-31"),
        ("in the last week of july", "2025-07-25", "2025-07-31"),
        ("first week of march 2026", "2026-03-01", "2026-03-07"),
        ("last weekend", "2026-03-28", "2026-03-29"),
        ("a couple of weeks ago", "2026-03-17", "2026-03-17"),
        ("5d", "2026-03-26", "2026-03-26"),
        ("2w", "2026-03-17", "2026-03-17"),
        ("past week", "2026-03-24", "2026-03-31"),
        ("in the last month", "2026-02-28", "2026-03-31"),
        ("within the last 2 weeks", "2026-03-17", "2026-03-31"),
    ],
)
def test_time_expressions_are_date_ranges(text: str, first: str, last: str) -> None:
    """A time expression is a range from its first to its last day, relative to today."""
    assert (start_of(text, TODAY), end_of(text, TODAY)) == (day_start(first), day_end(last))


def test_since_and_until_belong_to_their_bounds() -> None:
    """`since` is accepted only for a lower bound, and `until` only for an upper bound."""
    assert start_of("since Monday", TODAY) == start_of("from the 30th of march", TODAY) == day_start("2026-03-30")
    assert end_of("until last week", TODAY) == day_end("2026-03-29")
    for bound, text in ((end_of, "since monday"), (start_of, "until monday"), (start_of, "before march")):
        with pytest.raises(InvalidDate):
            bound(text, TODAY)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("last summer", "name months"),
        ("fall 2025", "name months"),
        ("24 hours ago", "unit is a day"),
        ("now", "unit is a day"),
    ],
)
def test_ambiguous_expressions_are_refused_with_a_hint(text: str, hint: str) -> None:
    """Expressions such as `last summer` and `24 hours ago` are refused with a hint for every bound."""
    for read in (date_range, start_of, end_of):
        with pytest.raises(InvalidDate) as refused:
            read(text, TODAY)
        assert hint in refused.value.hint


@for_each(
    "text",
    [
        "", "soon", "feb 30", "2026-02-30", "99999999 years ago", "0000", "in 3 days", "٣", "next week", "3 march 26",
        "last july 4", "03/01/2026", "01.03.2026", "20.26", "q5", "q0 2026", "ma", "2 days", "5m",
    ],
)  # fmt: skip
def test_other_text_is_not_a_date(text: str) -> None:
    """The error lists expressions that are accepted."""
    with pytest.raises(InvalidDate, match="Invalid date format") as refused:
        date_range(text, TODAY)
    assert "last tuesday" in refused.value.hint


def test_range_is_in_order() -> None:
    """A range may be one day or open at one end. An end before the start and invalid days are refused."""
    day = "2026-03-01"
    assert between(day, day) == (day_start(day), day_end(day))
    assert (between(day, None), between(None, day)) == ((day_start(day), None), (None, day_end(day)))
    with pytest.raises(InvalidInput, match="2026-03-02 is later than 2026-03-01"):
        between("2026-03-02", day)
    with pytest.raises(InvalidDate):
        between("", None)


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.text(max_size=30))
def test_any_text_is_a_range_or_refused(today: date, text: str) -> None:
    """On any day, any text is a range in order or raises `InvalidDate`."""
    try:
        found = date_range(text, today)
    except InvalidDate:
        return
    assert found.first <= found.last
