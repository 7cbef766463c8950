"""Times without a time zone, which some agents record, are in the zone of the system."""

import pytest

from palaver.archiver.formats.json_values import local_instant

from .reading import system_zone


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2026-03-01T11:00:00.500000", 1_772_359_200_500),
        ("2026-07-01T12:00:00", 1_782_900_000_000),
        ("2026-03-01T10:00:00Z", 1_772_359_200_000),
        ("2026-03-01T12:00:00+02:00", 1_772_359_200_000),
        (1772359200.5, 1_772_359_200_500),
        ("0001-01-01T00:00:00", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_a_time_without_a_zone_is_local(value: object, at: int | None) -> None:
    """Other times keep their zone. A time that is none, or that has no representation, is unknown."""
    with system_zone("Europe/Berlin"):
        assert local_instant(value) == at
