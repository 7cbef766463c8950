"""Vector index of segments: exact scan, nearest-neighbour graph, and late interaction of tokens.

The vectors of a segment are immutable, and some rows are flagged as deleted. Files are mapped into memory, and large
segments are written and merged in parts. Small segments are scanned exactly. Large segments use a usearch graph of
vectors that are rounded to int8, and compare its candidates by exact cosines. The Python package usearch does not
support filters. If few items satisfy a filter, they are scanned exactly. Otherwise, the search requests more candidates
and filters them. usearch is loaded when a graph is first searched. It loads its kernels with RTLD_GLOBAL, and version
2.26 crashes the process if onnxruntime is loaded afterwards. No other module imports usearch.

Late interaction compares each query token with the most similar token of a text (Khattab and Zaharia, ColBERT, 2020).
A text token is stored as 128 sign bits, which take 16 bytes. Query tokens are not reduced to bits, so cosines are
close to those of full vectors.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numkong
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import StoredVector
from ...archiver.store.change_log import TOKEN_BYTES, Embedding
from ...core.errors import IndexUnwritable
from ...core.tokens import Memo
from ..model.embedding import TOKEN_DIMENSIONS, TextEmbeddings, TokenVectors
from .generation import link_or_copy
from .matches import Flags, Floats, Integers, VectorMatches, among, distinct

if TYPE_CHECKING:
    from usearch.index import Index

_EXPANSION = 64
"""Number of candidates per vector while the graph is built, and minimum number per query."""
_CANDIDATES = 2
"""Number of candidates that are compared by exact cosines, as a multiple of the requested number.

