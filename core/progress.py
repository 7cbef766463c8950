"""How far work is: what a stage tells, and what listens to all stages."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with how many of how many are done."""


class Reporter(Protocol):
    """Hears how far each stage is: its name, how many are done, and how many there are in all."""

    def __call__(self, stage: str, done: int, total: int, /) -> None: ...


def silent(*_told: object) -> None:
    """A `Progress` and a `Reporter` that nobody watches."""


@contextmanager
def stage(report: Reporter, name: str) -> Generator[None]:
    """Report a stage of unknown length as one step, when it begins and when it ends."""
    report(name, 0, 1)
    yield
    report(name, 1, 1)


def never() -> bool:
    """Asked by work whether it is time to break off; what takes as long as it takes says this."""
    return False
