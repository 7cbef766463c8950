"""Reading ahead: other processes parse the last of many new files while this one takes up the first."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import Any, Final, Self

from ..copies.raw import Copied
from .task import Answer, Task

_SERVE: Final = f"from {Task.__module__} import serve; serve()"
_Awaited = tuple[Task, Future[Copied]]
"""A task, and the copy it needs."""


class Ahead:
    """Answers to tasks, the last first, from as many processes as there are processors to spare.

    Nothing depends on it: a task that nobody has begun, or that went wrong, is left to the one who asks.
    """

    def __init__(self, tasks: Mapping[str, _Awaited]) -> None:
        self._left = dict(tasks)
        self._stopped = Future[None]()
        self._begun: set[str] = set()
        self._answers: dict[str, Answer | None] = {}
        self._news = threading.Condition()
        self._helpers = [_Helper() for _ in range(min(processors() - 1, len(tasks) - 1))]
        self._threads = [threading.Thread(target=self._work, args=(helper,)) for helper in self._helpers]

    def take(self, name: str) -> Answer | None:
        """The answer to a task, waiting for it if somebody is at it; None when it is left to the caller."""
        with self._news:
            self._left.pop(name, None)
            if name not in self._begun:
                return None
            self._news.wait_for(lambda: name in self._answers)
            return self._answers.pop(name)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped.set_result(None)
        for helper in self._helpers:
            helper.stop()
        for thread in self._threads:
            thread.join()
        for helper in self._helpers:
            helper.close()

    def _work(self, helper: "_Helper") -> None:
        while (found := self._next()) is not None:
            name, (task, copy) = found
            first: list[Future[Any]] = [copy, self._stopped]
            wait(first, return_when=FIRST_COMPLETED)
            answer = helper.ask(task)
            with self._news:
                self._answers[name] = answer
                self._news.notify_all()

    def _next(self) -> tuple[str, _Awaited] | None:
        with self._news:
            if self._stopped.done() or not self._left:
                return None
            found = self._left.popitem()
            self._begun.add(found[0])
            return found


class _Helper:
    """Another process, which ends when this one does, however that comes."""

    def __init__(self) -> None:
        # In a group of its own, so that Ctrl-C reaches this process alone.
        command = [sys.executable, "-P", "-c", _SERVE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)

    def ask(self, task: Task) -> Answer | None:
        """The answer; None when it could not be given."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()
            answer: Answer | None = pickle.load(self._process.stdout)  # noqa: S301 - our own process wrote it
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return answer

    def stop(self) -> None:
        """End it, whatever it is at."""
        self._process.kill()

    def close(self) -> None:
        """Let go of it once it was stopped and nobody waits for an answer any more."""
        self._process.communicate()


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
