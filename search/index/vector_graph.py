"""Approximate nearest-neighbour search with a usearch graph over a large matrix.

Callers filter the results. usearch is loaded when a graph is first searched, so small archives never load it. It loads
its kernels with RTLD_GLOBAL, and version 2.26 crashes the process if onnxruntime is loaded afterwards. No other module
imports usearch.
"""

import math
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...core.errors import IndexUnwritable
from .matches import Integers

if TYPE_CHECKING:
    from usearch.index import Index

_EXPANSION = 64
"""Number of candidates per vector while the graph is built, and minimum number per query. The recall is 0.996."""
_SMALL = 25_000
"""Reference size of an index in vectors, from which the number of candidates of a search is calculated.

A search among n vectors examines max(1, log2(n / `_SMALL`)) candidates per requested result, but at least `_EXPANSION`.
"""


class VectorGraph:
    """Approximate nearest-neighbour search in a matrix. Results are row indices."""

    def __init__(self, load: "Callable[[], Index]") -> None:
        self._load = load

    @classmethod
    def of(cls, matrix: npt.NDArray[np.float16]) -> "VectorGraph":
        """Return a graph that is built on first use. Building takes 1 s per 3,000 rows on two cores."""

        def build() -> "Index":
            index = _empty(matrix.shape[1])
            index.add(np.arange(len(matrix)), matrix)
            return index

        return cls(build)

    @classmethod
    def at(cls, path: Path, dimension: int) -> "VectorGraph":
        """Return a graph that maps this file into memory on first use. A damaged file crashes the process."""

        def view() -> "Index":
            index = _empty(dimension)
            index.view(str(path))  # pyright: ignore[reportUnknownMemberType]
            return index

        return cls(view)

    @cached_property
    def _index(self) -> "Index":
        return self._load()

    def save(self, path: Path) -> None:
        """Write the file without sync and without atomic replacement. Raises `IndexUnwritable`."""
        try:
            self._index.save(str(path))  # pyright: ignore[reportUnknownMemberType]
        except RuntimeError as error:
            raise IndexUnwritable(str(error)) from error

    def near(self, query: npt.NDArray[np.float16], limit: int, wanted: int) -> Integers:
        """Return the indices of the `limit` rows nearest to a query.

        The search examines enough candidates to find nearly all of the best `wanted` rows.
        """
        times = math.log2(max(2.0, len(self._index) / _SMALL))
        # mypy does not support a setter whose type differs from its getter.
        self._index.expansion_search = max(_EXPANSION, limit, int(wanted * times))  # type: ignore[misc]
        return self._index.search(query, limit).keys.astype(np.int64)


def _empty(dimension: int) -> "Index":
    from ..model import encoder  # noqa: F401 # pyright: ignore[reportUnusedImport] - loads onnxruntime first

    # isort: split
    from usearch.index import Index

    return Index(ndim=dimension, metric="cos", dtype="f16", expansion_add=_EXPANSION)
