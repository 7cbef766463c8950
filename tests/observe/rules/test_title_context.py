"""A title can be understood without its conversation."""

import pytest

from palaver.core.sentences import TITLE_MAX
from palaver.observe.rules.exchange_analysis import analyze_exchange
from palaver.observe.rules.title_candidates import Source, TitleCandidate
from palaver.observe.rules.title_context import in_context

from .exchange_script import Script

RESULT = "The token was refreshed twice"


def shown(title: str, session_title: str, script: Script, source: Source = Source.ANSWER) -> str:
    """Return the title with its context."""
    best = TitleCandidate(title, source, 0, title)
    return in_context(best, analyze_exchange(script.exchange), session_title)


@pytest.mark.parametrize(
    ("session_title", "request_text", "expected"),
    [
        ("Login redirect loop", "Why?", "Login redirect loop: the token was refreshed twice"),
        ("Plan: Login redirect loop", "Why?", "Login redirect loop: the token was refreshed twice"),
        (
            "why does it fail?",
            "Fix the login redirect loop",
            "Fix the login redirect loop: the token was refreshed twice",
        ),
        ("Refresh of tokens", "Why?", RESULT),
        ("Login redirect loop", "Fix the token", RESULT),
        ("https://example.com/issues/12", "Why?", RESULT),
        ("what do you think about my login", "Why?", RESULT),
        ("", "Green is wrong here", RESULT),
    ],
)
def test_subject_comes_first(session_title: str, request_text: str, expected: str) -> None:
    """A result that names neither the topic of the session nor of the request comes after that topic."""
    assert shown(RESULT, session_title, Script().asked(request_text)) == expected


def test_commit_subject_is_complete() -> None:
    """A commit subject needs no context."""
    script = Script().asked("Commit this")

    assert shown("Refresh the token once", "Login redirect loop", script, Source.COMMIT) == "Refresh the token once"


def test_points_of_a_list_follow_a_short_title() -> None:
    """A request that the answer fulfils in three or more points is followed by their labels."""
    script = (
        Script()
        .asked("Improve the checkout")
        .said(
            "- **Address lookup**: by postcode\n- **Saved cards** — encrypted\n"
            "- **`cart.py`** — split\n- **Guest orders**: no account"
        )
    )

    assert shown("Improve the checkout", "", script, Source.REQUEST) == (
        "Improve the checkout: Address lookup; Saved cards; Guest orders"
    )


def test_two_points_are_not_enough() -> None:
    """A title without three labelled points is unchanged."""
    script = (
        Script().asked("Improve the checkout").said("- **Address lookup**: by postcode\n- **Saved cards** — encrypted")
    )

    assert shown("Improve the checkout", "", script, Source.REQUEST) == "Improve the checkout"


def test_title_in_context_is_not_longer() -> None:
    """A title with its subject is at most as long as any title."""
    script = Script().asked("Why?")

    assert len(shown("word " * 31, "Login redirect loop", script)) <= TITLE_MAX
