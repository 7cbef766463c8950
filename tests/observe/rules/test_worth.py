"""Are remarks judged as a reader would judge them?"""

import pytest

from palaver.observe.rules.worth import is_noise, is_status, worth


@pytest.mark.parametrize(
    "said",
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
    ],
)
def test_noise(said: str) -> None:
    """Promises, greetings, questions, announcements and bare places tell nothing."""
    assert is_noise(said)


@pytest.mark.parametrize(
    "said",
    [
        "Let's use SQLite because it needs no server.",
        "The parser skipped `null`, so totals were wrong.",
        "Now failed payments are retried three times.",
        "I replaced the timer with `asyncio.timeout`.",
    ],
)
def test_not_noise(said: str) -> None:
    """Choices, causes and changes are told."""
    assert not is_noise(said)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("All 212 tests pass and lint is clean.", True),
        ("Committed as `1a2b3c4`.", True),
        ("Pushed to `origin/main`.", True),
        ("The parser keeps comments.", False),
    ],
)
def test_status_is_told_apart(said: str, expected: bool) -> None:
    """How checks, commits and pushes went is a status."""
    assert is_status(said) is expected


def test_causes_and_names_are_worth_more() -> None:
    """A cause with names outweighs a change, a change outweighs a plain remark."""
    cause = "`Cart.total` was wrong because `round` ran before the discount."
    change = "Added `Cart.total` to the checkout page."
    remark = "The page looks a little better than before."

    assert worth(cause) > worth(change) > worth(remark)
