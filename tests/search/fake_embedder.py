"""Embedder without a model: the vector of a text is the sum of fixed random vectors of its words."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from palaver.core.errors import ModelUnavailable
from palaver.search.model.embedding import TOKEN_DIMENSIONS, TextEmbeddings

_WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Embedder that makes texts with common words similar. Vectors are the same in every process."""

    dimension = 32

    def __init__(self, name: str = "fake/1", *, missing: bool = False) -> None:
        """Embedders with different names give different vectors. With `missing`, embedding raises an error."""
        self.name, self._missing = name, missing

    def load(self, _name: str, *, record: Path | None = None) -> Self:  # noqa: ARG002 - the signature is `embedder.load`'s
        """Return this embedder for every name, as a replacement of `embedder.load`."""
        return self

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit vector per text."""
        if self._missing:
            raise ModelUnavailable("the model is missing")
        rows = np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return the vectors of the texts, and one token embedding per word."""
        spans = [[word.span() for word in _WORD.finditer(text.lower())] for text in texts]
        return TextEmbeddings(self.embed(texts), [self._tokens(text) for text in texts], spans)

    def _vector(self, text: str) -> npt.NDArray[np.float64]:
        total = np.zeros(self.dimension)
        for word in _words(text) or [""]:
            total += self._direction(word, self.dimension)
        return total

    def _tokens(self, text: str) -> npt.NDArray[np.float32]:
        rows = [self._direction(word, TOKEN_DIMENSIONS) for word in _words(text)]
        return np.array(rows, dtype=np.float32).reshape(-1, TOKEN_DIMENSIONS)

    def _direction(self, word: str, width: int) -> npt.NDArray[np.float64]:
        seed = blake2b(f"{self.name} {word}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(seed)).standard_normal(width)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