Rounding to int8 changes the order of the candidates a little (bench/RESULTS.md).
"""
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
        """Return a graph that is built on first use. Building takes 1 s per 10,000 rows on two cores."""

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

    def near(self, query: npt.NDArray[np.float16], limit: int, expansion: int) -> Integers:
        """Return indices of rows that include nearly all of the `limit` rows nearest to a query.

        The search examines enough candidates to find nearly all of the best `expansion` rows.
        """
        limit *= _CANDIDATES
        times = math.log2(max(2.0, len(self._index) / _SMALL))
        # mypy does not support a setter whose type differs from its getter.
        self._index.expansion_search = max(_EXPANSION, limit, int(expansion * times))  # type: ignore[misc]
        return self._index.search(query, limit).keys.astype(np.int64)


def _empty(dimension: int) -> "Index":
    from ..model import encoder  # noqa: F401 # pyright: ignore[reportUnusedImport] - loads onnxruntime first

    # isort: split
    from usearch.index import Index

    return Index(ndim=dimension, metric="cos", dtype="i8", expansion_add=_EXPANSION)


_BITS, _STARTS = "signs.npy", "tokens.npy"
_BATCH = 2_048
"""Number of text tokens compared at once. Smaller batches need more calls, and larger batches exceed the CPU cache."""


class TokenBits(Struct, frozen=True, eq=False):
    """Binary token embeddings of several texts.

    Attributes:
        bits: Packed sign bits, one row per token, shape (tokens, 16).
        starts: The tokens of text i are the rows from `starts[i]` to `starts[i + 1]`, shape (texts + 1,).
    """

    bits: npt.NDArray[np.uint8]
    starts: Integers

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "TokenBits":
        """Load token embeddings in the format of `packed`. Empty bytes represent a text without token embeddings."""
        bits = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, TOKEN_BYTES)
        return cls(bits, _starts(np.array([len(text) // TOKEN_BYTES for text in texts], dtype=np.int64)))

    @classmethod
    def merged(cls, several: Sequence["TokenBits"]) -> "TokenBits":
        """Concatenate several collections of texts."""
        bits = np.concatenate([part.bits for part in several])
        return cls(bits, _starts(np.concatenate([part.counts for part in several])))

    @classmethod
    def open(cls, folder: Path, texts: int) -> "TokenBits":
        """Map the files in a folder. If they are missing, return `texts` texts without token embeddings."""
        if not (folder / _BITS).exists():
            return cls.of([b""] * texts)
        bits, starts = (mapped(folder / name) for name in (_BITS, _STARTS))
        return cls(bits, starts)

    def save(self, folder: Path, shared: Path | None = None) -> None:
        """Write the files to a folder, or link to the files of the folder `shared`.

        The files in `shared` must have the same content. Without tokens, nothing is written.
        """
        if not len(self.bits):
            return
        for name, content in ((_BITS, self.bits), (_STARTS, self.starts)):
            if shared is not None:
                link_or_copy(shared / name, folder / name)
            else:
                np.save(folder / name, content)

    def between(self, start: int, end: int) -> "TokenBits":
        """Return the texts from `start` up to `end`, without a copy."""
        first, last = self.starts[start], self.starts[end]
        return TokenBits(self.bits[first:last], self.starts[start : end + 1] - first)

    @property
    def counts(self) -> Integers:
        """Number of tokens of each text, shape (texts,)."""
        return np.diff(self.starts)

    def selected(self, places: Integers) -> "TokenBits":
        """Return the texts at these positions in the given order."""
        starts, ends = self.starts[places], self.starts[places + 1]
        # Consecutive texts are copied as one slice. An index array of all tokens would take half as much memory again.
        begins = np.flatnonzero(np.concatenate(([True], starts[1:] != ends[:-1]))[: len(places)])
        last = np.concatenate((begins[1:], [len(places)]))[: len(begins)] - 1
        pieces = [self.bits[start:end] for start, end in zip(starts[begins].tolist(), ends[last].tolist(), strict=True)]
        return TokenBits(np.concatenate([self.bits[:0], *pieces]), _starts(ends - starts))

    def similarity(self, query: TokenVectors) -> Floats:
        """Return the late-interaction score of each text, -1 to 1, shape (texts,). NaN for texts without tokens.

        For each query token, the cosine to the most similar token of the text is taken. The score is the mean of these
        cosines, weighted by the length of the query token's vector.
        """
        query, with_tokens = query[query.any(axis=1)], np.flatnonzero(self.counts)
        scores = np.full(len(self.counts), np.nan)
        if not len(query) or not len(with_tokens):
            return scores
        tokens = _to_int8(query)
        nearest = 2 * self._max_products(tokens, with_tokens) - tokens.sum(axis=1, dtype=np.int32)
        lengths = np.linalg.norm(tokens.astype(np.float64), axis=1) * np.sqrt(TOKEN_DIMENSIONS)
        scores[with_tokens] = np.average(nearest / lengths, axis=1, weights=np.linalg.norm(query, axis=1))
        return scores

    def _max_products(self, tokens: npt.NDArray[np.int8], with_tokens: Integers) -> npt.NDArray[np.int32]:
        """Return the maximum dot product of each query token with the tokens of each text.

        The result has shape (texts, query tokens). `with_tokens` contains the indices of texts with tokens.
        """
        # Bits 0 and 1 represent -1 and 1, so the product with signs is twice the product with bits minus the sum.
        # NumPy is slower under load, because the threads of its BLAS wait for each other.
        pack, starts, ends = numkong.dots_pack(tokens, "int8"), self.starts[with_tokens], self.starts[with_tokens + 1]
        best, done = np.empty((len(with_tokens), len(tokens)), dtype=np.int32), 0
        while done < len(with_tokens):
            upto = max(done + 1, int(np.searchsorted(ends, starts[done] + _BATCH, "right")))
            bits = np.unpackbits(self.bits[starts[done] : ends[upto - 1]], axis=1).view(np.int8)
            products: npt.NDArray[np.int32] = np.asarray(numkong.dots_packed(bits, pack))
            np.maximum.reduceat(products, starts[done:upto] - starts[done], axis=0, out=best[done:upto])
            done = upto
        return best


def mapped(path: Path) -> npt.NDArray[Any]:
    """Map the array in a file into memory."""
    return np.asarray(np.load(path, mmap_mode="r"))


class ArrayFile:
    """File of an array whose rows are written in parts."""

    def __init__(self, path: Path) -> None:
        """Create the file when the first rows are appended."""
        self._path, self._length = path, 0

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Write rows at the end of the file."""
        if not len(rows):
            return
        self._length += len(rows)
        header = {"descr": rows.dtype.str, "fortran_order": False, "shape": (self._length, *rows.shape[1:])}
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            # NumPy pads the header so that its size does not depend on the number of rows.
            np.lib.format.write_array_header_1_0(file, header)
            file.seek(0, 2)
            file.write(np.ascontiguousarray(rows).data)


