"""Tests of the stored bits of token embeddings."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.index import vector_index
from palaver.search.index.vector_index import TokenBits, packed
from palaver.search.model.embedding import TOKEN_DIMENSIONS, TokenVectors


def tokens(seed: int, count: int) -> TokenVectors:
    return np.random.default_rng(seed).standard_normal((count, TOKEN_DIMENSIONS)).astype(np.float32)


def late_interaction(query: TokenVectors, text: TokenVectors) -> float:
    """Return the late interaction of a query and a text, as a reference implementation."""
    length, signs = np.linalg.norm(query, axis=1), np.where(text > 0, 1, -1)
    nearest = (query / length[:, None] @ signs.T / np.sqrt(TOKEN_DIMENSIONS)).max(axis=1)
    return float((length * nearest).sum() / length.sum())


lengths = st.lists(st.integers(0, 5), max_size=8)


@given(lengths)
def test_packed_bits_are_unpacked(lengths: list[int]) -> None:
    """Packed bits equal the signs of the token embeddings of each text."""
    texts = [tokens(seed, length) for seed, length in enumerate(lengths)]
    made = TokenBits.of([packed(text) for text in texts])

    assert made.counts.tolist() == lengths
    signs = np.unpackbits(made.bits, axis=1).astype(bool)
    assert np.array_equal(signs, np.concatenate([np.empty((0, TOKEN_DIMENSIONS)), *texts]) > 0)


@given(lengths, st.integers(1, 3))
def test_similarity_is_a_weighted_mean_of_maxima(lengths: list[int], words: int) -> None:
    """The similarity is the mean of the best cosine of each query token, weighted by the norm of that token. A text
    without tokens has NaN.
    """
    texts, query = [tokens(seed, length) for seed, length in enumerate(lengths)], tokens(99, words)
    query[0] *= 9
    close = TokenBits.of([packed(text) for text in texts]).similarity(query)

    expected = [late_interaction(query, text) if len(text) else np.nan for text in texts]
    assert close == pytest.approx(expected, abs=3e-3, nan_ok=True)
    assert np.all(np.isnan(close) | (np.abs(close) <= 1 + 1e-9))


@given(lengths, st.integers(1, 12))
def test_the_batch_size_does_not_change_similarities(lengths: list[int], size: int) -> None:
    """Similarities are the same for any batch size, even if a text is longer than a batch."""
    made, query = TokenBits.of([packed(tokens(seed, length)) for seed, length in enumerate(lengths)]), tokens(99, 3)
    whole = made.similarity(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "_BATCH", size)
        assert np.array_equal(made.similarity(query), whole, equal_nan=True)


def test_memory_does_not_grow_with_the_number_of_texts() -> None:
    """Comparing 100,000 tokens, which would be 13 MB as bytes, needs less than 2 MiB."""
    made = TokenBits.of([packed(tokens(1, 100))] * 1_000)
    tracemalloc.start()
    try:
        made.similarity(tokens(2, 12))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_a_zero_token_does_not_count() -> None:
    """A query token with norm 0 changes no similarity. A query of only such tokens gives NaN."""
    made, query = TokenBits.of([packed(tokens(1, 3)), packed(tokens(2, 4))]), tokens(3, 2)
    nothing = np.zeros((1, TOKEN_DIMENSIONS), dtype=np.float32)

    assert np.array_equal(made.similarity(np.concatenate([query, nothing])), made.similarity(query))
    assert np.isnan(made.similarity(nothing)).all()


@given(lengths, lengths)
def test_merged_texts_can_be_picked(some: list[int], others: list[int]) -> None:
    """Picking texts after a merge gives the same bits as packing only those texts."""
    packs = [packed(tokens(seed, length)) for seed, length in enumerate([*some, *others])]
    merged = TokenBits.merged([TokenBits.of(packs[: len(some)]), TokenBits.of(packs[len(some) :])])
    places = list(range(len(packs)))
    np.random.default_rng(0).shuffle(places)
    picked, wanted = (
        merged.selected(np.array(places[::2], dtype=np.int64)),
        TokenBits.of([packs[at] for at in places[::2]]),
    )

    assert np.array_equal(picked.bits, wanted.bits)
    assert np.array_equal(picked.starts, wanted.starts)


def test_a_query_without_tokens_has_no_similarity() -> None:
    """An empty query or a model without token embeddings gives NaN for every text."""
    made = TokenBits.of([packed(tokens(1, 3))])

    assert np.isnan(made.similarity(tokens(1, 0))).all()
    assert np.isnan(made.similarity(np.empty((0, 0), dtype=np.float32))).all()


def test_files_are_mapped_and_shared(tmp_path: Path) -> None:
    """Saved bits are read back unchanged, and saving to another folder links the same files."""
    made = TokenBits.of([packed(tokens(seed, 2)) for seed in range(3)])
    made.save(tmp_path)
    again = TokenBits.open(tmp_path, 3)
    (tmp_path / "next").mkdir()
    again.save(tmp_path / "next", tmp_path)

    assert np.array_equal(again.bits, made.bits)
    assert np.array_equal(again.starts, made.starts)
    for name in ("signs.npy", "tokens.npy"):
        assert (tmp_path / name).samefile(tmp_path / "next" / name)


def test_without_tokens_there_are_no_files(tmp_path: Path) -> None:
    """Texts without token embeddings need no files."""
    TokenBits.of([b"", b""]).save(tmp_path)

    assert list(tmp_path.iterdir()) == []
    assert TokenBits.open(tmp_path, 2).counts.tolist() == [0, 0]
