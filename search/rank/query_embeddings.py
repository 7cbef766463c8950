"""Embeddings of queries, computed by the model of the index and cached."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import ModelUnavailable
from ...core.memo import Memo
from ..index.snapshot import Snapshot
from ..index.vector_segment import Array
from ..model.embedder import load, model_of
from ..model.embedding import Embedder, TextEmbeddings

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_RE_EMBED = "Run `palaver archive` to embed everything again."
_REMEMBERED = 64
"""Number of queries whose embeddings are cached."""


class QueryEmbeddings:
    """Cache of query embeddings. The first query loads the model. All methods raise `ModelUnavailable`."""

    def __init__(self, snapshot: Snapshot, embedder: Embedder) -> None:
        self._snapshot, self._embedder = snapshot, embedder
        self._known = Memo[tuple[str, str], TextEmbeddings](_REMEMBERED)
        self.hits = self.misses = 0
        """Number of query texts whose embedding was cached, and of texts that had to be embedded."""

    def in_background(self, texts: Sequence[str]) -> Callable[[], list[Array]]:
        """Start a thread that embeds these texts, and return a function that waits for the vectors.

        Text search can run meanwhile, because both computations release the GIL. The first query does not use a thread,
        because loading the model holds the GIL.
        """
        cached = sum((self._snapshot.model, text) in self._known for text in texts)
        self.hits, self.misses = self.hits + cached, self.misses + len(texts) - cached
        if not self._known or cached == len(texts):
            return partial(self.vectors, texts)
        return self._thread.submit(self.vectors, texts).result

    def vectors(self, texts: Sequence[str]) -> list[Array]:
        """Return the unit vector of each text. Texts that are not cached are embedded in one batch."""
        model = self.model()
        missing = [text for text in dict.fromkeys(texts) if (model.name, text) not in self._known]
        if len(missing) > 1:
            for text, embedding in zip(missing, model.read(missing).singly(), strict=True):
                self._known.put((model.name, text), embedding)
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Array:
        """Return the unit vector of a text."""
        return self.of(text).vectors[0, :]

    def mean_vector(self, texts: Sequence[str]) -> Array:
        """Return the normalised sum of the vectors of these texts."""
        if len(texts) == 1:
            return self.vector(texts[0])
        total = np.sum([self.vector(text) for text in texts], axis=0)
        mean: Array = (total / max(float(np.linalg.norm(total)), 1e-9)).astype(np.float32)
        return mean

    def of(self, text: str) -> TextEmbeddings:
        """Return the embeddings of a text."""
        return self._known.get_or_make((self.model().name, text), lambda key: self.model().read([key[1]]))

    def model(self) -> Embedder:
        """Return the model of the index. Until all items are re-embedded, it can differ from the configured model."""
        wanted = self._snapshot.model
        if self._embedder.name != wanted:
            self._embedder = load(model_of(wanted))
        if self._embedder.name != wanted:
            raise ModelUnavailable(
                f"this version of Palaver does not include {wanted}, the model of the index", hint=_RE_EMBED
            )
        return self._embedder

    @cached_property
    def _thread(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1)
