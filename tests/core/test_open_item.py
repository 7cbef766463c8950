"""Selection of open items."""

import pytest

from palaver.core.observation import is_end_state, is_open_item


@pytest.mark.parametrize(
    "fact",
    [
        "Open: The migration of the orders table is not merged.",
        "Open: Question to the user: Should the kettle page keep its badge?",
        "Open: The user interrupted the work on “Move the badge to the kettle page”",
        "Open: The last check, pytest tests/kettle, failed",
        "Next: Run `make load-test`.",
        "Next: Merge feat/badge.",
    ],
)
def test_an_item_with_a_subject_is_open(fact: str) -> None:
    """An item is listed if a reader who was not there knows its subject."""
    assert is_open_item(fact)


@pytest.mark.parametrize(
    "fact",
    [
        "Outcome: The kettle page has a badge.",
        "Open: Push whenever ready.",
        "Open: Question to the user: Which approach would you prefer?",
        "Open: Question to the user: The changes touch the kettle page and no test.",
        "Open: The user interrupted the work on “Commit this”",
        "Open: The last command, git log --oneline -1 origin/HEAD, failed",
    ],
)
def test_an_item_without_a_subject_is_not_open(fact: str) -> None:
    """Routine steps, questions about "it", and failed look-ups are no open items."""
    assert not is_open_item(fact)


def test_only_the_end_of_a_session_is_replaced_by_the_next_one() -> None:
    """A next step, a question and a failed check state where a session stopped. A known gap stays."""
    ends = [
        "Next: Run `make load-test`.",
        "Open: Question to the user: Keep the badge?",
        "Open: The last check, x, failed",
    ]

    assert all(map(is_end_state, ends))
    assert not is_end_state("Open: The migration of the orders table is not merged.")
