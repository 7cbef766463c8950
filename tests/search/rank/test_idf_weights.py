"""Do the tokens that tell something count?"""

import numpy as np
import pytest

from palaver.search.model.embedding import TOKEN_DIMENSIONS, TextEmbeddings
from palaver.search.rank import idf_weights
from palaver.search.rank.idf_weights import weighted_tokens

from ..fake_embedder import FakeEmbedder

RARE = {"why": 0.0, "brass": 4.0, "kettle": 9.0, "x": 1.0}
BRASS = np.random.default_rng(1).standard_normal((9, TOKEN_DIMENSIONS)).astype(np.float32)


def read(*spans: tuple[int, int]) -> TextEmbeddings:
    """What a model makes of a text whose tokens stand there."""
    return TextEmbeddings(np.empty((1, 0), dtype=np.float32), [BRASS[: len(spans)]], [spans])


def lengths(text: str, *spans: tuple[int, int]) -> list[float]:
    counted = weighted_tokens(text, read(*spans), RARE.__getitem__)
    return [float(length) for length in np.linalg.norm(counted, axis=1)]


def test_a_token_counts_as_rare_as_its_word() -> None:
    """Each is as long as the root of its word's rarity, where it is a part of the word, too, and points as before."""
    spans = ((0, 5), (6, 9), (9, 12))

    assert lengths("brass kettle", *spans) == pytest.approx([2, 3, 3])
    units = BRASS[:3] / np.linalg.norm(BRASS[:3], axis=1, keepdims=True)
    pointing = weighted_tokens("brass kettle", read(*spans), RARE.__getitem__) / np.array([[2], [3], [3]])
    assert pointing == pytest.approx(units, abs=1e-6)


def test_what_tells_nothing_is_left_out() -> None:
    """Words that all entries have, and signs between words, are not compared; where nothing else is, all are."""
    assert lengths("why brass?", (0, 3), (4, 9), (9, 10)) == pytest.approx([2])
    assert lengths("why ?!", (0, 3), (4, 5), (5, 6)) == pytest.approx([1, 1, 1])


def test_a_token_of_several_words_counts_as_the_rarest() -> None:
    """What a model takes for one token may be several words to the archive."""
    assert lengths("brass_kettle_x", (0, 14)) == pytest.approx([3])


def test_of_a_long_text_only_what_counts_most_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lightest tokens are left out, of equal ones the later; the others keep their order."""
    monkeypatch.setattr(idf_weights, "_TOKENS", 3)
    spans = ((0, 5), (6, 12), (13, 14), (15, 20), (21, 27))

    assert lengths("brass kettle x brass kettle", *spans) == pytest.approx([2, 3, 3])


def test_a_broken_pair_moves_nothing() -> None:
    """Spans are those of the text as the model reads it."""
    text = "\ud83d\ude00 brass \ud83d"

    [counted] = weighted_tokens(text, read((2, 7)), RARE.__getitem__)
    assert np.linalg.norm(counted) == pytest.approx(2)


def test_without_tokens_there_is_nothing_to_weigh() -> None:
    """A model that tells no tokens tells none of a query."""
    silent = TextEmbeddings(np.empty((1, 0), dtype=np.float32), [np.empty((0, 0), dtype=np.float32)], [()])

    assert weighted_tokens("brass", silent, RARE.__getitem__).shape == (0, 0)
    assert weighted_tokens("", FakeEmbedder().read([""]), RARE.__getitem__).shape == (0, TOKEN_DIMENSIONS)
