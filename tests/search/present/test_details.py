"""Tests of titles of exchanges without observations."""

import pytest

from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.search.present.details import of_exchange


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Why does the kettle leak?", "Why does the kettle leak?"),
        (
            "Implement the following plan:\n\n# Plan: Mend the kettle\n\n## Context\n\nIt leaks.",
            "Plan: Mend the kettle",
        ),
        ("Implement the following plan: mend it", "Implement the following plan: mend it"),
        ("# Kettles\n\nThey leak.", "# Kettles They leak."),
        ("word " * 40, "word " * 15 + "word…"),
    ],
)
def test_the_title_of_an_exchange_is_its_prompt(prompt: str, title: str) -> None:
    """A prompt with a plan has the heading of the plan as its title, because all plans have the same introduction."""
    turns = (Turn(1, Speaker.HUMAN, Kind.PROMPT, prompt),)

    assert of_exchange(Exchange(0, Span(1, 1, 0, 0), turns, None, None)).title == title


@pytest.mark.parametrize(
    ("inserted", "quote"),
    [
        ((Kind.INJECTED, "Caveat: generated"), "Why does it leak?"),
        ((Kind.PROMPT, "So I asked, and " + "asked " * 30), "So I asked, and " + " ".join(["asked"] * 17)),
        ((Kind.PROMPT, "x" * 200), "x" * 120),
        ((Kind.PROMPT, " " * 130 + "So I asked"), "So I asked"),
    ],
)
def test_a_title_is_the_beginning_of_the_prompt(inserted: tuple[Kind, str], quote: str) -> None:
    """The title omits text that the agent's program inserted. A long prompt is truncated between words."""
    turns = (Turn(1, Speaker.HOST, *inserted), Turn(2, Speaker.HUMAN, Kind.PROMPT, "Why does it leak?"))
    shown = of_exchange(Exchange(0, Span(1, 2, 0, 0), turns, None, None))

    assert [proof.quote for proof in shown.evidence] == [quote]
    assert shown.new_quotes == () or " " not in quote
