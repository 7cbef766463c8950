"""An embedder that needs no model: each word has a direction of its own, a text points where its words do."""

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
    """Texts with common words are near each other. The same text has the same vector in every process."""

    dimension = 32

    def __init__(self, name: str = "fake/1", *, missing: bool = False) -> None:
        """Models of different names disagree; a missing one refuses to embed."""
        self.name, self._missing = name, missing

    def load(self, _name: str, *, record: Path | None = None) -> Self:  # noqa: ARG002 - the signature is `embedder.load`'s
        """What stands in for `embedder.load` finds this one under every name."""
        return self

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit vector per text."""
        if self._missing:
            raise ModelUnavailable("the model is missing")
        rows = np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """The same vectors; a token for each word, which is nearest to itself."""
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
