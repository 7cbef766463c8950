"""The usearch graph above a large matrix. It knows no filter and forgets nothing: who asks sieves what it answers.

usearch is loaded when a graph is first asked, so small archives never do. Its kernels are loaded with RTLD_GLOBAL:
onnxruntime, when it is loaded after version 2.26 of it, crashes the process. So nothing else imports it.
"""

import math
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...core.errors import IndexUnwritable
from .matches import Numbers

if TYPE_CHECKING:
    from usearch.index import Index

_EXPANSION = 64
"""Candidates looked at for each vector while the graph is built: enough for 0.996 of what an exact scan finds. For a
query at least as many.
"""
_SURELY = 25_000
"""Rows up to which a search finds nearly all without looking at more candidates than are wanted. Among twice as many it
loses its way twice as often, and so looks at as many again.
"""


class VectorGraph:
    """Nearest neighbours among the rows of a matrix, by their numbers, nearly all of them."""

    def __init__(self, make: "Callable[[], Index]") -> None:
        self._make = make

    @classmethod
    def of(cls, matrix: npt.NDArray[np.float16]) -> "VectorGraph":
        """Built when it is first asked or saved; about 3,000 rows a second on two cores."""

        def build() -> "Index":
            index = _empty(matrix.shape[1])
            index.add(np.arange(len(matrix)), matrix)
            return index

        return cls(build)

    @classmethod
    def at(cls, path: Path, dimension: int) -> "VectorGraph":
        """Mapped when first asked, from a file whose checksum was verified: a damaged one kills the process."""

        def view() -> "Index":
            index = _empty(dimension)
            index.view(str(path))  # pyright: ignore[reportUnknownMemberType]
            return index

        return cls(view)

    @cached_property
    def _index(self) -> "Index":
        return self._make()

    def save(self, path: Path) -> None:
        """Write the file; neither atomic nor synced. Raises `IndexUnwritable`."""
        try:
            self._index.save(str(path))  # pyright: ignore[reportUnknownMemberType]
        except RuntimeError as error:
            raise IndexUnwritable(str(error)) from error

    def near(self, query: npt.NDArray[np.float16], limit: int, wanted: int) -> Numbers:
        """The numbers of the rows nearest to the query, so many that so many `wanted` ones should be among them."""
        times = math.log2(max(2.0, len(self._index) / _SURELY))
        # mypy sees no setter that stands apart from its getter.
        self._index.expansion_search = max(_EXPANSION, limit, int(wanted * times))  # type: ignore[misc]
        return self._index.search(query, limit).keys.astype(np.int64)


def _empty(dimension: int) -> "Index":
    from ..model import onnx_runtime  # noqa: F401 # pyright: ignore[reportUnusedImport]

    # isort: split
    from usearch.index import Index

    return Index(ndim=dimension, metric="cos", dtype="f16", expansion_add=_EXPANSION)
