"""Dates as people say them."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.clock import day_end, day_start
from palaver.core.errors import InvalidDate, InvalidInput
from palaver.core.time_expressions import between, date_range, end_of, start_of

TODAY = date(2026, 3, 31)
"""A Tuesday, and the last of its month."""


@pytest.mark.parametrize(
    ("text", "first", "last"),
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
        ("last weekend", "2026-03-28", "2026-03-29"),
        ("a couple of weeks ago", "2026-03-17", "2026-03-17"),
        ("5d", "2026-03-26", "2026-03-26"),
        ("2w", "2026-03-17", "2026-03-17"),
        ("past week", "2026-03-24", "2026-03-31"),
        ("in the last month", "2026-02-28", "2026-03-31"),
        ("within the last 2 weeks", "2026-03-17", "2026-03-31"),
    ],
)
def test_words_name_days(text: str, first: str, last: str) -> None:
    """A period is the days from its first to its last, seen from today."""
    assert (start_of(text, TODAY), end_of(text, TODAY)) == (day_start(first), day_end(last))


def test_since_and_until_are_said_of_their_own_bound() -> None:
    """`since` goes with a lower bound and `until` with an upper one; either is refused of the other."""
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
def test_what_would_have_to_be_guessed_is_refused_with_what_to_say_instead(text: str, hint: str) -> None:
    """Summer is in June or in December, and 24 hours ago is no day, whichever bound it is meant for."""
    for read in (date_range, start_of, end_of):
        with pytest.raises(InvalidDate) as refused:
            read(text, TODAY)
        assert hint in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "feb 30", "2026-02-30", "99999999 years ago", "0000", "in 3 days", "٣", "next week", "3 march 26",
        "last july 4", "03/01/2026", "01.03.2026", "20.26", "q5", "q0 2026", "ma", "2 days", "5m",
    ],
)  # fmt: skip
def test_what_names_no_day_is_refused(text: str) -> None:
    """The error says which words are understood."""
    with pytest.raises(InvalidDate, match="Invalid date format") as refused:
        date_range(text, TODAY)
    assert "last tuesday" in refused.value.hint


def test_a_range_is_in_order() -> None:
    """One day is a range, and either end may be open; what ends before it begins is refused, as is what is no day."""
    day = "2026-03-01"
    assert between(day, day) == (day_start(day), day_end(day))
    assert (between(day, None), between(None, day)) == ((day_start(day), None), (None, day_end(day)))
    with pytest.raises(InvalidInput, match="2026-03-02 is later than 2026-03-01"):
        between("2026-03-02", day)
    with pytest.raises(InvalidDate):
        between("", None)


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.text(max_size=30))
def test_no_text_breaks_it(today: date, text: str) -> None:
    """Whatever is typed on whatever day, it is a period in order, or it is refused."""
    try:
        found = date_range(text, today)
    except InvalidDate:
        return
    assert found.first <= found.last
