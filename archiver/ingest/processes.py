"""Processes that answer tasks beside this one. Importing this loads nothing that they need."""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from ...core.closing import Closing

if TYPE_CHECKING:
    from .task import Answer, Task

_SERVE: Final = f"from {__package__}.task import serve; serve()"
_PIPE: Final = 1 << 20
"""Bytes of answers that wait to be read, where the system allows it: who has more to tell has to wait."""


class Helpers(Closing):
    """As many processes as there are processors to spare, from when they are wanted on until this is closed."""

    def __init__(self) -> None:
        self._started: list[Helper] = []

    def start(self, most: int = 1) -> "Sequence[Helper]":
        """Those that live, at most so many; fewer where the system gives no more."""
        self._started = [helper for helper in self._started if helper.lives]
        with suppress(OSError):
            while len(self._started) < min(most, processors() - 1):
                self._started.append(Helper())
        return self._started[:most]

    def close(self) -> None:
        """End them, whatever they are at."""
        while self._started:
            self._started.pop().close()


class Helper:
    """Another process, which ends when this one does, however that comes."""

    def __init__(self) -> None:
        # In a group of its own, so that Ctrl-C reaches this process alone.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        _widen(self._process.stdout)

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, task: "Task") -> None:
        """Give it a task, which waits until those before it are answered."""
        assert self._process.stdin
        with suppress(OSError):  # it has gone: the answer will tell
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()

    def answer(self) -> "Answer | None":
        """The answer to the first task that has none; None when it could not be given, or read: a process that starts
        after an update has other types.
        """
        from .task import received

        assert self._process.stdout
        try:
            return received(self._process.stdout)
        except (MemoryError, OverflowError):
            # What Python loads at its start may print. Behind that an answer could be taken for another task's.
            self.stop()
            self._process.stdout.read()
            return None

    def stop(self) -> None:
        """End it, whatever it is at; who waits for an answer gets none."""
        self._process.kill()

    def close(self) -> None:
        """End it and let go of it. Nobody may wait for an answer any more."""
        self.stop()
        with suppress(OSError):
            self._process.communicate()


def _widen(pipe: IO[bytes] | None) -> None:
    """Where the system says no, helpers wait a little more; `Popen(pipesize=)` would leave it at no helper."""
    if sys.platform == "linux" and pipe is not None:
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
