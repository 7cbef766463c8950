"""How long something takes: by the clock, and of the processor, which tells of our work alone where other work runs."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple


class Took(NamedTuple):
    """Seconds by the clock, and of the processor in all threads of this process."""

    wall: float
    processor: float


def took(work: Callable[[], object]) -> Took:
    """Do it, and say how long it took."""
    started, begun = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - started, time.process_time() - begun)


@contextmanager
def stopwatch(taken: defaultdict[str, list[Took]], name: str) -> Generator[None]:
    """Add what is done under it to what was taken under this name."""
    started, begun = time.perf_counter(), time.process_time()
    yield
    taken[name].append(Took(time.perf_counter() - started, time.process_time() - begun))


def crowd() -> str:
    """How busy the machine was during the last minutes."""
    return f"{os.getloadavg()[1]:.1f} processes were running or waiting on {os.cpu_count()} processors"
