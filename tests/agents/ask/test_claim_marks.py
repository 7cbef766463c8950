"""Marks in a model's answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.agents.ask.citation_check import NO_SOURCE, NOT_READ, ids_in, mark_claims, unwrapped
from palaver.core.results import CitedSource

from ...cases import for_each

KNOWN = (
    CitedSource("obs-7", path="claude-code/x.jsonl", start_line=1, end_line=2),
    CitedSource(label="claude-code/x.jsonl", path="claude-code/x.jsonl", start_line=12, end_line=14),
    CitedSource("obs-9", exists=False),
    CitedSource(label="claude-code/x.jsonl", path="claude-code/x.jsonl", start_line=12, end_line=90),
    CitedSource(label="claude-code/y.jsonl", path="claude-code/y.jsonl", start_line=3, end_line=3),
)


def is_read(source: CitedSource) -> bool:
    return source.id == "obs-7" or source.end_line == 14


def marked(text: str) -> str:
    return mark_claims(text, KNOWN, is_read).text


@for_each(
    "text",
    [
        "The cache was cold after each start. [obs-7]",
        "The cache was cold after each start. (OBS-7)",
        "- The cache was cold\n  after each start [obs-7].",
        "It broke again in the spring of that year, see claude-code/x.jsonl:12-14",
        "# The cache was cold after each start",
        "Findings about the cold cache:",
        "Probably the cache was cold after each start.",
        "See:\n```\nthe cache was cold after each start\n```",
        "- The cache was cold. It is warm today. [obs-7]",
        "The cache was cold. It is warm today, e.g. after noon [obs-7].",
        "| What was it | Where was it said |\n| --- | --- |\n| The cache was cold | obs-7 |",
        "**Decisions and fixes**",
        "---",
    ],
)
def test_supported_claims_and_layout_are_not_marked(text: str) -> None:
    """Claims with a valid citation, headings, labels, code and conclusions of the model stay unchanged."""
    assert marked(text) == text


@for_each(
    "text, expected",
    [
        ("The cache was cold after start.", f"The cache was cold after start. {NO_SOURCE}"),
        (
            "- The cache was cold\n  after each start.\n- It is warm now. [obs-7]",
            f"- The cache was cold\n  after each start. {NO_SOURCE}\n- It is warm now. [obs-7]",
        ),
        (
            "The cache was cold after start.\n\nIt was warm again later [obs-7].",
            f"The cache was cold after start. {NO_SOURCE}\n\nIt was warm again later [obs-7].",
        ),
        ("1. The cache was cold today. [obs-70]", f"1. The cache was cold today. [obs-70] {NO_SOURCE}"),
        ("| The cache was cold | nowhere |", f"| The cache was cold | nowhere | {NO_SOURCE}"),
        ("It uses SQLite [obs-7]. The boss hated it.", f"It uses SQLite [obs-7]. The boss hated it. {NO_SOURCE}"),
        ("It uses SQLite. [obs-7] It cost a million.", f"It uses SQLite. [obs-7] It cost a million. {NO_SOURCE}"),
        (
            "Nothing found about Redis.\n\nUse Redis with a TTL of ten minutes.",
            f"Nothing found about Redis.\n\nUse Redis with a TTL of ten minutes. {NO_SOURCE}",
        ),
        (
            "Probably it is fine. The migration took nine weeks. Probably it was large.",
            f"Probably it is fine. The migration took nine weeks. {NO_SOURCE} Probably it was large.",
        ),
        (
            "It is warm [obs-7].\n\nNothing found about X. But the team always deploys on Friday.",
            f"It is warm [obs-7].\n\nNothing found about X. But the team always deploys on Friday. {NO_SOURCE}",
        ),
        ("```\nThe cache was cold today.\n```", f"The cache was cold today. {NO_SOURCE}"),
        ("```markdown\nThe cache was cold today.", f"The cache was cold today. {NO_SOURCE}"),
    ],
)
def test_claims_without_a_source_are_marked(text: str, expected: str) -> None:
    """A sentence or table row without a valid citation is marked, except before a citation that ends its block."""
    assert marked(text) == expected
    assert mark_claims(text, KNOWN, is_read).unsupported == 1


def test_unread_ids_are_marked() -> None:
    """An ID that exists, but was not read, is marked, and supports no claim."""
    found = mark_claims("The cache was cold today. [obs-7]", KNOWN, lambda _: False)

    assert found.text == f"The cache was cold today. [obs-7 {NOT_READ}]"
    assert found.unsupported == 1
    assert KNOWN[0] not in found.sources


@pytest.mark.parametrize("lines", ["claude-code/y.jsonl:3", "claude-code/x.jsonl:12-90"])
def test_unread_lines_are_marked(lines: str) -> None:
    """Lines that exist, but were not read, are marked, and support no claim."""
    found = mark_claims(f"The cache was cold today. [{lines}]", KNOWN, is_read)

    assert found.text == f"The cache was cold today. [{lines} {NOT_READ}]"
    assert found.unsupported == 1


def test_every_sentence_after_a_citation_is_judged() -> None:
    """Each sentence without a source counts as one claim."""
    found = mark_claims("It uses SQLite [obs-7]. The boss hated it. It cost a million.", KNOWN, is_read)

    assert found.text.count(NO_SOURCE) == found.unsupported == 2


def test_ids_are_found_in_every_form() -> None:
    """IDs of all kinds are found in the results of tools."""
    assert ids_in(["obs-1 02-03 0b6f", "See ex-2, mem_3, chunk_4; not xobs-5, obs-6b or a/obs-7."]) == {
        "obs-1",
        "ex-2",
        "mem_3",
        "chunk_4",
    }


@given(st.text(alphabet="aB1 -*#|`~\n[]obs7.:", max_size=200))
def test_marks_only_add_text(text: str) -> None:
    """Without its marks, a marked text has the same words as before."""
    found = mark_claims(text, KNOWN, is_read)

    assert found.text.replace(NO_SOURCE, "").split() == unwrapped(text).split()
    assert found.text.count(NO_SOURCE) == found.unsupported
