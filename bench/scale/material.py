"""Input of the generator of synthetic archives: word frequencies, vectors and questions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from palaver.search.model.embedding import Embedder

from ..retrieval.sets import coding_sessions
from ..retrieval.vectors import embedded

Vectors: TypeAlias = npt.NDArray[np.float32]
Shares: TypeAlias = npt.NDArray[np.float64]

_VECTORS = 2_000
_WORDS, _TEXTS, _LENGTH = 5_000, 200, 12


class Material(Struct, frozen=True, eq=False):
    """Input of the generator.

    Attributes:
        shares: Cumulative relative frequencies of the words.
        vectors: Vectors, with the shape (n, dimension).
    """

    words: Sequence[str]
    shares: Shares
    vectors: Vectors
    questions: Sequence[str]

    @classmethod
    def real(cls, embedder: Embedder) -> "Material":
        """Load words, vectors and questions of the 98 sessions. Raises `SetMissing`."""
        corpus = coding_sessions()
        texts = [passage.text for passage in corpus.passages]
        every = max(1, len(texts) // _VECTORS)
        asked = [question.text for question in corpus.questions]
        vectors = embedded(embedder, texts[::every][:_VECTORS])
        return cls(*_counted(word for text in texts for word in text.split()), vectors, asked)

    @classmethod
    def invented(cls, embedder: Embedder) -> "Material":
        """Return small synthetic texts of numbered words, with their vectors."""
        random = np.random.default_rng(7)
        drawn = random.zipf(1.3, size=(_TEXTS, _LENGTH)) % _WORDS
        texts = [" ".join(f"w{rank}" for rank in row) for row in drawn.tolist()]
        return cls(*_counted(word for text in texts for word in text.split()), embedder.embed(texts), texts)


def _counted(said: Iterable[str]) -> tuple[list[str], Shares]:
    counts = Counter(said)
    shares = np.cumsum(list(counts.values()))
    return list(counts), shares / shares[-1]
