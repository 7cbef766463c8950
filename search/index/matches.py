"""What the engines find, in columns: hundreds of rows a query are ranked without making an object of each."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Numbers: TypeAlias = npt.NDArray[np.int64]
Fractions: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Span: TypeAlias = tuple[int, int, int]
"""An entry by the key of its item, its first line and its last."""


def distinct(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The different ones among these, ascending, and where each stands first.

    As `numpy.unique`, which first imports all of `numpy.ma`: that takes a cold search longer than searching.
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new], order[is_new]


def among(numbers: Numbers, wanted: Numbers) -> Flags:
    """Which of these are wanted ones, which ascend. As `numpy.isin`, which takes four times as long for hundreds."""
    if not len(wanted):
        return np.zeros(len(numbers), dtype=bool)
    found: Flags = wanted[np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)] == numbers
    return found


class TextMatch(NamedTuple):
    """A matching entry. `fraction`, 0 to 1, is its BM25 score as a share of what the query could score at most.

    Unlike the score it can be compared across queries and indexes: a rare word found counts for much, a query whose
    rare words are nowhere stays low, and so leaves the decision to the vectors.
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
    """Matching entries. `numbers` are the columns of `TextMatch` but the last, shape (7, n)."""

    numbers: Numbers
    fraction: Fractions

    @classmethod
    def none(cls) -> "TextMatches":
        """Nothing found."""
        return cls(np.empty((7, 0), dtype=np.int64), np.empty(0))

    @property
    def key(self) -> Numbers:
        """The items whose entries these are."""
        return self.numbers[0, :]

    @property
    def event(self) -> Numbers:
        """The events that the items belong to."""
        return self.numbers[1, :]

    @property
    def place(self) -> Numbers:
        """One number for source and ordinal: exchanges that follow each other in one source differ by 1."""
        return (self.numbers[2, :] << 32) + self.numbers[3, :]

    @property
    def spans(self) -> Iterator[Span]:
        """Where each of these stands."""
        return zip(*(self.numbers[row, :].tolist() for row in (0, 4, 5)), strict=True)

    @property
    def in_code(self) -> Flags:
        """Which of these are code."""
        return np.not_equal(self.numbers[6, :], 0)

    @cached_property
    def best_of(self) -> dict[int, float]:
        """The best fraction of each item."""
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
        """The first so many of these."""
        return self if len(self) <= count else TextMatches(self.numbers[:, :count], self.fraction[:count])

    def of(self, items: Sequence[int]) -> "TextMatches":
        """Those of these items, which ascend."""
        return self.where(among(self.key, np.array(items, dtype=np.int64)))

    def where(self, wanted: Flags) -> "TextMatches":
        """The wanted ones of these."""
        return TextMatches(self.numbers[:, wanted], self.fraction[wanted])

    def weighted(self, items: Sequence[int], weight: float) -> "TextMatches":
        """Return these with the fractions of `items`, which ascend, multiplied by `weight`."""
        weights = np.where(among(self.key, np.array(items, dtype=np.int64)), weight, 1.0)
        return TextMatches(self.numbers, self.fraction * weights)

    def and_also(self, others: "TextMatches", limit: int) -> "TextMatches":
        """The best of both, best first."""
        numbers = np.concatenate([self.numbers, others.numbers], axis=1)
        fraction = np.concatenate([self.fraction, others.fraction])
        best = np.argsort(-fraction, kind="stable")[:limit]
        return TextMatches(numbers[:, best], fraction[best])


class VectorMatch(NamedTuple):
    """One vector and its similarity to the query: a true cosine, -1 to 1."""

    item: int
    event: int
    part: int
    similarity: float


class VectorMatches(Struct, frozen=True, eq=False, dict=True):
    """Vectors with their similarities. `rows` are (item, event, part), shape (3, n)."""

    rows: Numbers
    similarity: Fractions

    @classmethod
    def none(cls) -> "VectorMatches":
        """Nothing found."""
        return cls(np.empty((3, 0), dtype=np.int64), np.empty(0))

    @classmethod
    def together(cls, parts: Sequence["VectorMatches"]) -> "VectorMatches":
        """All of several findings, one after the other."""
        if len(parts) == 1:
            return parts[0]
        rows = [np.empty((3, 0), dtype=np.int64), *(part.rows for part in parts)]
        return cls(np.concatenate(rows, axis=1), np.concatenate([np.empty(0), *(part.similarity for part in parts)]))

    @property
    def item(self) -> Numbers:
        """The items whose vectors these are."""
        return self.rows[0, :]

    @property
    def event(self) -> Numbers:
        """The events that the items belong to."""
        return self.rows[1, :]

    @property
    def part(self) -> Numbers:
        """Which of the item's vectors it is."""
        return self.rows[2, :]

    @cached_property
    def best_of(self) -> dict[int, float]:
        """The best similarity of each item."""
        return _best_of(self.item, self.similarity)

    def __len__(self) -> int:
        return len(self.similarity)

    def __getitem__(self, row: int) -> VectorMatch:
        item, event, part = self.rows[:, row].tolist()
        return VectorMatch(item, event, part, float(self.similarity[row]))

    def __iter__(self) -> Iterator[VectorMatch]:
        return map(self.__getitem__, range(len(self)))

    def of(self, items: AbstractSet[int]) -> "VectorMatches":
        """Those of these items."""
        return self.where(among(self.item, np.sort(np.fromiter(items, dtype=np.int64))))

    def where(self, wanted: Flags) -> "VectorMatches":
        """Those that are flagged, shape (n,)."""
        return VectorMatches(self.rows[:, wanted], self.similarity[wanted])

    def best(self, limit: int) -> "VectorMatches":
        """The most similar, best first; equal ones in the order in which they stand."""
        order = np.argsort(-self.similarity, kind="stable")[:limit]
        return VectorMatches(self.rows[:, order], self.similarity[order])


def _best_of(items: Numbers, values: Fractions) -> dict[int, float]:
    order = np.argsort(values)  # of several values of an item the last, and so the best, stays
    return dict(zip(items[order].tolist(), values[order].tolist(), strict=True))
