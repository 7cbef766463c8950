"""Phrase lists match only whole words, and are compiled when they are used."""

import re

import pytest

from palaver.observe.rules.phrase_patterns import anywhere, at_start, whole_text


def test_layout_of_lists_is_ignored() -> None:
    """Line ends and spaces around bars are ignored, but spaces inside a phrase are not."""
    phrases = anywhere("""
        root cause | turns?
        out
        | because
    """)

    assert phrases.search("it TURNS out")
    assert phrases.search("the root cause.")
    assert not phrases.search("the root  causes")


def test_the_first_use_compiles_a_list() -> None:
    """A list is compiled by its first use, so an error in it is raised there."""
    phrases = anywhere("fix | (add")

    with pytest.raises(re.error):
        phrases.search("a fix")


def test_words_are_whole() -> None:
    """`fix` does not match in `prefix` or `fixture`."""
    assert anywhere("fix").search("a fix.")
    assert not anywhere("fix").search("prefix fixture")
    assert at_start("fix | add").match("add it")
    assert not at_start("fix | add").match("to add")
    assert whole_text("done | ok").match("Done!")
    assert not whole_text("done | ok").match("done it")
