"""Later: work that another thread does while this one goes on."""

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """One piece of work, begun at once. Use it in a `with`: nobody leaves before it has ended."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._problem: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def result(self) -> T:
        """What the work came to; raises what it raised."""
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        return self._done[0]

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except BaseException as problem:  # noqa: BLE001 - whoever asks for the result gets it
            self._problem = problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.join()
