"""Salience of statements agrees with human judgement."""

import pytest

from palaver.observe.rules.salience import CHANGED, is_noise, is_status, salience

from ...cases import for_each


@for_each(
    "text",
    [
        "Let me check the tests first.",
        "Good — now I'll update the parser.",
        "Now update the imports in `cart.py`.",
        "All done. Here's a summary of the changes.",
        "If you'd like, I can also add a test.",
        "Should I commit this?",
        "The valid values are:",
        "`src/cart.py:12-30`, `src/tax.py`",
        "You're absolutely right!",
        "The mock is wrong, I need to fix it",
        "/clear first for a fresh context",
        "Ready when you are — run the next step.",
    ],
)
def test_noise(text: str) -> None:
    """Promises, greetings, questions, announcements and bare paths are noise."""
    assert is_noise(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let's use SQLite because it needs no server.",
        "The parser skipped `null`, so totals were wrong.",
        "Now failed payments are retried three times.",
        "I replaced the timer with `asyncio.timeout`.",
        "Now the `Text` component properly implements `invalidate()`.",
    ],
)
def test_not_noise(text: str) -> None:
    """Choices, causes and changes are not noise."""
    assert not is_noise(text)


@for_each(
    "text, expected",
    [
        ("All 212 tests pass and lint is clean.", True),
        ("Committed as `1a2b3c4`.", True),
        ("Pushed to `origin/main`.", True),
        ("The parser keeps comments.", False),
        ("Commit: 8bf2d942 fix the parser", True),
        ("Branch: parser-fixes", True),
        ("The branch is parser-fixes, and main is one commit behind", True),
        ("Verified HEAD and `origin/main` match.", True),
        ("Deleted the stale branch parser-fixes.", True),
        ("PR is ready for review.", True),
        ("The branch of the parser that reads numbers was never taken.", False),
        ("Switched from `requests` to `httpx`.", False),
    ],
)
def test_status_is_recognised(text: str, expected: bool) -> None:
    """Results of checks, commits and pushes are status messages."""
    assert is_status(text) is expected


def test_causes_and_names_are_more_salient() -> None:
    """A cause with names is more salient than a change, and a change is more salient than a plain remark."""
    cause = "`Cart.total` was wrong because `round` ran before the discount."
    change = "Added `Cart.total` to the checkout page."
    remark = "The page looks a little better than before."

    assert salience(cause) > salience(change) > salience(remark)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Added a cart", True),
        ("I've also removed the footer", True),
        ("The six blocks are now wrapped in a guard", True),
        ("Footer now uses `dim` instead of `muted`", True),
        ("All packages bumped to 0.8.0", True),
        ("It was removed", False),
        ("The key is not used", False),
        ("Now you can use it", False),
        ("No files changed or added", False),
    ],
)
def test_completed_changes_are_recognised(text: str, expected: bool) -> None:
    """A verb in active or passive voice, or the resulting state, indicates a completed change.

    A bare pronoun does not.
    """
    assert (CHANGED.match(text) is not None) is expected
