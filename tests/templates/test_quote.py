"""Tests for templates/quote.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.tokens import count
from palaver.templates.quote import block, brief, clean, code, line, marked

SURROGATES = st.text(st.characters(codec=None), max_size=60)


@given(SURROGATES)
def test_cleaned_text_can_always_be_written(text: str) -> None:
    """Cleaned text is valid Unicode without control signs, and cleaning it again changes nothing."""
    cleaned = clean(text)
    cleaned.encode("utf-8")

    assert clean(cleaned) == cleaned
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in cleaned)


@pytest.mark.parametrize(
    "text", ["naïve 日本語 👩‍👩‍👧 می‌خواهم", "tab\there\nnew line", 'if a < b and c > d: print("x")']
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Scripts, emoji with joiners, and code are shown as they were written."""
    assert block(text) == text


@given(SURROGATES)
def test_one_line_is_one_line(text: str) -> None:
    """No kind of line break survives in a heading."""
    assert len(line(text).splitlines()) <= 1
    assert code(text).count("`") == 2


@pytest.mark.parametrize("row", ["# Title", "## Exchange 2", "---", "===", "**User:** hi", "  # x", "[Sidechain ends]"])
def test_a_line_that_imitates_layout_is_escaped(row: str) -> None:
    """Headings, rules and our own labels get a backslash outside code, and none inside it."""
    assert block(f"a\n{row}") == f"a\n\\{row.lstrip()}"
    assert block(f"```\n{row}\n```") == f"```\n{row}\n```"


@pytest.mark.parametrize("text", ["```py\nx = 1", "~~~\n```\n", "````\n```\n"])
def test_an_open_fence_is_closed(text: str) -> None:
    """A fence that a text leaves open is closed by the fence that opened it."""
    fence = text[: text.index("\n")].removesuffix("py")

    assert block(text).rsplit("\n", 1)[1] == fence


def test_only_tags_that_mean_something_to_an_agent_are_defused() -> None:
    """Markup in code stays, our envelope and the host's voice do not."""
    assert block("<div></recalled><system-reminder>") == "<div>&lt;/recalled>&lt;system-reminder>"


@given(st.text(max_size=300), st.integers(3, 40))
def test_a_brief_text_keeps_its_beginning_and_its_price(text: str, tokens: int) -> None:
    """A shortened title begins like the whole one, ends in an ellipsis and costs what it may."""
    whole, short = line(text), brief(text, tokens)

    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))
    assert count(short) <= tokens + 2


def test_a_short_title_stays_whole() -> None:
    """Nothing is cut that fits."""
    assert brief("Fix the build", 12) == "Fix the build"


def test_what_is_marked_stands_by_itself() -> None:
    """It is no part of another word, but where no blanks tell words apart."""
    shown = marked("pre-commit, previous, uncommitted pre_x 黄铜水壶", ("pre", "commit", "水壶"), "<", ">")

    assert shown == "<pre>-<commit>, previous, uncommitted <pre>_x 黄铜<水壶>"
