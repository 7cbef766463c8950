"""TokenBits: what each token of a text means, kept as the signs of 128 numbers, and how close a query comes to them.

A vector says what a whole text is about. Its tokens say which parts of a question it answers: each token of the query
is compared with the one of the text that is nearest to it, in the place where it stands (late interaction; Khattab and
Zaharia, ColBERT, 2020). The signs of a token tell its direction nearly as well as its numbers, in 16 bytes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numkong
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ...archiver.store.vector_table import TOKEN_BYTES, Embedded
from ..model.embedder import TextEmbeddings
from .generation import share
from .matches import Fractions, Numbers

DIRECTIONS = 8 * TOKEN_BYTES
"""The numbers of a token."""
_BITS, _STARTS = "signs.npy", "tokens.npy"
_PORTION = 2_048
"""Tokens of texts that are compared at once: with fewer, calls cost more; with more, products leave the cache, and a
process that asks once takes new memory for each portion.
"""

Tokens: TypeAlias = npt.NDArray[np.float32]
"""The tokens of one text, shape (n, `DIRECTIONS`)."""


class TokenBits(Struct, frozen=True, eq=False):
    """The tokens of several texts: `bits` are one row each, shape (tokens, 16), and those of text i the rows from
    `starts[i]` up to `starts[i + 1]`.
    """

    bits: npt.NDArray[np.uint8]
    starts: Numbers

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "TokenBits":
        """What `packed` made of each text; nothing of one that no tokens are known of."""
        bits = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, TOKEN_BYTES)
        return cls(bits, _starts(np.array([len(text) // TOKEN_BYTES for text in texts], dtype=np.int64)))

    @classmethod
    def merged(cls, several: Sequence["TokenBits"]) -> "TokenBits":
        """All texts of several, one after the other."""
        bits = np.concatenate([one.bits for one in several])
        return cls(bits, _starts(np.concatenate([one.counts for one in several])))

    @classmethod
    def open(cls, folder: Path, texts: int) -> "TokenBits":
        """Map the files of a folder that has so many texts; where there are none, no tokens are known."""
        if not (folder / _BITS).exists():
            return cls.of([b""] * texts)
        bits, starts = (np.asarray(np.load(folder / name, mmap_mode="r")) for name in (_BITS, _STARTS))
        return cls(bits, starts)

    def save(self, folder: Path, shared: Path | None = None) -> None:
        """Write the files, or share those of a folder that has the same; none where no tokens are known."""
        if not len(self.bits):
            return
        for name, content in ((_BITS, self.bits), (_STARTS, self.starts)):
            if shared is not None:
                share(shared / name, folder / name)
            else:
                np.save(folder / name, content)

    @property
    def counts(self) -> Numbers:
        """How many tokens each text has."""
        return np.diff(self.starts)

    def picked(self, places: Numbers) -> "TokenBits":
        """The texts at these places, in this order."""
        starts, ends = self.starts[places], self.starts[places + 1]
        # Texts that follow each other are taken as one piece: a number for each token would be half as large as it is.
        begins = np.flatnonzero(np.concatenate(([True], starts[1:] != ends[:-1]))[: len(places)])
        last = np.concatenate((begins[1:], [len(places)]))[: len(begins)] - 1
        pieces = [self.bits[start:end] for start, end in zip(starts[begins].tolist(), ends[last].tolist(), strict=True)]
        return TokenBits(np.concatenate([self.bits[:0], *pieces]), _starts(ends - starts))

    def closeness(self, query: Tokens) -> Fractions:
        """How close each text comes to a query, -1 to 1: the mean, over the query's tokens, of the cosine of the
        text's nearest token; a token counts as much as it is long, so one without length not at all. NaN where no
        tokens are known.
        """
        query, known = query[query.any(axis=1)], np.flatnonzero(self.counts)
        close = np.full(len(self.counts), np.nan)
        if not len(query) or not len(known):
            return close
        asked = _in_bytes(query)
        nearest = 2 * self._most(asked, known) - asked.sum(axis=1, dtype=np.int32)
        lengths = np.linalg.norm(asked.astype(np.float64), axis=1) * np.sqrt(DIRECTIONS)
        close[known] = np.average(nearest / lengths, axis=1, weights=np.linalg.norm(query, axis=1))
        return close

    def _most(self, asked: npt.NDArray[np.int8], known: Numbers) -> npt.NDArray[np.int32]:
        """For each of these texts, all of which have tokens, and each token that is asked the highest product of its
        numbers with the bits of one of the text's tokens, shape (texts, asked).
        """
        # Bits are 0 and 1 where signs are -1 and 1: products with these are twice those less the sum of the numbers.
        # Not by NumPy: on a busy machine the threads of its BLAS wait for each other longer than all of this takes.
        pack, starts, ends = numkong.dots_pack(asked, "int8"), self.starts[known], self.starts[known + 1]
        most, done = np.empty((len(known), len(asked)), dtype=np.int32), 0
        while done < len(known):
            upto = max(done + 1, int(np.searchsorted(ends, starts[done] + _PORTION, "right")))
            bits = np.unpackbits(self.bits[starts[done] : ends[upto - 1]], axis=1).view(np.int8)
            products: npt.NDArray[np.int32] = np.asarray(numkong.dots_packed(bits, pack))
            np.maximum.reduceat(products, starts[done:upto] - starts[done], axis=0, out=most[done:upto])
            done = upto
        return most


def stored(reading: TextEmbeddings) -> Iterator[Embedded]:
    """What a model made of each text, as it is stored."""
    for row, tokens in zip(reading.vectors.astype("<f2"), reading.tokens, strict=True):
        yield Embedded(row.tobytes(), packed(tokens))


def packed(tokens: Tokens) -> bytes:
    """The signs of a text's tokens, 16 bytes each."""
    return np.packbits(tokens > 0, axis=1).tobytes()


def _in_bytes(tokens: Tokens) -> npt.NDArray[np.int8]:
    """The same directions, but for a third of a percent, in a byte for each number."""
    largest: Tokens = np.abs(tokens).max(axis=1, keepdims=True)
    rounded: npt.NDArray[np.floating] = np.round(tokens * (127 / largest))
    return rounded.astype(np.int8)


def _starts(counts: Numbers) -> Numbers:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def stretches(starts: Numbers, counts: Numbers) -> Numbers:
    """The rows of several stretches, one after the other."""
    ends = np.cumsum(counts)
    rows: Numbers = np.arange(int(counts.sum())) + np.repeat(starts - ends + counts, counts)
    return rows
