"""Results of text search and vector search. They are stored as columns, because an object per result is slower."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Span: TypeAlias = tuple[int, int, int]
"""Location of a text entry: key of its item, first line, last line."""


def distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """Return the distinct values in ascending order and the first position of each value.

    `numpy.unique` returns the same, but imports `numpy.ma`, which takes longer than a cold search.
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new], order[is_new]


def among(numbers: Integers, members: Integers) -> Flags:
    """Return a flag per number: True if the number is in `members`, which must be sorted.

    For hundreds of numbers, this is four times as fast as `numpy.isin`.
    """
    if not len(members):
        return np.zeros(len(numbers), dtype=bool)
    flags: Flags = members[np.minimum(np.searchsorted(members, numbers), len(members) - 1)] == numbers
    return flags


class TextMatch(NamedTuple):
    """Text entry that matches a query.

    `fraction` (0 to 1) is the BM25 score divided by the highest possible BM25 score of the query.

    Unlike BM25 scores, fractions are comparable across queries and indexes. If the rare words of a query do not occur,
    all fractions are low, and the vector scores determine the ranking.
    """

    key: int
    event: int
    source: int
    ordinal: int
    start_line: int
    end_line: int
    in_code: bool
    fraction: float


class TextMatches(Struct, frozen=True, eq=False, dict=True):
    """Text entries that match a query.

    Each column of `numbers`, shape (7, n), contains the fields of one `TextMatch` except `fraction`, in their order.
    """

    numbers: Integers
    fraction: Floats

    @classmethod
    def none(cls) -> "TextMatches":
        """Return an empty result."""
        return cls(np.empty((7, 0), dtype=np.int64), np.empty(0))

    @classmethod
    def concatenated(cls, parts: Sequence["TextMatches"]) -> "TextMatches":
        """Concatenate several results."""
        numbers = np.concatenate([part.numbers for part in parts], axis=1)
        return cls(numbers, np.concatenate([part.fraction for part in parts]))

    @property
    def key(self) -> Integers:
        """Item key of each entry."""
        return self.numbers[0, :]

    @property
    def event(self) -> Integers:
        """Event key of each entry."""
        return self.numbers[1, :]

    @property
    def spans(self) -> Iterator[Span]:
        """Location of each entry."""
        return zip(*(self.numbers[row, :].tolist() for row in (0, 4, 5)), strict=True)

    @property
    def in_code(self) -> Flags:
        """Flag per entry: True if the entry is code."""
        return np.not_equal(self.numbers[6, :], 0)

    @cached_property
    def best_of(self) -> dict[int, float]:
        """Highest fraction of each item, by item key."""
        return _best_of(self.key, self.fraction)

    def __len__(self) -> int:
        return len(self.fraction)

    def __getitem__(self, row: int) -> TextMatch:
        key, event, source, ordinal, start_line, end_line, in_code = self.numbers[:, row].tolist()
        fraction = float(self.fraction[row])
        return TextMatch(key, event, source, ordinal, start_line, end_line, bool(in_code), fraction)

    def __iter__(self) -> Iterator[TextMatch]:
        return map(self.__getitem__, range(len(self)))

    def first(self, count: int) -> "TextMatches":
        """Return the first `count` entries."""
        return self if len(self) <= count else TextMatches(self.numbers[:, :count], self.fraction[:count])

    def of(self, items: Sequence[int]) -> "TextMatches":
        """Return the entries of these items. `items` must be sorted."""
        return self.where(among(self.key, np.array(items, dtype=np.int64)))

    def where(self, flags: Flags) -> "TextMatches":
        """Return the entries whose flag in `flags` is true."""
        return TextMatches(self.numbers[:, flags], self.fraction[flags])

    def merged_with(self, others: "TextMatches", limit: int) -> "TextMatches":
        """Return the best `limit` entries of both results, best first."""
        numbers = np.concatenate([self.numbers, others.numbers], axis=1)
        fraction = np.concatenate([self.fraction, others.fraction])
        best = np.argsort(-fraction, kind="stable")[:limit]
        return TextMatches(numbers[:, best], fraction[best])


class VectorMatches(Struct, frozen=True, eq=False, dict=True):
    """Vectors found by a search, with their cosines to the query, -1 to 1.

    Each column of `rows`, shape (3, n), is (item key, event key, number of the embedded text).
    """

    rows: Integers
    similarity: Floats

    @classmethod
    def none(cls) -> "VectorMatches":
        """Return an empty result."""
        return cls(np.empty((3, 0), dtype=np.int64), np.empty(0))

    @classmethod
    def concatenated(cls, parts: Sequence["VectorMatches"]) -> "VectorMatches":
        """Concatenate several results."""
        if len(parts) == 1:
            return parts[0]
        rows = [np.empty((3, 0), dtype=np.int64), *(part.rows for part in parts)]
        return cls(np.concatenate(rows, axis=1), np.concatenate([np.empty(0), *(part.similarity for part in parts)]))

    @property
    def item(self) -> Integers:
        """Item key of each vector."""
        return self.rows[0, :]

    @property
    def event(self) -> Integers:
        """Event key of each vector."""
        return self.rows[1, :]

    @property
    def part(self) -> Integers:
        """Number of the embedded text within its item, for each vector."""
        return self.rows[2, :]

    @cached_property
    def best_of(self) -> dict[int, float]:
        """Highest cosine of each item, by item key."""
        return _best_of(self.item, self.similarity)

    def __len__(self) -> int:
        return len(self.similarity)

    def of(self, items: AbstractSet[int]) -> "VectorMatches":
        """Return the vectors of these items."""
        return self.where(among(self.item, np.sort(np.fromiter(items, dtype=np.int64))))

    def where(self, flags: Flags) -> "VectorMatches":
        """Return the vectors whose flag in `flags` is true."""
        return VectorMatches(self.rows[:, flags], self.similarity[flags])

    def best(self, limit: int) -> "VectorMatches":
        """Return the `limit` most similar vectors, best first. Vectors with equal cosines keep their order."""
        order = np.argsort(-self.similarity, kind="stable")[:limit]
        return VectorMatches(self.rows[:, order], self.similarity[order])


def _best_of(items: Integers, values: Floats) -> dict[int, float]:
    order = np.argsort(values)  # the best value of an item comes last and overwrites the others
    return dict(zip(items[order].tolist(), values[order].tolist(), strict=True))
