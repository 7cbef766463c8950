"""Progress bars on standard error."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.progress import Progress, TaskID


class Bars:
    """One bar for each stage that has work; none where standard error is no terminal."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of a stage are made."""
        if self._progress is None or not total:
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Hide the bars while something is printed."""
        if self._progress is None:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


@contextmanager
def progress_bars() -> Generator[Bars]:
    """Show bars while the block runs; they are erased at its end."""
    if not sys.stderr.isatty():
        yield Bars()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bars(progress)
