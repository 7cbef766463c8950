"""Tests of core/clock.py."""

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.clock import day_end, day_start, now, parse_instant, show_day, show_minute
from palaver.core.errors import InvalidDate

DAY = 86_400_000


def test_now_is_milliseconds_since_1970() -> None:
    """`now` is the machine's clock in milliseconds."""
    before = time.time()
    assert before * 1000 - 1 <= now() <= time.time() * 1000


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-03-01T10:00:00.000Z", 1_772_359_200_000),
        ("2026-03-01T10:00:00.123Z", 1_772_359_200_123),
        ("2026-03-01T10:00:00.123456789Z", 1_772_359_200_123),
        ("2026-03-01T12:00:00+02:00", 1_772_359_200_000),
        ("2026-03-01 10:00:00", 1_772_359_200_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_rfc_3339_is_parsed(text: str, instant: int) -> None:
    """Fractions, offsets and a missing zone (UTC) are parsed."""
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    "text",
    ["", "now", "1772359200", "2026-13-01T00:00:00Z", "2026-03-01T25:00:00Z", "\0", "9" * 5000, "2026-03-01T10:00:00Q"],
)
def test_other_text_is_not_an_instant(text: str) -> None:
    """Text that is not an instant is parsed as None."""
    assert parse_instant(text) is None


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59-14:00"]
)
def test_instants_outside_the_calendar_are_undated(text: str) -> None:
    """Instants outside the calendar are None or `undated`."""
    instant = parse_instant(text)
    assert len(show_day(instant)) in {len("undated"), len("2026-01-01")}


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.integers(-840, 840))  # noqa: DTZ001
def test_offset_does_not_change_the_instant(moment: datetime, minutes: int) -> None:
    """Texts with different offsets can describe the same instant."""
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    here = there.astimezone(UTC)

    assert parse_instant(there.isoformat()) == parse_instant(here.isoformat())


@given(st.dates(date(1, 1, 1), date(9999, 12, 30)))
def test_day_contains_all_its_instants(day: date) -> None:
    """A day ranges from its first instant to the first instant of the next day, exclusive."""
    text = day.isoformat()
    start, end = day_start(text), day_end(text)

    assert end - start == DAY
    assert (show_day(start), show_day(end - 1)) == (text, text)
    assert show_day(end) == (day + timedelta(days=1)).isoformat()
    assert show_minute(start) == f"{text} 00:00"


@pytest.mark.parametrize("function", [day_start, day_end])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "2026-1-1",
        "20260101",
        "2026-02-30",
        "2026-13-01",
        "0000-01-01",
        "2026-01-01T00:00",
        " 2026-01-01",
        "2026-01-01\n",
        "2026-W01-1",
        "yesterday",
        "２０２６-01-01",
        "2026-01-01\0",
    ],
)
def test_invalid_days_raise_an_error(function: type[int], text: str) -> None:
    """Other spellings and impossible days raise an error that contains the text."""
    with pytest.raises(InvalidDate) as refused:
        function(text)
    assert refused.value.text == text


def test_last_day_of_the_calendar_has_an_end() -> None:
    """The last day of the calendar can be an upper bound."""
    last = day_start("9999-12-31")
    assert (show_day(last), day_end("9999-12-31") - last) == ("9999-12-31", DAY)


def test_missing_time_is_undated() -> None:
    """A missing instant is shown as `undated`."""
    assert (show_day(None), show_minute(None)) == ("undated", "undated")


def test_times_are_shown_in_utc() -> None:
    """Times are shown in UTC, and seconds are dropped instead of rounded."""
    instant = parse_instant("2026-03-01T23:59:59.999Z")
    assert (show_day(instant), show_minute(instant)) == ("2026-03-01", "2026-03-01 23:59")
