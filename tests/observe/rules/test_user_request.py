"""Is it known what was asked?"""

import pytest

from palaver.observe.rules.user_request import REQUEST_MAX, is_routine, read_request

from .telling import Telling


@pytest.mark.parametrize(
    "said", ["commit this and push", "ok", "/clear", "Continue!", "lgtm, thanks", "yes please do it"]
)
def test_routine_names_nothing(said: str) -> None:
    """A request that names nothing of its own is routine."""
    assert is_routine(said) or read_request(Telling().asked(said).exchange).routine


@pytest.mark.parametrize("said", ["commit the parser", "/plan add a cache", "why is it slow"])
def test_anything_else_names_something(said: str) -> None:
    """One word of substance is enough, also behind a slash command."""
    assert not read_request(Telling().asked(said).exchange).routine


def test_logs_code_and_pictures_are_left_out() -> None:
    """Pasted logs, code, stack traces and pictures are not the person's words."""
    said = (
        "[Image #1] The export of @src/export.py hangs :\n[12:00:01] worker started\n    at run (a.js:1:2)\n"
        "```\nsecret_code()\n```\n2026-01-01T10:00:00Z boom"
    )

    found = read_request(Telling().asked(said).exchange)

    assert found.text == "The export of src/export.py hangs"
    assert found.quote in said


def test_plan_without_heading_is_a_prompt() -> None:
    """A plan that has no heading and no text falls back to what was typed."""
    assert not read_request(Telling().asked("Implement the following plan:\n\n").exchange).plan


def test_long_requests_are_kept_whole_sentences_long() -> None:
    """Only whole sentences are kept of a long request."""
    found = read_request(Telling().asked("Add the cart. " + "It must be fast and small. " * 60).exchange)

    assert len(found.text) <= REQUEST_MAX
    assert found.text.endswith("small.")


@pytest.mark.parametrize(
    ("said", "asks"),
    [("Add a cart", True), ("The total should include tax", True), ("The cart is empty again", False)],
)
def test_orders_are_told_from_complaints(said: str, asks: bool) -> None:
    """An order or wish can title what was done; a complaint cannot."""
    assert read_request(Telling().asked(said).exchange).asks is asks


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (
            "no, that's not it. fuck. can you write a simple test that prints each color?",
            "Write a simple test that prints each color?",
        ),
        ("The export is empty since Monday. Please add a check to the export job.", "Add a check to the export job"),
        ("The page crashes. Fix it.", "The page crashes"),
        ("Task: fix the slow snapshot of large repos", "Fix the slow snapshot of large repos"),
        ("make sure the color is used. titles have another one", "Make sure the color is used"),
    ],
)
def test_order_is_the_title_wherever_it_stands(said: str, title: str) -> None:
    """An order that says what it is about is the title, also behind a complaint and without capitals."""
    assert read_request(Telling().asked(said).exchange).title == title


@pytest.mark.parametrize(
    "said",
    ["Switch to main and delete stale branches", "Publish to npm failed again", "This should be hidden in the cloud"],
)
def test_no_order(said: str) -> None:
    """Orders about branches, complaints that begin with a verb, and wishes do not say what was done."""
    assert not read_request(Telling().asked(said).exchange).orders
