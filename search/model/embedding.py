"""Types of embeddings and the protocol of embedding models. Importing this module loads no numeric library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ...archiver.store.vector_table import TOKEN_BYTES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""Unit vectors, shape (n, dimension)."""
TokenVectors: TypeAlias = "npt.NDArray[np.float32]"
"""Token embeddings of one text, shape (tokens, `TOKEN_DIMENSIONS`)."""

TOKEN_DIMENSIONS = 8 * TOKEN_BYTES
"""Dimensions of a token embedding; the index keeps one bit of each."""


class TextEmbeddings(NamedTuple):
    """Embeddings of several texts.

    Attributes:
        vectors: One unit vector per text, shape (n, dimension).
        tokens: For each text its token embeddings, shape (tokens, `TOKEN_DIMENSIONS`); no rows if the model has none.
        spans: For each text the (start, end) character offsets of its tokens.
    """

    vectors: Vectors
    tokens: Sequence[TokenVectors]
    spans: Sequence[Sequence[tuple[int, int]]]


class Embedder(Protocol):
    """Embedding model. Thread-safe; dot products of its vectors are cosines."""

    name: str
    """Identity of the model and its pipeline. Only vectors with equal names are comparable."""

    @property
    def dimension(self) -> int:
        """Length of a vector. Raises `ModelUnavailable` if only the loaded model knows."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, shape (len(texts), dimension).

        Raises:
            ModelUnavailable: The model cannot be loaded.
        """
        ...

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return the vectors and the token embeddings of each text.

        Raises:
            ModelUnavailable: The model cannot be loaded.
        """
        ...
