"""One measure of one archive."""

import resource
import sys
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct

from ..stopwatch import Took


class Row(Struct, frozen=True):
    """Measure with `figures` in `unit` (ms, s, MB, or none for a share); growth uses the last figure."""

    name: str
    figures: tuple[float, ...]
    unit: str = ""

    @classmethod
    def of_work(cls, name: str, took: Took) -> "Row":
        """Return a row of single work: wall time, CPU time."""
        return cls(name, (took.wall, took.processor), "s")

    @classmethod
    def of_calls(cls, name: str, took: Sequence[Took]) -> "Row":
        """Return a row of repeated calls: median, 99th percentile, median CPU time."""
        walls = [each.wall for each in took]
        figures = median(walls), quantiles(walls, n=100)[-1], median(each.processor for each in took)
        return cls(name, tuple(1e3 * figure for figure in figures), "ms")

    @classmethod
    def of_peak(cls, name: str) -> "Row":
        """Return a row of the peak memory of this process, mapped files included."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return cls(name, (peak,), "MB")

    def __str__(self) -> str:
        digits = 1 if self.unit else 3
        return f"{' / '.join(f'{figure:,.{digits}f}' for figure in self.figures)} {self.unit}".rstrip()
