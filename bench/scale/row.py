"""One measure of one archive."""

import resource
import sys
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct

from ..stopwatch import Took


class Row(Struct, frozen=True):
    """`figures` are in `unit` (ms, s, MB, or none for a share); growth is told from the last of them."""

    name: str
    figures: tuple[float, ...]
    unit: str = ""

    @classmethod
    def of_work(cls, name: str, took: Took) -> "Row":
        """What was done once: by the clock, of the processor."""
        return cls(name, (took.wall, took.processor), "s")

    @classmethod
    def of_calls(cls, name: str, took: Sequence[Took]) -> "Row":
        """What was done two or more times: median, 99th percentile, median of the processor's."""
        walls = [each.wall for each in took]
        figures = median(walls), quantiles(walls, n=100)[-1], median(each.processor for each in took)
        return cls(name, tuple(1e3 * figure for figure in figures), "ms")

    @classmethod
    def of_peak(cls, name: str) -> "Row":
        """The most memory that this process had at once, mapped files included."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        return cls(name, (peak,), "MB")

    def __str__(self) -> str:
        digits = 1 if self.unit else 3
        return f"{' / '.join(f'{figure:,.{digits}f}' for figure in self.figures)} {self.unit}".rstrip()
