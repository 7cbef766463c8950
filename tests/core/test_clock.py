"""Tests of core/conversation.py."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import (
    current_day,
    day_end,
    day_start,
    now,
    parse_instant,
    show_day,
    show_instant,
    show_millisecond,
    show_minute,
    use_time_zone,
)
from palaver.core.errors import InvalidDate

from ..cases import for_each

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
@for_each(
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


def test_seconds_are_dropped() -> None:
    """Seconds are dropped instead of rounded."""
    instant = parse_instant("2026-03-01T23:59:59.999Z")
    assert (show_day(instant), show_minute(instant)) == ("2026-03-01", "2026-03-01 23:59")


def in_system_zone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the time zone of the system, as it is when a process starts."""
    monkeypatch.setenv("TZ", name)
    time.tzset()


ZONES = {
    "Asia/Seoul": ("2026-05-05", "2026-05-05 05:30", "2026-05-04T15:00:00Z"),
    "Asia/Kathmandu": ("2026-05-05", "2026-05-05 02:15", "2026-05-04T18:15:00Z"),
    "America/St_Johns": ("2026-05-04", "2026-05-04 18:00", "2026-05-04T02:30:00Z"),
    "Pacific/Kiritimati": ("2026-05-05", "2026-05-05 10:30", "2026-05-04T10:00:00Z"),
    "Pacific/Pago_Pago": ("2026-05-04", "2026-05-04 09:30", "2026-05-04T11:00:00Z"),
    "KST-9": ("2026-05-05", "2026-05-05 05:30", "2026-05-04T15:00:00Z"),
    "UTC": ("2026-05-04", "2026-05-04 20:30", "2026-05-04T00:00:00Z"),
}
"""Day, minute and first instant of the day for 2026-05-04T20:30Z, by the value of `TZ`."""


def test_days_are_those_of_the_system_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days and shown times are in the time zone of the system, and instants stay in UTC."""
    at = parse_instant("2026-05-04T20:30:00Z") or 0
    for zone, (day, minute, start) in ZONES.items():
        in_system_zone(zone, monkeypatch)

        assert (show_day(at), show_minute(at), show_instant(day_start(day))) == (day, minute, start), zone
        assert day_start(day) <= at < day_end(day), zone
        assert (show_instant(at), show_millisecond(at)) == ("2026-05-04T20:30:00Z", "2026-05-04T20:30:00.000Z"), zone


def test_a_selected_zone_replaces_that_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point can select UTC or any other zone."""
    in_system_zone("Asia/Seoul", monkeypatch)
    at = parse_instant("2026-05-04T20:30:00Z")
    use_time_zone(UTC)
    assert (show_day(at), show_instant(day_start("2026-05-05"))) == ("2026-05-04", "2026-05-05T00:00:00Z")
    use_time_zone(ZoneInfo("America/New_York"))
    assert (show_minute(at), show_instant(day_start("2026-05-05"))) == ("2026-05-04 16:30", "2026-05-05T04:00:00Z")
    use_time_zone(None)
    assert show_day(at) == "2026-05-05"


@pytest.mark.parametrize("selected", [False, True])
def test_days_with_a_change_of_the_clock(monkeypatch: pytest.MonkeyPatch, selected: bool) -> None:
    """Days of 23, 24.5 and 25 hours adjoin, also where midnight is skipped or occurs twice."""
    changes = {
        ("America/New_York", "2026-03-08"): 23.0,
        ("America/New_York", "2026-11-01"): 25.0,
        ("America/Sao_Paulo", "2018-11-04"): 23.0,  # midnight is skipped
        ("America/Havana", "2026-11-01"): 25.0,  # midnight occurs twice
        ("Australia/Lord_Howe", "2026-04-05"): 24.5,
        ("Pacific/Apia", "2011-12-30"): 0.0,  # the day is skipped
    }
    for (zone, text), hours in changes.items():
        in_system_zone("UTC" if selected else zone, monkeypatch)
        use_time_zone(ZoneInfo(zone) if selected else None)
        start, end, next_day = day_start(text), day_end(text), date.fromisoformat(text) + timedelta(days=1)

        assert (end - start) / 3_600_000 == hours, zone
        assert day_start(next_day.isoformat()) == end, zone
        assert show_day(end) == next_day.isoformat() > show_day(start - 1), zone
        assert not hours or (show_day(start), show_day(end - 1)) == (text, text), zone


def test_the_current_day_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today begins at local midnight."""
    for zone in ZONES:
        in_system_zone(zone, monkeypatch)
        before, today, after = show_day(now()), current_day().isoformat(), show_day(now())
        assert before <= today <= after, zone


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_ends_of_the_calendar_in_every_zone(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """The first and the last day of the calendar have a beginning and an end in every zone."""
    in_system_zone(zone, monkeypatch)
    for selected in (None, ZoneInfo(zone)):
        use_time_zone(selected)
        for day in ("0001-01-01", "9999-12-31"):
            assert day_start(day) < day_end(day)
            assert len(show_minute(day_start(day))) in {len("undated"), len("2026-01-01 00:00")}
