"""Tests of the weights of query tokens in late interaction."""

import numpy as np
import pytest

from palaver.search.model.embedding import TOKEN_DIMENSIONS, TextEmbeddings
from palaver.search.rank import engine
from palaver.search.rank.engine import weighted_tokens

from ..fake_embedder import FakeEmbedder

RARE = {"why": 0.0, "brass": 4.0, "kettle": 9.0, "x": 1.0}
BRASS = np.random.default_rng(1).standard_normal((9, TOKEN_DIMENSIONS)).astype(np.float32)


def read(*spans: tuple[int, int]) -> TextEmbeddings:
    """Return token embeddings of a text with tokens at these spans."""
    return TextEmbeddings(np.empty((1, 0), dtype=np.float32), [BRASS[: len(spans)]], [spans])


def lengths(text: str, *spans: tuple[int, int]) -> list[float]:
    counted = weighted_tokens(text, read(*spans), RARE.__getitem__)
    return [float(length) for length in np.linalg.norm(counted, axis=1)]


def test_a_token_weighs_as_much_as_the_idf_of_its_word() -> None:
    """The norm of a token is the square root of the IDF of its word, also for a part of a word.

    Its direction is unchanged.
    """
    spans = ((0, 5), (6, 9), (9, 12))

    assert lengths("brass kettle", *spans) == pytest.approx([2, 3, 3])
    units = BRASS[:3] / np.linalg.norm(BRASS[:3], axis=1, keepdims=True)
    pointing = weighted_tokens("brass kettle", read(*spans), RARE.__getitem__) / np.array([[2], [3], [3]])
    assert pointing == pytest.approx(units, abs=1e-6)


def test_common_words_are_left_out() -> None:
    """Words that occur in all entries and punctuation are not compared, unless the query has no other tokens."""
    assert lengths("why brass?", (0, 3), (4, 9), (9, 10)) == pytest.approx([2])
    assert lengths("why ?!", (0, 3), (4, 5), (5, 6)) == pytest.approx([1, 1, 1])


def test_a_token_of_several_words_has_the_weight_of_the_rarest() -> None:
    """A token of the model can span several terms of the index. The highest weight counts."""
    assert lengths("brass_kettle_x", (0, 14)) == pytest.approx([3])


def test_only_the_heaviest_tokens_of_a_long_text_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tokens with the highest weights are compared, in their order. Of equal weights the earlier wins."""
    monkeypatch.setattr(engine, "_TOKENS", 3)
    spans = ((0, 5), (6, 12), (13, 14), (15, 20), (21, 27))

    assert lengths("brass kettle x brass kettle", *spans) == pytest.approx([2, 3, 3])


def test_a_lone_surrogate_does_not_shift_spans() -> None:
    """Spans refer to the text in which the model replaced surrogates."""
    text = "\ud83d\ude00 brass \ud83d"

    [counted] = weighted_tokens(text, read((2, 7)), RARE.__getitem__)
    assert np.linalg.norm(counted) == pytest.approx(2)


def test_without_tokens_there_are_no_weights() -> None:
    """A model without token embeddings gives an empty array for a query."""
    silent = TextEmbeddings(np.empty((1, 0), dtype=np.float32), [np.empty((0, 0), dtype=np.float32)], [()])

    assert weighted_tokens("brass", silent, RARE.__getitem__).shape == (0, 0)
    assert weighted_tokens("", FakeEmbedder().read([""]), RARE.__getitem__).shape == (0, TOKEN_DIMENSIONS)
