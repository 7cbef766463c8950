"""Late interaction: comparison of binary token embeddings of texts with the token embeddings of a query.

The vector of a text represents the whole text. Late interaction compares each query token with the most similar token
of the text (Khattab and Zaharia, ColBERT, 2020). Each text token is stored as 128 sign bits, which take 16 bytes. Query
tokens are not reduced to bits, so cosines are close to the cosines of full vectors.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numkong
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ...archiver.store.vector_table import TOKEN_BYTES, Embedding
from ..model.embedding import TOKEN_DIMENSIONS, TextEmbeddings, TokenVectors
from .generation import link_or_copy
from .matches import Floats, Integers

_BITS, _STARTS = "signs.npy", "tokens.npy"
_BATCH = 2_048
"""Number of text tokens compared at once. Smaller batches need more calls, and larger batches exceed the CPU cache."""


class TokenBits(Struct, frozen=True, eq=False):
    """Binary token embeddings of several texts.

    Attributes:
        bits: Packed sign bits, one row per token, shape (tokens, 16).
        starts: The tokens of text i are the rows from `starts[i]` to `starts[i + 1]`, shape (texts + 1,).
    """

    bits: npt.NDArray[np.uint8]
    starts: Integers

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "TokenBits":
        """Load token embeddings in the format of `packed`. Empty bytes represent a text without token embeddings."""
        bits = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, TOKEN_BYTES)
        return cls(bits, _starts(np.array([len(text) // TOKEN_BYTES for text in texts], dtype=np.int64)))

    @classmethod
    def merged(cls, several: Sequence["TokenBits"]) -> "TokenBits":
        """Concatenate several collections of texts."""
        bits = np.concatenate([one.bits for one in several])
        return cls(bits, _starts(np.concatenate([one.counts for one in several])))

    @classmethod
    def open(cls, folder: Path, texts: int) -> "TokenBits":
        """Map the files in a folder. If they are missing, return `texts` texts without token embeddings."""
        if not (folder / _BITS).exists():
            return cls.of([b""] * texts)
        bits, starts = (np.asarray(np.load(folder / name, mmap_mode="r")) for name in (_BITS, _STARTS))
        return cls(bits, starts)

    def save(self, folder: Path, shared: Path | None = None) -> None:
        """Write the files to a folder, or link to the files of the folder `shared`.

        The files in `shared` must have the same content. Without tokens, nothing is written.
        """
        if not len(self.bits):
            return
        for name, content in ((_BITS, self.bits), (_STARTS, self.starts)):
            if shared is not None:
                link_or_copy(shared / name, folder / name)
            else:
                np.save(folder / name, content)

    @property
    def counts(self) -> Integers:
        """Number of tokens of each text, shape (texts,)."""
        return np.diff(self.starts)

    def selected(self, places: Integers) -> "TokenBits":
        """Return the texts at these positions in the given order."""
        starts, ends = self.starts[places], self.starts[places + 1]
        # Consecutive texts are copied as one slice. An index array of all tokens would take half as much memory again.
        begins = np.flatnonzero(np.concatenate(([True], starts[1:] != ends[:-1]))[: len(places)])
        last = np.concatenate((begins[1:], [len(places)]))[: len(begins)] - 1
        pieces = [self.bits[start:end] for start, end in zip(starts[begins].tolist(), ends[last].tolist(), strict=True)]
        return TokenBits(np.concatenate([self.bits[:0], *pieces]), _starts(ends - starts))

    def similarity(self, query: TokenVectors) -> Floats:
        """Return the late-interaction score of each text, -1 to 1, shape (texts,). NaN for texts without tokens.

        For each query token, the cosine to the most similar token of the text is taken. The score is the mean of these
        cosines, weighted by the length of the query token's vector.
        """
        query, known = query[query.any(axis=1)], np.flatnonzero(self.counts)
        scores = np.full(len(self.counts), np.nan)
        if not len(query) or not len(known):
            return scores
        tokens = _to_int8(query)
        nearest = 2 * self._max_products(tokens, known) - tokens.sum(axis=1, dtype=np.int32)
        lengths = np.linalg.norm(tokens.astype(np.float64), axis=1) * np.sqrt(TOKEN_DIMENSIONS)
        scores[known] = np.average(nearest / lengths, axis=1, weights=np.linalg.norm(query, axis=1))
        return scores

    def _max_products(self, tokens: npt.NDArray[np.int8], known: Integers) -> npt.NDArray[np.int32]:
        """Return the maximum dot product of each query token with the tokens of each text.

        The result has shape (texts, query tokens). `known` contains the indices of texts with tokens.
        """
        # Bits 0 and 1 represent -1 and 1, so the product with signs is twice the product with bits minus the sum.
        # NumPy is slower under load, because the threads of its BLAS wait for each other.
        pack, starts, ends = numkong.dots_pack(tokens, "int8"), self.starts[known], self.starts[known + 1]
        best, done = np.empty((len(known), len(tokens)), dtype=np.int32), 0
        while done < len(known):
            upto = max(done + 1, int(np.searchsorted(ends, starts[done] + _BATCH, "right")))
            bits = np.unpackbits(self.bits[starts[done] : ends[upto - 1]], axis=1).view(np.int8)
            products: npt.NDArray[np.int32] = np.asarray(numkong.dots_packed(bits, pack))
            np.maximum.reduceat(products, starts[done:upto] - starts[done], axis=0, out=best[done:upto])
            done = upto
        return best


def stored(embeddings: TextEmbeddings) -> Iterator[Embedding]:
    """Yield the embedding of each text in the format of the database."""
    for row, tokens in zip(embeddings.vectors.astype("<f2"), embeddings.tokens, strict=True):
        yield Embedding(row.tobytes(), packed(tokens))


def packed(tokens: TokenVectors) -> bytes:
    """Return the sign bits of the token embeddings of one text, 16 bytes per token."""
    return np.packbits(tokens > 0, axis=1).tobytes()


def _to_int8(tokens: TokenVectors) -> npt.NDArray[np.int8]:
    """Return each token embedding scaled to int8. The rounding error is 0.3 %."""
    largest: TokenVectors = np.abs(tokens).max(axis=1, keepdims=True)
    rounded: npt.NDArray[np.floating] = np.round(tokens * (127 / largest))
    return rounded.astype(np.int8)


def _starts(counts: Integers) -> Integers:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def row_ranges(starts: Integers, counts: Integers) -> Integers:
    """Return the row indices of several ranges, each given by its start and its number of rows."""
    ends = np.cumsum(counts)
    rows: Integers = np.arange(int(counts.sum())) + np.repeat(starts - ends + counts, counts)
    return rows
