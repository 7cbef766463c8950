"""Measurement of wall time and CPU time."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple


class Took(NamedTuple):
    """Seconds of wall time, and seconds of CPU time in all threads of this process."""

    wall: float
    cpu: float


def took(work: Callable[[], object]) -> Took:
    """Run a function and return its times."""
    started, begun = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - started, time.process_time() - begun)


@contextmanager
def stopwatch(taken: defaultdict[str, list[Took]], name: str) -> Generator[None]:
    """Measure the block, and append its times to the list `taken[name]`."""
    started, begun = time.perf_counter(), time.process_time()
    yield
    taken[name].append(Took(time.perf_counter() - started, time.process_time() - begun))


def machine_load() -> str:
    """Return the load average of the last five minutes and the number of CPUs."""
    return f"load average {os.getloadavg()[1]:.1f} on {os.cpu_count()} CPUs"
