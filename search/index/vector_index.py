"""The vector index: segments of vectors, small ones scanned exactly, large ones found through a graph.

usearch has no filter predicate, so filters are met in one of two ways: what a narrow filter leaves is scanned
exactly, and a wide one is sieved out of a longer candidate list.
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
"""Up to this many vectors an exact scan of float16 rows takes 1-2 ms, and misses nothing."""
_ALWAYS = 1_000
"""Segments of up to this many vectors are written anew with what is added."""
_STALE = 0.25
"""From which share of rows that are gone on a segment is written anew."""


class VectorIndex:
    """Vectors that can be found by nearness. A value: changing it makes another, which shares what stays."""

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self._segments = tuple(segments)

    @classmethod
    def open(cls, folder: Path) -> "VectorIndex":
        """Map the files of a folder whose checksums were verified before."""
        return cls([Segment.open(path) for path in sorted(folder.iterdir(), key=lambda path: int(path.name))])

    def save(self, folder: Path) -> None:
        """Write the files, sharing those of segments that stay. Only ever into a generation that is being built."""
        for number, segment in enumerate(self._segments):
            segment.save(folder / str(number))

    def contents(self) -> Segment:
        """Every vector, in one segment."""
        return Segment.merged(self._segments) if self._segments else Segment.of([])

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    @property
    def dimension(self) -> int:
        """Numbers per vector; 0 where there are none."""
        return int(self._segments[0].matrix.shape[1]) if self._segments else 0

    def changed(self, gone: Iterable[int], added: Sequence[StoredVector]) -> "VectorIndex":
        """The index without the vectors of the items `gone` and with these; what is not finite is left out.

        Costs what is added: segments with a graph only lose rows, and of the others those that are no larger than
        what is added are written anew with it.
        """
        items = np.fromiter(gone, dtype=np.int64)
        kept = [segment.without(items) for segment in self._segments] if len(items) else self._segments
        fresh = [Segment.of(added)] if added else []
        return VectorIndex(_merged([*kept, *fresh], lambda segment: segment.graph is None))

    def settled(self) -> "VectorIndex":
        """The same vectors as they are best kept: few segments, few rows that are gone, graphs on what is large."""
        segments = _merged(self._segments, lambda _: True)
        return VectorIndex(
            [one.with_graph() if one.graph is None and len(one) > EXACT_UP_TO else one for one in segments]
        )

    def nearest(
        self, vector: Array, limit: int, allowed: Flags | None = None, voices: Voices = ALL_VOICES
    ) -> VectorMatches:
        """The vectors nearest to a unit vector, best first; only of items whose key is flagged in `allowed`, and of
        exchanges only those of these voices.
        """
        found = VectorMatches.together([segment.nearest(vector, limit, allowed, voices) for segment in self._segments])
        return found if len(self._segments) == 1 else found.best(limit)

    def sieved(
        self, vector: Array, limit: int, share: float, sieve: Sieve, voices: Voices = ALL_VOICES
    ) -> VectorMatches | None:
        """As `nearest`, of items of which about this share, more than 0, passes a sieve. It is asked of some candidates
        only, so nobody has to list all that passes. None where too few of them do.
        """
        found = [segment.sieved(vector, limit, share, sieve, voices) for segment in self._segments]
        whole = [one for one in found if one is not None]
        return VectorMatches.together(whole).best(limit) if len(whole) == len(found) else None

    def of_events(self, vector: Array, events: Numbers) -> VectorMatches:
        """Of every item of these events its best vectors, exactly compared: part 0, and the best other part."""
        return VectorMatches.together([segment.of_events(vector, events) for segment in self._segments])

    def late_interaction(self, query: TokenVectors, vector: Array, rows: Numbers) -> Fractions:
        """How close the items of these (item, event, part), shape (3, n), come to a query's tokens, -1 to 1, each by
        the closest of those of its texts that are nearest to the query's unit vector; NaN where no tokens are known.
        """
        close = np.full(rows.shape[1], np.nan)
        for segment in self._segments:
            close = np.fmax(close, segment.late_interaction(query, vector, rows))
        return close


def _merged(segments: Sequence[Segment], may: Callable[[Segment], bool]) -> list[Segment]:
    """Fewer segments, none of them empty: one that is no larger than all smaller ones together is merged with them.

    So there are as many as the index doubled, and a vector is written anew only as often.
    """
    ranked = sorted((one for one in segments if may(one) and one.living), key=lambda one: one.living)
    below = [0, *accumulate(one.living for one in ranked)]
    upto = max((place + 1 for place, one in enumerate(ranked) if one.living <= max(below[place], _ALWAYS)), default=0)
    loose = [*ranked[:upto], *(one for one in ranked[upto:] if one.living < (1 - _STALE) * len(one))]
    kept = [one for one in segments if one.living and one not in loose]
    if len(loose) == 1 and loose[0].alive is None:
        return [*kept, *loose]
    return [*kept, Segment.merged(loose)] if loose else kept
