"""Tests of core/reports.py."""

import re
from importlib.resources import files

import pytest

from palaver.core.reports import grouped, many, size


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("file",), "0 files"),
        (1, ("file",), "1 file"),
        (2689, ("entry", "entries"), "2,689 entries"),
        (1, ("file waits", "files wait"), "1 file waits"),
    ],
)
def test_noun_agrees_with_its_number(number: int, words: tuple[str, ...], expected: str) -> None:
    """The noun is singular for the number 1, and thousands have separators."""
    assert many(number, *words) == expected


def test_number_alone_is_grouped() -> None:
    """A number without a noun has separators for thousands."""
    assert grouped(604_940) == "604,940"


def test_small_size_is_not_zero() -> None:
    """Small sizes use a smaller unit instead of zero."""
    expected = [size(count) for count in (0, 1, 999, 1_400, 99_000, 400_000, 55_600_000, 1_500_000_000)]
    assert expected == ["0 bytes", "1 byte", "999 bytes", "1 kB", "99 kB", "0.4 MB", "55.6 MB", "1.5 GB"]


def test_templates_use_the_size_filter() -> None:
    """Templates format sizes only with the filter for sizes."""
    templates = [each for each in files("palaver.templates").iterdir() if each.name.endswith(".md.j2")]
    assert [each.name for each in templates if re.search(r"\b[kMG]B\b", each.read_text("utf-8"))] == []


def test_templates_use_the_plural_filter() -> None:
    """Templates form plurals only with the filter for plurals."""
    nouns = "exchanges|entries|files|lines|copies|sessions|memories|observations|chunks|transcripts|calls|facts|times"
    wrong = re.compile(
        rf'\{{\{{ [\w.]+(?: \| length)? \}}\}} (?:{nouns})\b|\{{\{{ "" if [^}}]+ else "(?:s|ies)" \}}\}}'
    )
    templates = [each for each in files("palaver.templates").iterdir() if each.name.endswith(".md.j2")]

    assert len(templates) > 20
    assert {each.name: found for each in templates if (found := wrong.findall(each.read_text("utf-8")))} == {}
