"""A digest contains only statements that a reader who was not there can use."""

import pytest

from palaver.core.conversation import SessionKind
from palaver.core.results import SessionOutline
from palaver.observe.digest import _project  # pyright: ignore[reportPrivateUsage]


def session(title: str, *facts: str, name: str = "ab12", branch: str = "main") -> SessionOutline:
    return SessionOutline(name, title, "quay", "claude-code", SessionKind.MAIN, branch, 0, 1, 1, name, "", facts)


def texts(name: str, *sessions: SessionOutline) -> list[str]:
    return [line.text for line in getattr(_project("quay", sessions, {}), name)]


@pytest.mark.parametrize(
    ("title", "facts", "expected"),
    [
        ("Ring the bell once", ("Asked: The bell rings twice", "Outcome: Ring once"), "Ring the bell once"),
        ("Ring the bell", ("Asked: Ring the bell hourly", "Outcome: The bell rings hourly"), "The bell rings hourly"),
        ("Ring the bell", ("Asked: Ring the bell", "Outcome: The bell rings hourly"), "Ring the bell"),
        ("Ring the bell every…", ("Outcome: The bell rings hourly",), "The bell rings hourly"),
        ("Ring the bell", ("Asked: Ring the bell",), None),
        ("Why does the bell ring", (), None),
    ],
)  # fmt: skip
def test_a_session_counts_as_done_with_its_title_or_its_result(
    title: str, facts: tuple[str, ...], expected: str | None
) -> None:
    assert texts("done", session(title, *facts)) == ([expected] if expected else [])


def test_a_session_without_a_card_is_done_with_its_only_result() -> None:
    project = _project("quay", [session("Bell repaired")], {"ab12": "Bell repaired"})

    assert [line.text for line in project.done] == ["Bell repaired"]


def test_labels_repetitions_and_cut_texts_are_left_out() -> None:
    facts = ("Cause: Root cause: two timers ring.", "Gotcha: The bell needs…", "Decided: Ring once an hour.")
    later = session("Bell", *facts, "Decided: ring once an hour.", name="cd34")

    assert texts("learned", later) == ["Two timers ring."]
    assert texts("decided", later, session("Bell", *facts)) == ["Ring once an hour."]


def test_an_open_item_that_a_later_session_did_is_left_out() -> None:
    earlier = session("Bell", "Open: Paint the harbour bell before the regatta.", branch="a")
    later = session("Paint the harbour bell before the regatta", "Outcome: It is green", name="cd34", branch="b")

    assert texts("open", earlier) == ["Paint the harbour bell before the regatta."]
    assert texts("open", later, earlier) == []
