"""Snippets: they show what was found, and begin where a word does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.present.snippets import LENGTH, SearchTerms
from palaver.search.query import tokenizer

FOUND = "whistles"
SOUGHT = SearchTerms({FOUND: 1}, (), tokenizer.forms([FOUND]))


@given(st.lists(st.text("abc", min_size=1, max_size=60), max_size=60), st.sampled_from([" ", "\n", "\n\t"]))
def test_a_snippet_begins_with_a_word(words: list[str], blank: str) -> None:
    """Whatever stands between words, none is cut at the beginning, and what was found is shown."""
    shown = SOUGHT.snippet([blank.join([*words, FOUND, *words])])

    assert FOUND in shown
    assert len(shown) <= LENGTH + 1
    assert shown.removeprefix("…").split(" ")[0].rstrip("…") in {*words, FOUND}


@pytest.mark.parametrize("sign", ["茶", "x"])
def test_without_blanks_it_begins_near_what_was_found(sign: str) -> None:
    """Where no blank tells words apart, as in Chinese, it begins with any sign, and not at the far beginning."""
    shown = SearchTerms({}, ("水壶",)).snippet([sign * 900 + "水壶" + sign * 900])

    assert shown.startswith(f"…{sign}")
    assert "水壶" in shown


def test_what_is_cut_off_is_marked() -> None:
    """Of what is too long to be looked through the end is marked as one, too."""
    assert SOUGHT.snippet([f"{'a kettle ' * 215}{FOUND} {'a kettle ' * 900}"]).endswith("…")
    assert SOUGHT.snippet([f"It {FOUND}."]) == f"It {FOUND}."


@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("hook failed", "a hookah failed, and the hook failed", ["hook failed"]),
        ("dying kettles", "A kettle dies: Dying-kettle", ["Dying-kettle"]),
        ("brass_kettle", "the my_brass-kettle_3", ["brass-kettle"]),
        ("水壶", "黄铜水壶", ["水壶"]),
        ("Café au lait", "one café au lait", ["café au lait"]),
        ("_", "_", []),
    ],
)
def test_a_phrase_is_found_as_a_whole(phrase: str, text: str, stands: list[str]) -> None:
    """With other endings and signs, and no part of other words."""
    assert list(SearchTerms({}, (phrase,)).words(text)) == stands


def test_a_long_phrase_is_missed_quickly() -> None:
    """However often most of it stands in a text."""
    words = ["kettles"] * 60

    assert SearchTerms({}, (" ".join([*words, "whistle"]),)).words(" ".join(words)) == {}
