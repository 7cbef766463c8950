"""Steps of a process that kills itself at one of them."""

import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any


class Steps:
    """Counter of the begins and ends of methods. It kills this process at the step `last`, or never if that is 0."""

    def __init__(self, last: int) -> None:
        self._last, self._steps = last, count(1)

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with a step before and after each call."""

        def run(*arguments: Any, **options: Any) -> Any:
            self._step()
            result = method(*arguments, **options)
            self._step()
            return result

        return run

    def end(self) -> int:
        """Return the number of steps so far. No step may follow."""
        return next(self._steps) - 1

    def _step(self) -> None:
        if next(self._steps) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
