"""Types of embeddings and the protocol of embedding models. Importing this module does not load a numeric library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from ...archiver.store.change_log import TOKEN_BYTES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"
"""Unit vectors, shape (n, dimension)."""
TokenVectors: TypeAlias = "npt.NDArray[np.float32]"
"""Token embeddings of one text, shape (tokens, `TOKEN_DIMENSIONS`)."""

TOKEN_DIMENSIONS = 8 * TOKEN_BYTES
"""Number of dimensions of a token embedding. The index stores one bit per dimension."""


class TextEmbeddings(NamedTuple):
    """Embeddings of several texts.

    Attributes:
        vectors: One unit vector per text, shape (n, dimension).
        tokens: Token embeddings of each text, shape (tokens, `TOKEN_DIMENSIONS`). Empty if the model does not return
            them.
        spans: (start, end) character offsets of each token, one list per text.
    """

    vectors: Vectors
    tokens: Sequence[TokenVectors]
    spans: Sequence[Sequence[tuple[int, int]]]

    def singly(self) -> list[TextEmbeddings]:
        """Return the embeddings of each text separately."""
        return [
            TextEmbeddings(self.vectors[row : row + 1], [tokens], [spans])
            for row, (tokens, spans) in enumerate(zip(self.tokens, self.spans, strict=True))
        ]


class Embedder(Protocol):
    """Protocol of embedding models. Implementations are thread-safe, and dot products of their vectors are cosines."""

    name: str
    """Name of the model and its pipeline version. Only vectors from embedders with equal names are comparable."""

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector. Raises `ModelUnavailable` if the model must be loaded but cannot be."""
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
