"""Rows of the result table."""

import resource
import sys
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct

from ..stopwatch import Took


class Row(Struct, frozen=True):
    """Row with one measure of an archive.

    Attributes:
        figures: Values in `unit`. The growth between archives is computed from the last value.
        unit: ms, s or MB. Empty for a share.
    """

    name: str
    figures: tuple[float, ...]
    unit: str = ""

    @classmethod
    def of_work(cls, name: str, took: Took) -> "Row":
        """Return the wall time and the CPU time of a single task."""
        return cls(name, (took.wall, took.cpu), "s")

    @classmethod
    def of_calls(cls, name: str, took: Sequence[Took]) -> "Row":
        """Return the median, the 99th percentile and the median CPU time of repeated calls."""
        walls = [each.wall for each in took]
        figures = median(walls), quantiles(walls, n=100)[-1], median(each.cpu for each in took)
        return cls(name, tuple(1e3 * figure for figure in figures), "ms")

    @classmethod
    def of_peak(cls, name: str) -> "Row":
        """Return the peak memory of this process, including mapped files."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return cls(name, (peak,), "MB")

    def __str__(self) -> str:
        digits = 1 if self.unit else 3
        return f"{' / '.join(f'{figure:,.{digits}f}' for figure in self.figures)} {self.unit}".rstrip()
