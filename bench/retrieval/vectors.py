"""Vectors of the packaged model, cached between runs."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from palaver.search.model.embedding import Embedder

from ..shared import PROJECT

CACHE = PROJECT / "bench" / ".cache"


def embedded(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return one vector per text. The vectors of the same texts and model are read from a cache."""
    key = hashlib.sha256("\0".join((embedder.name, *texts)).encode()).hexdigest()[:32]
    path = CACHE / f"{key}.npy"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        np.save(path, embedder.embed(texts))
    kept: npt.NDArray[np.float32] = np.load(path)
    return kept
