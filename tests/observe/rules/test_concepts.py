"""Concepts are the names by which users search for an observation."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.observe.rules.classification import CONCEPTS_MAX, concepts


def test_names_are_found_and_ranked() -> None:
    """Code, identifiers, options and quoted names are concepts. Each occurs once, and those of the title come first."""
    found = concepts(
        ['Add `CartTotals` to "Check out"', "`CartTotals()` in `src/cart_totals.py:12` uses --strict and CartTotals"],
        ["src/cart_totals.py"],
    )

    assert found[0] == "CartTotals"
    assert set(found) >= {"Check out", "cart_totals.py", "--strict"}
    assert len(found) == len({name.lower() for name in found})


def test_common_words_numbers_and_syntax_are_not_concepts() -> None:
    """Keywords, hashes, numbers and syntax are not concepts."""
    assert concepts(["`true` `null` `1a2b3c4d` `12.5` `{ a: b }` `x = 1` `README.md`"], ()) == ()


def test_parts_of_urls_and_paths_are_not_concepts() -> None:
    """Parts of URLs and paths are not concepts, but the last part of a code name is a concept."""
    text = "See https://example.com/BigOwner/some_repo/1 and /home/dev_one/my_app/x_y.py; `src/big_cart.py` is it"

    assert concepts([text], ()) == ("big_cart.py",)


@given(st.lists(st.text(max_size=80), max_size=5), st.lists(st.text(max_size=20), max_size=3))
def test_concepts_are_bounded(texts: list[str], touched_files: list[str]) -> None:
    """There are at most `CONCEPTS_MAX` concepts, and no concept is empty or too long."""
    found = concepts(texts, touched_files)

    assert len(found) <= CONCEPTS_MAX
    assert all(1 < len(name) <= 40 for name in found)
