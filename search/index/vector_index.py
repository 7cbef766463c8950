"""Vector index: segments of vectors. Small ones are scanned exactly, large ones searched by a graph.

usearch has no filters. So the items of a narrow filter are scanned exactly, and a wide filter sieves a longer list of
candidates.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from ...archiver.store import StoredVector
from ..model.embedding import TokenVectors
from .matches import Flags, Fractions, Numbers, VectorMatches
from .vector_segment import ALL_VOICES, Array, Segment, Sieve, Voices

EXACT_UP_TO = 20_000
"""Vectors up to which an exact scan of float16 rows takes 1-2 ms."""
_ALWAYS = 1_000
"""Vectors of a segment that is merged with each addition."""
_STALE = 0.25
"""Share of deleted rows from which on a segment is rewritten."""


class VectorIndex:
    """Immutable vector index. A change returns another that shares unchanged segments."""

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = tuple(segments)

    @classmethod
    def open(cls, folder: Path) -> "VectorIndex":
        """Map the files of a folder."""
        return cls([Segment.open(path) for path in sorted(folder.iterdir(), key=lambda path: int(path.name))])

    def save(self, folder: Path) -> None:
        """Write the files into a generation under construction, linking those of unchanged segments."""
        for number, segment in enumerate(self._segments):
            segment.save(folder / str(number))

    def contents(self) -> Segment:
        """Return all vectors in one segment."""
        return Segment.merged(self._segments) if self._segments else Segment.of([])

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 without vectors."""
        return int(self._segments[0].matrix.shape[1]) if self._segments else 0

    def changed(self, gone: Iterable[int], added: Sequence[StoredVector]) -> "VectorIndex":
        """Return the index without the items `gone` and with the finite ones of the vectors `added`.

        The cost is proportional to `added`: segments with a graph only lose rows, and smaller segments are merged.
        """
        items = np.fromiter(gone, dtype=np.int64)
        kept = [segment.without(items) for segment in self._segments] if len(items) else self._segments
        fresh = [Segment.of(added)] if added else []
        return VectorIndex(_merged([*kept, *fresh], lambda segment: segment.graph is None))

    def settled(self) -> "VectorIndex":
        """Return the same vectors compacted: few segments, few deleted rows, graphs on large segments."""
        segments = _merged(self._segments, lambda _: True)
        return VectorIndex(
            [one.with_graph() if one.graph is None and len(one) > EXACT_UP_TO else one for one in segments]
        )

    def nearest(
        self, vector: Array, limit: int, allowed: Flags | None = None, voices: Voices = ALL_VOICES
    ) -> VectorMatches:
        """Return the vectors nearest to a unit vector, best first.

        Args:
            vector: Unit vector of the query.
            limit: Most vectors to return.
            allowed: Flags by key of the items to search; all by default.
            voices: Parts of exchanges to search.
        """
        found = VectorMatches.together([segment.nearest(vector, limit, allowed, voices) for segment in self._segments])
        return found if len(self._segments) == 1 else found.best(limit)

    def sieved(
        self, vector: Array, limit: int, share: float, sieve: Sieve, voices: Voices = ALL_VOICES
    ) -> VectorMatches | None:
        """Return the nearest vectors that pass a sieve, applied to candidates; None if too few pass.

        Args:
            vector: Unit vector of the query.
            limit: Most vectors to return.
            share: Approximate share of items that pass, above 0.
            sieve: Returns which items pass.
            voices: Parts of exchanges to search.
        """
        found = [segment.sieved(vector, limit, share, sieve, voices) for segment in self._segments]
        whole = [one for one in found if one is not None]
        return VectorMatches.together(whole).best(limit) if len(whole) == len(found) else None

    def of_events(self, vector: Array, events: Numbers) -> VectorMatches:
        """Return part 0 and the best other part of each item of these events, compared exactly."""
        return VectorMatches.together([segment.of_events(vector, events) for segment in self._segments])

    def late_interaction(self, query: TokenVectors, vector: Array, rows: Numbers) -> Fractions:
        """Return the late-interaction score of the item of each row, -1 to 1; NaN if unknown.

        The score of an item is that of its best text, among the texts nearest to the query's vector.

        Args:
            query: Token embeddings of the query.
            vector: Unit vector of the query.
            rows: (item, event, part), shape (3, n).
        """
        close = np.full(rows.shape[1], np.nan)
        for segment in self._segments:
            close = np.fmax(close, segment.late_interaction(query, vector, rows))
        return close


def _merged(segments: Sequence[Segment], may: Callable[[Segment], bool]) -> list[Segment]:
    """Return fewer segments, none empty: one no larger than all smaller ones together is merged with them.

    So their number is logarithmic, and so is the number of times a vector is rewritten.
    """
    ranked = sorted((one for one in segments if may(one) and one.living), key=lambda one: one.living)
    below = [0, *accumulate(one.living for one in ranked)]
    upto = max((place + 1 for place, one in enumerate(ranked) if one.living <= max(below[place], _ALWAYS)), default=0)
    loose = [*ranked[:upto], *(one for one in ranked[upto:] if one.living < (1 - _STALE) * len(one))]
    kept = [one for one in segments if one.living and one not in loose]
    if len(loose) == 1 and loose[0].alive is None:
        return [*kept, *loose]
    return [*kept, Segment.merged(loose)] if loose else kept
