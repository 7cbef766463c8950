"""The vector index: a matrix that is scanned exactly, and a usearch graph above it once it is too large for that.

usearch has no filter predicate, so filters are met in one of two ways: what a narrow filter leaves is scanned
exactly, and a wide one is sieved out of a longer candidate list.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..archiver.store import StoredVector

# usearch 2.26 loads its kernels with RTLD_GLOBAL: onnxruntime, when it is loaded after it, crashes the process.
from . import runtime  # noqa: F401 # pyright: ignore[reportUnusedImport]

# isort: split
from usearch.compiled import MetricKind
from usearch.index import Index, search

Array: TypeAlias = npt.NDArray[np.float32]
Numbers: TypeAlias = npt.NDArray[np.int64]

EXACT_UP_TO = 20_000
"""Up to this many vectors an exact scan of float16 rows takes 4-10 ms on two cores, and misses nothing."""
_ROWS, _MATRIX, _GRAPH = "rows.npy", "vectors.npy", "graph.usearch"
_ITEM, _EVENT, _PART = range(3)


class Near(NamedTuple):
    """One vector and its similarity to the query: a true cosine, -1 to 1."""

    item: int
    event: int
    part: int
    similarity: float


class VectorIndex:
    """Vectors that can be found by nearness. A value: changing it makes another."""

    def __init__(self, rows: Numbers, matrix: npt.NDArray[np.float16], graph: Index | None = None) -> None:
        """`rows` are (item, event, part), shape (n, 3); `matrix` holds their vectors, shape (n, dimension)."""
        self._rows, self._matrix, self._graph = rows, matrix, graph

    @classmethod
    def empty(cls) -> "VectorIndex":
        """An index of no vectors, and so of no dimension."""
        return cls(np.empty((0, 3), dtype=np.int64), np.empty((0, 0), dtype=np.float16))

    @classmethod
    def open(cls, folder: Path) -> "VectorIndex":
        """Map the files of a folder whose checksums were verified before (usearch itself checks nothing)."""
        if not (folder / _ROWS).exists():  # a generation published before anything was embedded
            return cls.empty()
        rows = np.load(folder / _ROWS, allow_pickle=False)
        matrix = np.load(folder / _MATRIX, mmap_mode="r", allow_pickle=False)
        graph = _graph(matrix.shape[1]) if (folder / _GRAPH).exists() else None
        if graph is not None:
            graph.view(str(folder / _GRAPH))  # pyright: ignore[reportUnknownMemberType]
        return cls(rows, matrix, graph)

    def save(self, folder: Path) -> None:
        """Write the files. Neither atomic nor synced: only ever into a generation that is still being built."""
        np.save(folder / _ROWS, self._rows)
        np.save(folder / _MATRIX, self._matrix)
        if self._graph is not None:
            self._graph.save(str(folder / _GRAPH))  # pyright: ignore[reportUnknownMemberType]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def dimension(self) -> int:
        """Numbers per vector; 0 where there are none."""
        return int(self._matrix.shape[1])

    def changed(self, gone: Iterable[int], added: Sequence[StoredVector]) -> "VectorIndex":
        """The index without the vectors of the items `gone` and with these; what is not finite is left out."""
        kept = ~np.isin(self._rows[:, _ITEM], np.fromiter(gone, dtype=np.int64))
        rows, matrix = self._rows[kept], self._matrix[kept]
        if added:
            new_rows, new_matrix = _stack(added)
            rows = np.concatenate([rows, new_rows])
            matrix = np.concatenate([matrix.reshape(len(matrix), new_matrix.shape[1]), new_matrix])
        graph = None
        if len(rows) > EXACT_UP_TO:
            graph = _graph(matrix.shape[1])
            graph.add(np.arange(len(rows)), matrix)
        return VectorIndex(rows, matrix, graph)

    def nearest(
        self, vector: Array, limit: int, allowed: AbstractSet[int] | None, hidden: AbstractSet[int]
    ) -> list[Near]:
        """The vectors nearest to a unit vector, best first; only of allowed items, none of hidden ones."""
        passed = self._passed(allowed, hidden)
        places = np.flatnonzero(passed)
        if len(places) > EXACT_UP_TO and self._graph is not None:
            share = len(self) / len(places)
            keys = self._graph.search(vector, min(len(self), round(limit * share))).keys.astype(np.int64)
            places = keys[passed[keys]][:limit]
        places, cosines = self._ranked(places, vector)
        return self._near(places[:limit], cosines[:limit])

    def of_events(self, vector: Array, events: Iterable[int], hidden: AbstractSet[int]) -> list[Near]:
        """Of every item of these events its best vectors, exactly compared: part 0, and the best other part."""
        passed = np.isin(self._rows[:, _EVENT], np.fromiter(events, dtype=np.int64))
        places, cosines = self._ranked(np.flatnonzero(passed & self._passed(None, hidden)), vector)
        kinds = self._rows[places, _ITEM] * 2 + (self._rows[places, _PART] == 0)
        _, best = np.unique(kinds, return_index=True)
        return self._near(places[best], cosines[best])

    def _passed(self, allowed: AbstractSet[int] | None, hidden: AbstractSet[int]) -> npt.NDArray[np.bool_]:
        passed = np.ones(len(self), dtype=bool)
        if allowed is not None:
            passed &= np.isin(self._rows[:, _ITEM], np.fromiter(allowed, dtype=np.int64))
        if hidden:
            passed &= ~np.isin(self._rows[:, _ITEM], np.fromiter(hidden, dtype=np.int64))
        return passed

    def _ranked(self, places: Numbers, vector: Array) -> tuple[Numbers, Array]:
        """These vectors by nearness, exactly compared, with their cosines."""
        if not len(places):
            return places, np.empty(0, dtype=np.float32)
        matrix = np.asarray(self._matrix) if len(places) == len(self) else self._matrix[places]
        query = vector.astype(np.float16)[None, :]
        found = search(matrix, query, len(places), MetricKind.Cos, exact=True, threads=1)
        return places[found.keys.astype(np.int64)], np.clip(1 - found.distances, -1, 1)

    def _near(self, places: Numbers, cosines: Array) -> list[Near]:
        rows: list[tuple[int, int, int]] = self._rows[places].tolist()
        return [Near(*row, cosine) for row, cosine in zip(rows, cosines.tolist(), strict=True)]


def _graph(dimension: int) -> Index:
    return Index(ndim=dimension, metric="cos", dtype="f16", expansion_add=64)


def _stack(vectors: Sequence[StoredVector]) -> tuple[Numbers, npt.NDArray[np.float16]]:
    rows = np.array([(v.item, v.event, v.part) for v in vectors], dtype=np.int64)
    matrix = np.frombuffer(b"".join(v.data for v in vectors), dtype="<f2").reshape(len(vectors), -1)
    sound = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
    return rows[sound], matrix[sound].astype(np.float16)
