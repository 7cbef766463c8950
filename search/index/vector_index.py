"""Vector index, which consists of segments. Small segments are scanned exactly. Large segments use a graph.

The Python package usearch does not support filters. If few items satisfy a filter, these items are scanned exactly.
Otherwise, the search requests more candidates and applies the filter to them.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from ...archiver.store import StoredVector
from ..model.embedding import TokenVectors
from .matches import Flags, Floats, Integers, VectorMatches
from .vector_segment import ALL_PARTS, Array, ItemFilter, PartFilter, Segment

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

        Zero and non-finite vectors are left out. A segment with a graph is not rewritten: its deleted rows are only
        flagged. Small segments are merged.
        """
        items = np.fromiter(gone, dtype=np.int64)
        kept = [segment.without(items) for segment in self._segments] if len(items) else self._segments
        fresh = [Segment.of(added)] if added else []
        return VectorIndex(_merged([*kept, *fresh], lambda segment: segment.graph is None))

    def settled(self) -> "VectorIndex":
        """Merge segments and return an index with the same vectors.

        The new index has few segments and few deleted rows, and each large segment has a graph.
        """
        segments = _merged(self._segments, lambda _: True)
        return VectorIndex(
            [one.with_graph() if one.graph is None and len(one) > EXACT_UP_TO else one for one in segments]
        )

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
        found = VectorMatches.concatenated(
            [segment.nearest(vector, limit, allowed, part_filter) for segment in self._segments]
        )
        return found if len(self._segments) == 1 else found.best(limit)

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
        found = [segment.nearest_passing(vector, limit, share, passes, part_filter) for segment in self._segments]
        whole = [one for one in found if one is not None]
        return VectorMatches.concatenated(whole).best(limit) if len(whole) == len(found) else None

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


def _merged(segments: Sequence[Segment], is_mergeable: Callable[[Segment], bool]) -> list[Segment]:
    """Merge the small segments that `is_mergeable` accepts, and remove empty segments.

    A segment is merged with all smaller segments if it has at most as many vectors as they have together. Therefore,
    the number of segments, and the number of times that a vector is rewritten, grow with the logarithm of the number of
    vectors.
    """
    ranked = sorted((one for one in segments if is_mergeable(one) and one.living), key=lambda one: one.living)
    below = [0, *accumulate(one.living for one in ranked)]
    upto = max((place + 1 for place, one in enumerate(ranked) if one.living <= max(below[place], _ALWAYS)), default=0)
    merged = [*ranked[:upto], *(one for one in ranked[upto:] if one.living < (1 - _STALE) * len(one))]
    kept = [one for one in segments if one.living and one not in merged]
    if len(merged) == 1 and merged[0].alive is None:
        return [*kept, *merged]
    return [*kept, Segment.merged(merged)] if merged else kept
