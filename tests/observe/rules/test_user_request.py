"""Requests are extracted from prompts and plans."""

import pytest

from palaver.observe.rules.user_request import REQUEST_MAX, is_routine, read_request

from .exchange_script import Script


@pytest.mark.parametrize(
    "prompt", ["commit this and push", "ok", "/clear", "Continue!", "lgtm, thanks", "yes please do it"]
)
def test_routine_requests(prompt: str) -> None:
    """A request without a specific subject is routine."""
    assert is_routine(prompt) or read_request(Script().asked(prompt).exchange).routine


@pytest.mark.parametrize("prompt", ["commit the parser", "/plan add a cache", "why is it slow"])
def test_specific_requests(prompt: str) -> None:
    """One specific word makes a request specific, also after a slash command."""
    assert not read_request(Script().asked(prompt).exchange).routine


def test_logs_code_and_pictures_are_left_out() -> None:
    """Pasted logs, code, stack traces and images are not part of the request."""
    prompt = (
        "[Image #1] The export of @src/export.py hangs :\n[12:00:01] worker started\n    at run (a.js:1:2)\n"
        "```\nsecret_code()\n```\n2026-01-01T10:00:00Z boom"
    )

    found = read_request(Script().asked(prompt).exchange)

    assert found.text == "The export of src/export.py hangs"
    assert found.quote in prompt


def test_plan_without_heading_is_a_prompt() -> None:
    """A plan without heading and text is parsed as a prompt."""
    assert not read_request(Script().asked("Implement the following plan:\n\n").exchange).plan


def test_long_requests_are_truncated_at_sentences() -> None:
    """A truncated request consists of whole sentences."""
    found = read_request(Script().asked("Add the cart. " + "It must be fast and small. " * 60).exchange)

    assert len(found.text) <= REQUEST_MAX
    assert found.text.endswith("small.")


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [("Add a cart", True), ("The total should include tax", True), ("The cart is empty again", False)],
)
def test_orders_differ_from_complaints(prompt: str, asks: bool) -> None:
    """An order or wish can become a title. A complaint cannot."""
    assert read_request(Script().asked(prompt).exchange).asks is asks


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        (
            "no, that's not it. fuck. can you write a simple test that prints each color?",
            "Write a simple test that prints each color",
        ),
        ("the log is at /tmp/a.log, can we skip empty rows of the export?", "Skip empty rows of the export"),
        ("The export is empty since Monday. Please add a check to the export job.", "Add a check to the export job"),
        ("The page crashes. Fix it.", "The page crashes"),
        ("Task: fix the slow snapshot of large repos", "Fix the slow snapshot of large repos"),
        ("make sure the color is used. titles have another one", "Make sure the color is used"),
    ],
)
def test_order_is_the_title_at_any_position(prompt: str, title: str) -> None:
    """A specific order is the title, also after a complaint and without capitals."""
    assert read_request(Script().asked(prompt).exchange).title == title


@pytest.mark.parametrize(
    "prompt",
    ["Switch to main and delete stale branches", "Publish to npm failed again", "This should be hidden in the cloud"],
)
def test_other_sentences_are_not_orders(prompt: str) -> None:
    """Orders about branches, complaints that begin with a verb, and wishes are not used as titles."""
    assert not read_request(Script().asked(prompt).exchange).orders
