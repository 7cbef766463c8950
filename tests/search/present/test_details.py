"""Details: what an exchange is called where nothing was learned from it."""

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
def test_an_exchange_is_called_by_what_was_asked(prompt: str, title: str) -> None:
    """A plan that is handed over is called by its heading, since all plans are introduced alike."""
    turns = (Turn(1, Speaker.HUMAN, Kind.PROMPT, prompt),)

    assert of_exchange(Exchange(0, Span(1, 1, 0, 0), turns, None, None)).title == title


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ((Kind.INJECTED, "Caveat: generated"), "Why does it leak?"),
        ((Kind.PROMPT, "So I asked, and " + "asked " * 30), "So I asked, and " + " ".join(["asked"] * 17)),
        ((Kind.PROMPT, "x" * 200), "x" * 120),
        ((Kind.PROMPT, " " * 130 + "So I asked"), "So I asked"),
    ],
)
def test_what_was_asked_is_quoted_in_whole_words(said: tuple[Kind, str], quote: str) -> None:
    """Not what the agent's program put before it, which is the same everywhere; of a long prompt the beginning, which
    the prompt itself says in these words.
    """
    turns = (Turn(1, Speaker.HOST, *said), Turn(2, Speaker.HUMAN, Kind.PROMPT, "Why does it leak?"))
    shown = of_exchange(Exchange(0, Span(1, 2, 0, 0), turns, None, None))

    assert [proof.quote for proof in shown.evidence] == [quote]
    assert shown.new_quotes == () or " " not in quote
