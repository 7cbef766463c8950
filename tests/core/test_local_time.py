"""Tests for core/local_time.py. Reference values are those of the standard library."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.errors import InvalidDate, InvalidInput
from palaver.core.local_time import day_end, day_start, find_zone, local_time, resolve, show_duration

ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "Africa/Johannesburg", "Africa/Lagos", "America/Anchorage",
    "America/Argentina/Buenos_Aires", "America/Bogota", "America/Caracas", "America/Chicago", "America/Denver",
    "America/Halifax", "America/Havana", "America/Los_Angeles", "America/Mexico_City", "America/New_York",
    "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Asia/Beirut", "Asia/Dhaka", "Asia/Gaza",
    "Asia/Jerusalem", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Shanghai", "Asia/Tehran", "Asia/Tokyo",
    "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin",
    "Europe/Dublin", "Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham",
    "Pacific/Kiritimati", "UTC",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FIRST, LAST = datetime(2017, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
zones = st.sampled_from(ZONES).map(ZoneInfo)
instants = st.integers(int(FIRST.timestamp() * 1000), int(LAST.timestamp() * 1000))
NEW_YORK = ZoneInfo("America/New_York")
WEDNESDAY = int(datetime(2026, 2, 25, 9, 15, tzinfo=NEW_YORK).timestamp() * 1000)


def moment(at: int, zone: ZoneInfo) -> datetime:
    """Return an instant in a time zone by the standard library."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).astimezone(zone)


def test_there_are_forty_zones() -> None:
    """The properties hold for forty time zones, among them those with changes at midnight and of half an hour."""
    assert len(set(ZONES)) == 40


@given(at=instants, zone=zones)
def test_a_local_time_is_that_of_the_standard_library(at: int, zone: ZoneInfo) -> None:
    """Every field agrees with `datetime` and `isocalendar`, and the ISO text is the same instant."""
    shown, expected = local_time(at, zone), moment(at, zone)

    assert round(datetime.fromisoformat(shown.iso).timestamp() * 1000) == at
    assert shown.iso == expected.isoformat("T", "milliseconds")
    assert shown.iso.endswith(shown.offset)
    assert shown.time == f"{expected:%I:%M %p}".lstrip("0")
    assert shown.day == f"{expected:%A, %B} {expected.day}, {expected.year}"
    assert (shown.weekday, shown.is_weekend) == (f"{expected:%A}", expected.isoweekday() > 5)
    assert f"{shown.week:02}" == f"{expected:%V}"


@given(at=instants, zone=zones)
def test_days_adjoin(at: int, zone: ZoneInfo) -> None:
    """Each day begins at the first instant with its date, and ends a millisecond before the next day."""
    today = moment(at, zone).date()
    start, end = resolve("start of day", zone, at), resolve("end of day", zone, at)

    assert start == resolve("today", zone, at) == day_start(today, zone)
    assert moment(start, zone).date() == moment(end, zone).date() == today
    assert moment(start - 1, zone).date() < today < moment(end + 1, zone).date()
    assert start <= at <= end
    assert resolve("yesterday", zone, at) == day_start(today - timedelta(days=1), zone)
    assert resolve("tomorrow", zone, at) == end + 1 == day_end(today, zone) + 1


@given(at=instants, zone=zones)
def test_weeks_are_those_of_iso_8601(at: int, zone: ZoneInfo) -> None:
    """A week begins on Monday and ends on Sunday."""
    today = moment(at, zone).date()
    year, week, _ = today.isocalendar()
    monday = date.fromisocalendar(year, week, 1)

    assert resolve("start of week", zone, at) == day_start(monday, zone)
    assert resolve("end of week", zone, at) == day_end(date.fromisocalendar(year, week, 7), zone)
    assert resolve("start of next week", zone, at) == day_start(monday + timedelta(days=7), zone)
    assert resolve("start of last week", zone, at) == day_start(monday - timedelta(days=7), zone)


@given(at=instants, zone=zones, weekday=st.sampled_from(WEEKDAYS))
def test_next_and_last_never_mean_today(at: int, zone: ZoneInfo, weekday: str) -> None:
    """A weekday is in the seven days after today, or in the seven days before it."""
    today = moment(at, zone).date()
    after = next(day for n in range(1, 8) if f"{(day := today + timedelta(days=n)):%A}".lower() == weekday)
    before = next(day for n in range(1, 8) if f"{(day := today - timedelta(days=n)):%A}".lower() == weekday)

    assert resolve(f"next {weekday}", zone, at) == day_start(after, zone)
    assert resolve(f"Last {weekday.capitalize()}", zone, at) == day_start(before, zone)


