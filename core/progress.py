"""Progress reports of stages."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

Progress = Callable[[int, int], None]
"""Function called with the number of finished steps and of all steps."""


class Reporter(Protocol):
    """Function called with the name of a stage, the number of its finished steps, and of all its steps."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """Report `done` of `total` steps of a stage."""
        ...


def silent(*_told: object) -> None:
    """Ignore all progress; usable as `Progress` and as `Reporter`."""


@contextmanager
def stage(report: Reporter, name: str) -> Generator[None]:
    """Report a stage of unknown length as one step, at its beginning and its end."""
    report(name, 0, 1)
    yield
    report(name, 1, 1)


def never() -> bool:
    """Return False; the default of `should_stop`."""
    return False
