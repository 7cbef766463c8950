"""Headings of an answer state a result, or only introduce what follows."""

import pytest

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.classification import stated_headings, without_advice
from palaver.observe.rules.statements import Heading, headings


def stated(markdown: str) -> list[str]:
    """Return the texts of the headings of a reply that state a result."""
    return [text for text, _ in stated_headings(headings(Turn(1, Speaker.ASSISTANT, Kind.PROSE, markdown)))]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("## Verdict: possible, with one limit", "Verdict: possible, with one limit"),
        ("### 2. `--offline` is ignored by the exporter — export.py:12-30", "--offline is ignored by the exporter"),
        ("**3. The cart has no test for guests** (`cart.py`)", "The cart has no test for guests"),
        ("- **`parsePrice` never rounds** (`price.py`). It cuts.", "parsePrice never rounds"),
        ("Removed the two caches of prices:\n\n- one\n- two", "Removed the two caches of prices"),
        ("All good. The cart and the list now share one index:\n\n- a", "The cart and the list now share one index"),
        ("I’d keep the prices in a table:", "I’d keep the prices in a table"),
    ],
)
def test_a_heading_states_a_result(markdown: str, expected: str) -> None:
    """A heading with a verdict, a finding, a change or advice is a result, without its number and its place."""
    assert stated(markdown) == [expected]


@pytest.mark.parametrize(
    "markdown",
    [
        "## Overview",
        "## What is wrong with the prices",
        "Here is what the cart does now:",
        "Invalid prices now will:",
        "### Issue 1: wrong prices are shown",
        "```\n## The prices are wrong here\n```",
    ],
)
def test_a_heading_introduces(markdown: str) -> None:
    """A topic, an announcement, an unfinished sentence and code are no results."""
    assert stated(markdown) == []


def test_the_first_line_leads() -> None:
    """Only a heading on the first line of a reply begins it."""
    turn = Turn(1, Speaker.ASSISTANT, Kind.PROSE, "Changed two prices:\n\n- a\n\n## Tests\n\n- b")

    assert list(headings(turn)) == [Heading("Changed two prices:", leads=True), Heading("Tests", leads=False)]


def test_advice_is_an_instruction() -> None:
    """A recommendation is shown without the person who gives it."""
    assert without_advice("I would keep the prices in a table") == "keep the prices in a table"