def stored(embeddings: TextEmbeddings) -> Iterator[Embedding]:
    """Yield the embedding of each text in the format of the database."""
    for row, tokens in zip(embeddings.vectors.astype("<f2"), embeddings.tokens, strict=True):
        yield Embedding(row.tobytes(), packed(tokens))


def packed(tokens: TokenVectors) -> bytes:
    """Return the sign bits of the token embeddings of one text, 16 bytes per token."""
    return np.packbits(tokens > 0, axis=1).tobytes()


def _to_int8(tokens: TokenVectors) -> npt.NDArray[np.int8]:
    """Return each token embedding scaled to int8. The rounding error is 0.3 %."""
    largest: TokenVectors = np.abs(tokens).max(axis=1, keepdims=True)
    rounded: npt.NDArray[np.floating] = np.round(tokens * (127 / largest))
    return rounded.astype(np.int8)


def _starts(counts: Integers) -> Integers:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def row_ranges(starts: Integers, counts: Integers) -> Integers:
    """Return the row indices of several ranges, each given by its start and its number of rows."""
    ends = np.cumsum(counts)
    rows: Integers = np.arange(int(counts.sum())) + np.repeat(starts - ends + counts, counts)
    return rows


Array: TypeAlias = npt.NDArray[np.float32]

_ROWS, _MATRIX, _ALIVE, _GRAPH = "rows.npy", "vectors.npy", "alive.npy", "graph.usearch"
_ITEM, _EVENT, _PART = range(3)
_SCAN_OR_WALK = 20
"""Number of rows that an exact scan reads in the time in which a search in the graph examines one candidate."""
_SPARE = 1.5
"""Number of candidates to request for a filtered search, as a multiple of the number that is needed on average."""
_LIKELY = 1.1
"""Size of the first batch of candidates to filter, as a multiple of the same number. This batch usually suffices."""
_ROWS_AT_ONCE = 5_000
"""Approximate number of rows to merge at once."""
_TEXTS = 5
"""Maximum number of texts per event that late interaction compares."""

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
        # Sort the vectors before they are joined. Sorting the arrays would need as much memory again.
        ordered = sorted(vectors, key=lambda vector: (vector.event, vector.item, vector.part))
        rows = [(vector.item, vector.event, vector.part) for vector in ordered]
        numbers = np.frombuffer(b"".join(vector.data for vector in ordered), dtype="<f2")
        matrix = numbers.reshape(len(ordered), -1 if ordered else 0).astype(np.float16, copy=False)
        sound = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
        if not sound.all():
            return cls.of([ordered[row] for row in np.flatnonzero(sound).tolist()])
        signs = TokenBits.of([vector.token_bits for vector in ordered])
        return cls(np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, 3).T), matrix, signs)

    @classmethod
    def merged(cls, segments: Sequence["Segment"]) -> "Segment":
        """Return one segment, without a graph, that contains the rows of these segments except deleted rows."""
        kept = [segment.places() for segment in segments]
        rows = np.concatenate([one.rows[:, places] for one, places in zip(segments, kept, strict=True)], axis=1)
        matrix = np.concatenate([one.matrix[places] for one, places in zip(segments, kept, strict=True)])
        signs = TokenBits.merged([one.token_bits.selected(places) for one, places in zip(segments, kept, strict=True)])
        return cls._sorted(rows, matrix, signs)

    @classmethod
    def written(cls, folder: Path, parts: Iterable["Segment"]) -> "Segment | None":
        """Write consecutive parts to a new folder and open the segment, or return None if it has no rows.

        Only one part is in memory at a time.
        """
        folder.mkdir(parents=True)
        matrix, bits = ArrayFile(folder / _MATRIX), ArrayFile(folder / _BITS)
        rows, counts = list[Integers](), list[Integers]()
        for part in parts:
            if len(part):
                matrix.append(part.matrix)
                bits.append(part.token_bits.bits)
                rows.append(part.rows)
                counts.append(part.token_bits.counts)
        if not rows:
            return None
        np.save(folder / _ROWS, np.concatenate(rows, axis=1))
        if (folder / _BITS).exists():
            np.save(folder / _STARTS, _starts(np.concatenate(counts)))
        return cls.open(folder)

    @classmethod
    def merged_parts(cls, segments: Sequence["Segment"]) -> Iterator["Segment"]:
        """Yield consecutive parts of the segment that `merged` returns."""
        events = np.sort(np.concatenate([segment.rows[_EVENT, segment.places()] for segment in segments]))
        starts, _ = distinct(events[::_ROWS_AT_ONCE])
        for start, end in pairwise([*starts.tolist(), 1 + events.max(initial=0)]):
            yield cls.merged([segment.between(start, end) for segment in segments])

    def between(self, start: int, end: int) -> "Segment":
        """Return the rows of events from `start` up to `end`."""
        first, last = np.searchsorted(self.rows[_EVENT], (start, end)).tolist()
        alive = None if self.alive is None else self.alive[first:last]
        return Segment(self.rows[:, first:last], self.matrix[first:last], self.token_bits.between(first, last), alive)

    @classmethod
    def _sorted(cls, rows: Integers, matrix: npt.NDArray[np.float16], signs: TokenBits) -> "Segment":
        order = np.lexsort((rows[_PART], rows[_ITEM], rows[_EVENT]))
        return cls(np.ascontiguousarray(rows[:, order]), matrix[order], signs.selected(order))

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        """Open a segment by mapping the files of its folder into memory."""
        rows, matrix = (mapped(folder / name) for name in (_ROWS, _MATRIX))
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
            for name in (_ROWS, _MATRIX):
                link_or_copy(self.folder / name, folder / name)
        else:
            np.save(folder / _ROWS, self.rows)
            np.save(folder / _MATRIX, self.matrix)
        if self.folder is not None and (self.folder / _GRAPH).exists():
            link_or_copy(self.folder / _GRAPH, folder / _GRAPH)
        elif self.graph is not None:
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
        return replace(self, graph=VectorGraph.of(self.matrix))

    def nearest(
        self, vector: Array, limit: int, allowed: Flags | None, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches:
        """See `VectorIndex.nearest`."""
        passed = self._passed(allowed, part_filter)
        count = len(self) if passed is None else int(np.count_nonzero(passed))
        if self.graph is not None and count * count > _SCAN_OR_WALK * limit * len(self):
            candidates = self.graph.near(_as_stored(vector), min(len(self), -(-limit * len(self) // count)), limit)
            candidates = candidates if passed is None else candidates[passed[candidates]]
            if len(candidates) >= limit:  # with fewer, scan exactly
                return self._of(np.sort(candidates), self._cosines(np.sort(candidates), vector)).best(limit)
        places = None if passed is None else np.flatnonzero(passed)
        cosines = self._cosines(places, vector)
        best = _highest(cosines, limit)
        return self._of(best if places is None else places[best], cosines[best]).best(limit)

    def nearest_passing(
        self, vector: Array, limit: int, share: float, passes: ItemFilter, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches | None:
        """See `VectorIndex.nearest_passing`."""
        count = min(len(self), int(_SPARE * limit / share))
        if self.graph is not None and _SCAN_OR_WALK * count < len(self):
            candidates = np.sort(self.graph.near(_as_stored(vector), count, limit))
        else:
            candidates = _highest(self._cosines(None, vector), count)
        candidates = candidates if self.alive is None else candidates[self.alive[candidates]]
        closest = self._of(candidates, self._cosines(candidates, vector)).best(len(candidates))
        first, passed = np.arange(len(closest)) < _LIKELY * limit / share, VectorMatches.none()
        for some in (closest.where(first), closest.where(~first)):
            if len(passed) < limit:
                passed = VectorMatches.concatenated(
                    [passed, some.where(passes(some.item) & _in_parts(some.rows, part_filter))]
                )
        return None if len(passed) < limit and count < len(self) else passed.best(limit)

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
        """See `VectorIndex.late_interaction`. Only the `_TEXTS` nearest texts of each event are compared."""
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
        """Return up to `_TEXTS` of these rows per event, the nearest to a unit vector, in ascending order."""
        order = np.lexsort((-self._cosines(places, vector), self.rows[_EVENT, places]))
        _, first = distinct(self.rows[_EVENT, places[order]])
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
    included = np.where(parts == 0, part_filter.prompts, part_filter.answers)
    passed: Flags = (items != events) | included
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


EXACT_UP_TO = 20_000
"""Maximum number of vectors for an exact scan. The scan of float16 rows takes 1-2 ms."""
_ALWAYS = 1_000
"""Maximum size of a segment, in vectors, that every update merges with the new vectors."""
_STALE = 0.25
"""Maximum share of deleted rows in a segment. A segment with more deleted rows is rewritten."""


class VectorIndex:
    """Immutable vector index. A change returns a new index that shares unchanged segments."""

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = tuple(segments)

    @classmethod
    def open(cls, folder: Path) -> "VectorIndex":
        """Map the files of a folder."""
        return cls([Segment.open(path) for path in sorted(folder.iterdir(), key=lambda path: int(path.name))])

    def save(self, folder: Path) -> None:
        """Write the files into a generation under construction. Files of unchanged segments are linked."""
        for number, segment in enumerate(self._segments):
            segment.save(folder / str(number))

    def contents(self) -> Segment:
        """Return all vectors in one segment."""
        return Segment.merged(self._segments) if self._segments else Segment.of([])

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    @property
    def dimension(self) -> int:
        """Length of a vector, or 0 without vectors."""
        return int(self._segments[0].matrix.shape[1]) if self._segments else 0

    def changed(self, gone: Iterable[int], added: Sequence[StoredVector]) -> "VectorIndex":
        """Return an index without the items `gone` and with the vectors `added`.

        Zero and non-finite vectors are left out. A large segment is not rewritten: its deleted rows are only flagged.
        Small segments are merged.
        """
        kept = self._without(gone)
        fresh = [Segment.of(added)] if added else []
        unchanged, small = _divided(
            [*kept, *fresh], lambda segment: segment.graph is None and len(segment) <= EXACT_UP_TO
        )
        return VectorIndex([*unchanged, *([Segment.merged(small)] if small else [])])

    def rewritten(self, gone: Iterable[int], added: Iterable[Sequence[StoredVector]], folder: Path) -> "VectorIndex":
        """Return an index like that of `changed`, with few segments, and with a graph for each large one.

        New and merged segments are written in parts to a new folder, which may be removed after the index is saved.

        Args:
            gone: Items whose text changed or that were deleted.
            added: Vectors that are new or replace those of their items, in batches sorted by event and item.
            folder: Folder to create for the files of segments.
        """
        new = Segment.written(folder / "new", map(Segment.of, added))
        replaced = [*gone, *(new.rows[_ITEM].tolist() if new else ())]
        kept, several = _divided([*self._without(replaced), *([new] if new else [])], lambda _: True)
        if several:
            merged = Segment.written(folder / "merged", Segment.merged_parts(several))
            kept += [merged] if merged else []
        return VectorIndex(
            [
                segment.with_graph() if segment.graph is None and len(segment) > EXACT_UP_TO else segment
                for segment in kept
            ]
        )

    def _without(self, gone: Iterable[int]) -> Sequence[Segment]:
        items = np.fromiter(gone, dtype=np.int64)
        return [segment.without(items) for segment in self._segments] if len(items) else self._segments

    def nearest(
        self, vector: Array, limit: int, allowed: Flags | None = None, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches:
        """Return the vectors nearest to a unit vector, best first.

        Args:
            vector: Unit vector of the query.
            limit: Maximum number of vectors to return.
            allowed: Flag per item key, True for items to search. All items by default.
            part_filter: Parts of exchanges to search.
        """
        matches = VectorMatches.concatenated(
            [segment.nearest(vector, limit, allowed, part_filter) for segment in self._segments]
        )
        return matches if len(self._segments) == 1 else matches.best(limit)

    def nearest_passing(
        self, vector: Array, limit: int, share: float, passes: ItemFilter, part_filter: PartFilter = ALL_PARTS
    ) -> VectorMatches | None:
        """Return the nearest vectors that pass a filter, or None if too few candidates pass.

        Args:
            vector: Unit vector of the query.
            limit: Maximum number of vectors to return.
            share: Approximate share of items that pass the filter, above 0.
            passes: Filter function, applied to candidates.
            part_filter: Parts of exchanges to search.
        """
        results = [segment.nearest_passing(vector, limit, share, passes, part_filter) for segment in self._segments]
        complete = [result for result in results if result is not None]
        return VectorMatches.concatenated(complete).best(limit) if len(complete) == len(results) else None

    def of_events(self, vector: Array, events: Integers) -> VectorMatches:
        """Return two exact cosines per item of these events: that of its prompt, and the best of its other texts."""
        return VectorMatches.concatenated([segment.of_events(vector, events) for segment in self._segments])

    def late_interaction(self, query: TokenVectors, vector: Array, rows: Integers) -> Floats:
        """Return the late-interaction score for the item of each row, -1 to 1, or NaN if unknown.

        The score of an item is the best score among its texts that are nearest to the query's vector.

        Args:
            query: Token embeddings of the query.
            vector: Unit vector of the query.
            rows: (item, event, part), shape (3, n).
        """
        scores = np.full(rows.shape[1], np.nan)
        for segment in self._segments:
            scores = np.fmax(scores, segment.late_interaction(query, vector, rows))
        return scores


def _divided(
    segments: Sequence[Segment], is_mergeable: Callable[[Segment], bool]
) -> tuple[list[Segment], list[Segment]]:
    """Return the segments to keep, and those of `is_mergeable` to merge into one. Empty segments are left out.

    A segment is merged with all smaller segments if it has at most as many vectors as they have together. Therefore,
    the number of segments, and the number of times that a vector is rewritten, grow with the logarithm of the number of
    vectors.
    """
    ranked = sorted(
        (segment for segment in segments if is_mergeable(segment) and segment.living),
        key=lambda segment: segment.living,
    )
    below = [0, *accumulate(segment.living for segment in ranked)]
    upto = max(
        (position + 1 for position, segment in enumerate(ranked) if segment.living <= max(below[position], _ALWAYS)),
        default=0,
    )
    merged = [*ranked[:upto], *(segment for segment in ranked[upto:] if segment.living < (1 - _STALE) * len(segment))]
    kept = [segment for segment in segments if segment.living and segment not in merged]
    return ([*kept, *merged], []) if len(merged) == 1 and merged[0].alive is None else (kept, merged)
