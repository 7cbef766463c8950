"""Tests of core/text.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text import is_one_word, readable, visible, without_ansi


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link", "link"),
        ("cut \x1b[", "cut ["),
        ("[31m is text", "[31m is text"),
    ],
)
def test_terminal_sequences_are_removed(text: str, plain: str) -> None:
    """Colours, titles and links are removed, and their words are kept.

    Only the escape of a truncated sequence is removed.
    """
    assert without_ansi(text) == plain


@given(st.text(st.characters()))
def test_readable_text_can_be_encoded(text: str) -> None:
    """Lone surrogates are replaced, and all other characters are unchanged."""
    shown = readable(text)

    assert shown.encode().decode() == shown
    assert shown == text or any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("tide-clock", True), ("v2.0_x", True), ("a" * 40, True), ("a" * 41, False), ("a b", False), ("", False)],
)
def test_a_single_word_is_recognised(name: str, expected: bool) -> None:
    """Only a short name without spaces and punctuation is one word."""
    assert is_one_word(name) is expected


@given(st.text())
def test_a_visible_text_stays_as_it_is(text: str) -> None:
    """Making a text visible twice is making it visible once."""
    assert visible(visible(text)) == visible(text)


def test_what_is_not_seen_is_removed() -> None:
    """Zero-width, format and tag characters, colours and odd spaces never divide a word or a setting."""
    hidden = "\u200b \u200c \u200d \u00ad \u2060 \ufeff \u202e \U000e0041 \ufe0f \u2800 \x07 \x1b[31m \x1b]8;;http://x\x07".split(
        " "
    )
    changed = {sign for sign in hidden if visible(f"fal{sign}con") != "falcon"}

    assert not changed
    assert visible("key\u00a0=\u202fvalue\u3000end") == "key = value end"


def test_scripts_and_emoji_keep_their_joiners() -> None:
    """Joiners between letters of other scripts and inside emoji stay, because they change what is seen."""
    texts = ["👩\u200d💻", "क्\u200dष", "می\u200cخواهم", "1\ufe0f\u20e3", "☁\ufe0f cloud", "straße\tnaïve\n"]

    assert [visible(text) for text in texts] == texts