@given(at=instants, zone=zones)
def test_iso_texts_and_epochs_are_resolved_as_they_are(at: int, zone: ZoneInfo) -> None:
    """An ISO text with an offset, and epoch milliseconds, mean the same instant in every zone."""
    assert resolve(local_time(at, zone).iso, ZoneInfo("Asia/Tokyo"), 0) == at
    assert resolve(str(at), zone, 0) == at == resolve(" now ", zone, at)


@pytest.mark.parametrize(
    ("zone", "day", "first", "hours"),
    [
        ("America/New_York", date(2026, 3, 8), "00:00:00-05:00", 23),
        ("America/New_York", date(2026, 11, 1), "00:00:00-04:00", 25),
        ("Australia/Lord_Howe", date(2026, 10, 4), "00:00:00+10:30", 23.5),
        ("America/Sao_Paulo", date(2018, 11, 4), "01:00:00-02:00", 23),
        ("Asia/Beirut", date(2026, 3, 29), "01:00:00+03:00", 23),
    ],
)
def test_days_with_a_change_of_the_clock(zone: str, day: date, first: str, hours: float) -> None:
    """If a change skips midnight, the day begins after the change. Days can have other lengths than 24 hours."""
    start, end = day_start(day, ZoneInfo(zone)), day_end(day, ZoneInfo(zone))

    assert moment(start, ZoneInfo(zone)).isoformat() == f"{day}T{first}"
    assert (end + 1 - start) / 3_600_000 == hours


def test_the_example_of_the_specification() -> None:
    """`next Monday` in New York is the instant of the ISO text of the specification."""
    at = resolve("next Monday", NEW_YORK, WEDNESDAY)

    assert local_time(at, ZoneInfo("Europe/London")).iso == "2026-03-02T05:00:00.000+00:00"
    assert local_time(at, ZoneInfo("Asia/Tokyo")).time == "2:00 PM"
    assert at == 1_772_427_600_000


def test_a_date_without_a_zone_belongs_to_the_requested_zone() -> None:
    """Dates and times without an offset are local."""
    assert local_time(resolve("2026-03-02", NEW_YORK, 0), NEW_YORK).iso == "2026-03-02T00:00:00.000-05:00"
    assert local_time(resolve("2026-07-02T08:30", NEW_YORK, 0), NEW_YORK).iso == "2026-07-02T08:30:00.000-04:00"


def test_expressions_of_search_are_understood() -> None:
    """The common grammar of dates applies, with days of the requested zone."""
    assert local_time(resolve("3 weeks ago", NEW_YORK, WEDNESDAY), NEW_YORK).iso[:10] == "2026-02-04"
    assert (
        local_time(resolve("end of last month", NEW_YORK, WEDNESDAY), NEW_YORK).iso == "2026-01-31T23:59:59.999-05:00"
    )


@pytest.mark.parametrize(
    "text", ["", "soon", "next month's", "123", "2026-13-01", "end of", "9" * 15, "next next monday"]
)
def test_other_expressions_are_errors(text: str) -> None:
    """An unknown expression is an error that names valid ones."""
    with pytest.raises(InvalidDate) as caught:
        resolve(text, NEW_YORK, WEDNESDAY)
    assert "next Monday" in caught.value.hint


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "a\0b"])
def test_an_unknown_zone_is_an_error(name: str) -> None:
    """Only names of the system's database are time zones."""
    with pytest.raises(InvalidInput, match="Unknown time zone"):
        find_zone(name)


def test_the_default_is_the_zone_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TZ` selects the time zone. Without it, a known zone is still found."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert find_zone(None).key == "Asia/Kathmandu"
    monkeypatch.delenv("TZ")
    assert find_zone(None).key


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 seconds"),
        (61_000, "1 minute 1 second"),
        (7_500_000, "2 hours 5 minutes"),
        (90_000_000, "1 day 1 hour"),
        (86_460_000, "1 day"),
        (-5, "0 seconds"),
    ],
)
def test_durations_have_two_units(milliseconds: int, text: str) -> None:
    """A duration has at most its two largest adjacent units."""
    assert show_duration(milliseconds) == text
