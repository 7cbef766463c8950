"""Tests of core/text.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text import is_one_word, readable, without_ansi


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
