"""Number of processors that Palaver may use, and functions that report the progress of a stage."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


Progress = Callable[[int, int], None]
"""Function called with the number of finished steps and the total number of steps."""


Reporter = Callable[[str, int, int], None]
"""Function called with the name of a stage, its number of finished steps and its total number of steps."""


def silent(*_values: object) -> None:
    """Ignore all progress reports. This function can be used as `Progress` and as `Reporter`."""


@contextmanager
def stage(report: Reporter, name: str) -> Generator[None]:
    """Report a stage with one step: 0 of 1 at the start of the block, and 1 of 1 at its end."""
    report(name, 0, 1)
    yield
    report(name, 1, 1)


def never() -> bool:
    """Return False. Parameters named `should_stop` have this function as their default."""
    return False
