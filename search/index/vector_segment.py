"""Segment of a vector index. Its vectors are immutable, and some rows are flagged as deleted."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numkong
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import StoredVector
from ...core.memo import Memo
from ..model.embedding import TokenVectors
from .generation import link_or_copy
from .matches import Flags, Floats, Integers, VectorMatches, among, distinct
from .token_bits import TokenBits, row_ranges
from .vector_graph import VectorGraph

Array: TypeAlias = npt.NDArray[np.float32]

_ROWS, _MATRIX, _ALIVE, _GRAPH = "rows.npy", "vectors.npy", "alive.npy", "graph.usearch"
_ITEM, _EVENT, _PART = range(3)
_SCAN_OR_WALK = 20
"""Number of rows that an exact scan reads in the time in which a search in the graph examines one candidate."""
_SPARE = 1.5
"""Number of candidates to request for a filtered search, as a multiple of the number that is needed on average."""
_LIKELY = 1.1
"""Size of the first batch of candidates to filter, as a multiple of the same number. This batch usually suffices."""
_TEXTS = 16
"""Maximum number of texts per item that late interaction compares."""

ItemFilter: TypeAlias = Callable[[Integers], Flags]
"""Function that returns a flag per item: True if the item passes the filter."""


class PartFilter(NamedTuple):
    """Parts of exchanges to search: prompts, answers or both. Observations always pass."""

    prompts: bool = True
    answers: bool = True


ALL_PARTS = PartFilter()


class Segment(Struct, frozen=True, eq=False, dict=True):
    """Part of a vector index: vectors that were written together.

    Attributes:
        rows: (item key, event key, part) of each vector, sorted by event, shape (3, n).
        matrix: Vectors, shape (n, dimension).
        token_bits: Binary token embeddings of the texts.
        alive: True for rows that are not deleted, shape (n,), or None if no row is deleted.
        folder: Folder of the files, or None if the segment was not read from files.
        graph: Graph of the vectors, or None for a small segment.
    """

    rows: Integers
    matrix: npt.NDArray[np.float16]
    token_bits: TokenBits
    alive: Flags | None = None
    folder: Path | None = None
    graph: VectorGraph | None = None

    @classmethod
    def of(cls, vectors: Sequence[StoredVector]) -> "Segment":
        """Return a segment of these vectors. Zero vectors and non-finite vectors are left out."""
        rows = np.array([(one.item, one.event, one.part) for one in vectors], dtype=np.int64).reshape(-1, 3).T
        numbers = np.frombuffer(b"".join(one.data for one in vectors), dtype="<f2")
        matrix = numbers.reshape(len(vectors), -1 if vectors else 0)
        sound = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
        signs = TokenBits.of([vectors[place].token_bits for place in np.flatnonzero(sound).tolist()])
        return cls._sorted(rows[:, sound], matrix[sound].astype(np.float16, copy=False), signs)

    @classmethod
    def merged(cls, segments: Sequence["Segment"]) -> "Segment":
        """Return one segment, without a graph, that contains the rows of these segments except deleted rows."""
        kept = [segment.places() for segment in segments]
        rows = np.concatenate([one.rows[:, places] for one, places in zip(segments, kept, strict=True)], axis=1)
        matrix = np.concatenate([one.matrix[places] for one, places in zip(segments, kept, strict=True)])
        signs = TokenBits.merged([one.token_bits.selected(places) for one, places in zip(segments, kept, strict=True)])
        return cls._sorted(rows, matrix, signs)

    @classmethod
    def _sorted(cls, rows: Integers, matrix: npt.NDArray[np.float16], signs: TokenBits) -> "Segment":
        order = np.lexsort((rows[_PART], rows[_ITEM], rows[_EVENT]))
        return cls(np.ascontiguousarray(rows[:, order]), matrix[order], signs.selected(order))

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        """Open a segment by mapping the files of its folder into memory."""
        rows, matrix = (np.asarray(np.load(folder / name, mmap_mode="r")) for name in (_ROWS, _MATRIX))
        alive, graph = folder / _ALIVE, folder / _GRAPH
        return cls(
            rows,
            matrix,
            TokenBits.open(folder, len(matrix)),
            np.load(alive) if alive.exists() else None,
            folder,
            VectorGraph.at(graph, matrix.shape[1]) if graph.exists() else None,
        )

    def save(self, folder: Path) -> None:
        """Write the files into a generation under construction. Files of an opened segment are linked."""
        folder.mkdir()
        self.token_bits.save(folder, self.folder)
        if self.folder is not None:
            for name in (_ROWS, _MATRIX, *([_GRAPH] if self.graph else ())):
                link_or_copy(self.folder / name, folder / name)
        else:
            np.save(folder / _ROWS, self.rows)
            np.save(folder / _MATRIX, self.matrix)
            if self.graph is not None:
                self.graph.save(folder / _GRAPH)
        if self.alive is not None:
            np.save(folder / _ALIVE, self.alive)

    @cached_property
    def living(self) -> int:
        """Number of rows that are not deleted."""
        return len(self) if self.alive is None else int(np.count_nonzero(self.alive))

    def __len__(self) -> int:
        return len(self.matrix)

    def places(self) -> Integers:
        """Return the indices of rows that are not deleted."""
        return np.arange(len(self)) if self.alive is None else np.flatnonzero(self.alive)

    def without(self, items: Integers) -> "Segment":
        """Return a segment without the vectors of these items."""
        gone = np.isin(self.rows[_ITEM], items)
        if not gone.any():
            return self
        return replace(self, alive=~gone if self.alive is None else self.alive & ~gone)

    def with_graph(self) -> "Segment":
        """Return a segment with the same rows and a graph."""
        return replace(self, folder=None, graph=VectorGraph.of(self.matrix))

    def nearest(
        self, vector: Array, limit: int, allowed: Flags | None, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches:
        """See `VectorIndex.nearest`."""
        passed = self._passed(allowed, part_filter)
        count = len(self) if passed is None else int(np.count_nonzero(passed))
        if self.graph is not None and count * count > _SCAN_OR_WALK * limit * len(self):
            found = self.graph.near(_as_stored(vector), min(len(self), -(-limit * len(self) // count)), limit)
            found = found if passed is None else found[passed[found]]
            if len(found) >= limit:  # with fewer, scan exactly
                return self._of(np.sort(found), self._cosines(np.sort(found), vector)).best(limit)
        places = None if passed is None else np.flatnonzero(passed)
        cosines = self._cosines(places, vector)
        best = _highest(cosines, limit)
        return self._of(best if places is None else places[best], cosines[best]).best(limit)

    def nearest_passing(
        self, vector: Array, limit: int, share: float, passes: ItemFilter, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches | None:
        """See `VectorIndex.nearest_passing`."""
        wanted = min(len(self), int(_SPARE * limit / share))
        if self.graph is not None and _SCAN_OR_WALK * wanted < len(self):
            found = np.sort(self.graph.near(_as_stored(vector), wanted, limit))
        else:
            found = _highest(self._cosines(None, vector), wanted)
        found = found if self.alive is None else found[self.alive[found]]
        near = self._of(found, self._cosines(found, vector)).best(len(found))
        first, passed = np.arange(len(near)) < _LIKELY * limit / share, VectorMatches.none()
        for some in (near.where(first), near.where(~first)):
            if len(passed) < limit:
                passed = VectorMatches.concatenated(
                    [passed, some.where(passes(some.item) & _in_parts(some.rows, part_filter))]
                )
        return None if len(passed) < limit and wanted < len(self) else passed.best(limit)

    def of_events(self, vector: Array, events: Integers) -> VectorMatches:
        """See `VectorIndex.of_events`."""
        places = self._places_of(events)
        if not len(places):
            return VectorMatches.none()
        cosines = self._cosines(places, vector)
        kinds = self.rows[_ITEM, places] * 2 + (self.rows[_PART, places] == 0)
        order = np.lexsort((-cosines, kinds))
        _, first = distinct(kinds[order])
        return self._of(places[order[first]], cosines[order[first]])

    def late_interaction(self, query: TokenVectors, vector: Array, rows: Integers) -> Floats:
        """See `VectorIndex.late_interaction`. Only the `_TEXTS` nearest texts of each item are compared."""
        items, _ = distinct(rows[_ITEM])
        candidates = self._places_of(distinct(rows[_EVENT])[0])
        if not len(candidates):
            return np.full(len(rows[_ITEM]), np.nan)
        places = self._nearest_texts(candidates[among(self.rows[_ITEM, candidates], items)], vector)
        best = np.full(len(items), np.nan)
        items_of_rows: Integers = self.rows[_ITEM, places]
        np.fmax.at(best, np.searchsorted(items, items_of_rows), self.token_bits.selected(places).similarity(query))
        scores: Floats = best[np.searchsorted(items, rows[_ITEM])]
        return scores

    def _nearest_texts(self, places: Integers, vector: Array) -> Integers:
        """Return up to `_TEXTS` of these rows per item, the nearest to a unit vector, in ascending order."""
        order = np.lexsort((-self._cosines(places, vector), self.rows[_ITEM, places]))
        _, first = distinct(self.rows[_ITEM, places[order]])
        ranks = row_ranges(np.zeros_like(first), np.diff(first, append=len(order)))
        return np.sort(places[order[ranks < _TEXTS]])

    def _places_of(self, events: Integers) -> Integers:
        """Return the indices of rows of these events that are not deleted."""
        starts, ends = (np.searchsorted(self.rows[_EVENT], events, side) for side in ("left", "right"))
        places = row_ranges(starts, ends - starts)
        return places if self.alive is None else places[self.alive[places]]

    def _passed(self, allowed: Flags | None, part_filter: PartFilter) -> Flags | None:
        """Return a flag per row, True if the row can be a result, or None if every row can be a result."""
        passed = self.alive
        if allowed is not None:
            # Keys beyond the end get the last flag, False. This avoids a comparison per row.
            padded: Flags = np.concatenate((allowed, np.zeros(1, dtype=bool)))
            flags: Flags = padded.take(self.rows[_ITEM, :], mode="clip")
            passed = flags if passed is None else flags & passed
        if part_filter == ALL_PARTS:
            return passed
        in_parts = _in_parts(self.rows, part_filter)
        return in_parts if passed is None else in_parts & passed

    def _cosines(self, places: Integers | None, vector: Array) -> Floats:
        """Return the cosines of these rows, or of all rows if `places` is None."""
        query = vector.tobytes()
        if places is not None and 2 * len(places) < len(self) and query not in self._scanned:
            return _cosines(self.matrix[places], vector)
        cosines = self._scanned.get_or_make(query, lambda _: _cosines(self.matrix, vector))
        return cosines if places is None else cosines[places]

    @cached_property
    def _scanned(self) -> Memo[bytes, Floats]:
        """Cosines of all rows to the last query that scanned them. Each search needs them up to three times."""
        return Memo(1)

    def _of(self, places: Integers, cosines: Floats) -> VectorMatches:
        return VectorMatches(self.rows[:, places], cosines)


def _in_parts(rows: Integers, part_filter: PartFilter) -> Flags:
    """Return a flag per row: True if the row passes the filter."""
    items, events, parts = rows
    wanted = np.where(parts == 0, part_filter.prompts, part_filter.answers)
    passed: Flags = (items != events) | wanted
    return passed


def _highest(values: Floats, limit: int) -> Integers:
    """Return the positions of the highest values, in ascending order."""
    return np.arange(len(values)) if len(values) <= limit else np.sort(np.argpartition(-values, limit)[:limit])


def _as_stored(vector: Array) -> npt.NDArray[np.float16]:
    return vector.astype(np.float16)


def _cosines(matrix: npt.NDArray[np.float16], vector: Array) -> Floats:
    if not len(matrix):
        return np.empty(0)
    distances: Floats = np.asarray(numkong.cdist(_as_stored(vector)[None, :], matrix, "angular"))
    return np.clip(1 - distances[0, :], -1, 1)
