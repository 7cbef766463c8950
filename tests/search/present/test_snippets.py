"""Tests of snippets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.present.snippets import LENGTH, SearchTerms
from palaver.search.query import tokenizer

FOUND = "whistles"
SOUGHT = SearchTerms({FOUND: 1}, (), tokenizer.forms([FOUND]))


@given(st.lists(st.text("abc", min_size=1, max_size=60), max_size=60), st.sampled_from([" ", "\n", "\n\t"]))
def test_a_snippet_begins_with_a_whole_word(words: list[str], blank: str) -> None:
    """A snippet never begins within a word, and it contains the match."""
    shown = SOUGHT.snippet([blank.join([*words, FOUND, *words])])

    assert FOUND in shown
    assert len(shown) <= LENGTH + 1
    assert shown.removeprefix("…").split(" ")[0].rstrip("…") in {*words, FOUND}


@pytest.mark.parametrize("sign", ["茶", "x"])
def test_a_snippet_without_whitespace_begins_near_the_match(sign: str) -> None:
    """In text without whitespace, such as Chinese, a snippet begins near the match at any character."""
    shown = SearchTerms({}, ("水壶",)).snippet([sign * 900 + "水壶" + sign * 900])

    assert shown.startswith(f"…{sign}")
    assert "水壶" in shown


def test_truncation_is_marked() -> None:
    """A snippet ends with an ellipsis if text follows, even if the text is too long to scan."""
    assert SOUGHT.snippet([f"{'a kettle ' * 215}{FOUND} {'a kettle ' * 900}"]).endswith("…")
    assert SOUGHT.snippet([f"It {FOUND}."]) == f"It {FOUND}."


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("hook failed", "a hookah failed, and the hook failed", ["hook failed"]),
        ("dying kettles", "A kettle dies: Dying-kettle", ["Dying-kettle"]),
        ("brass_kettle", "the my_brass-kettle_3", ["brass-kettle"]),
        ("水壶", "黄铜水壶", ["水壶"]),
        ("Café au lait", "one café au lait", ["café au lait"]),
        ("_", "_", []),
    ],
)
def test_a_phrase_is_highlighted_as_a_whole(phrase: str, text: str, expected: list[str]) -> None:
    """A phrase is highlighted with other inflections and punctuation, but not within longer words."""
    assert list(SearchTerms({}, (phrase,)).words(text)) == expected


def test_a_long_phrase_does_not_slow_down_a_snippet() -> None:
    """A long phrase of which only the beginning matches repeatedly does not need quadratic time."""
    words = ["kettles"] * 60

    assert SearchTerms({}, (" ".join([*words, "whistle"]),)).words(" ".join(words)) == {}
