"""Tests of adjacent-term scores."""

import pytest

from palaver.search.rank.engine import adjacent_pairs

RARE = {"tantivi": 3.0, "lock": 1.0}


def rarity(term: str) -> float:
    return RARE.get(term, 0.0)


def test_pairs_weigh_as_much_as_their_terms_are_rare() -> None:
    """The weight of a pair is its share of the total rarity of all pairs. Each pair occurs once, in text order."""
    pairs = adjacent_pairs("Tantivy locks the tantivy lock", rarity)

    assert pairs == pytest.approx({("tantivi", "lock"): 4 / 8, ("lock", "the"): 1 / 8, ("the", "tantivi"): 3 / 8})


def test_only_the_rarest_pairs_are_searched() -> None:
    """Only the heaviest pairs of a long text are searched, and their weights add up to 1."""
    pairs = adjacent_pairs(" ".join(f"w{number}" for number in range(40)), lambda term: float(term[1:]))

    assert [*pairs] == [(f"w{number - 1}", f"w{number}") for number in range(39, 27, -1)]
    assert sum(pairs.values()) == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "tantivy", "?!", "of the"])
def test_common_words_form_no_pairs(text: str) -> None:
    """A single word has no pair, and pairs of words that occur in all entries have no weight."""
    assert adjacent_pairs(text, rarity) == {}
