"""Do the words that stand next to each other count, and the rare ones more?"""

import pytest

from palaver.search.rank.idf_weights import adjacent_pairs

RARE = {"tantivi": 3.0, "lock": 1.0}


def rarity(term: str) -> float:
    return RARE.get(term, 0.0)


def test_pairs_count_as_their_words_are_rare() -> None:
    """A pair counts what both its terms do, of all pairs; each counts once, in the order in which it is said."""
    told = adjacent_pairs("Tantivy locks the tantivy lock", rarity)

    assert told == pytest.approx({("tantivi", "lock"): 4 / 8, ("lock", "the"): 1 / 8, ("the", "tantivi"): 3 / 8})


def test_the_rarest_pairs_alone_are_looked_for() -> None:
    """Of a long text the pairs that count most, which count for all."""
    told = adjacent_pairs(" ".join(f"w{number}" for number in range(40)), lambda term: float(term[1:]))

    assert [*told] == [(f"w{number - 1}", f"w{number}") for number in range(39, 27, -1)]
    assert sum(told.values()) == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "tantivy", "?!", "of the"])
def test_nothing_is_told_by_words_that_tell_nothing(text: str) -> None:
    """A single word has no neighbour, and words that stand everywhere count nothing."""
    assert adjacent_pairs(text, rarity) == {}
