"""Reading ahead: other processes parse many new files while this one takes them up, one after the other."""

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
    """Answers to tasks, in their order, from as many processes as there are processors to spare, and from this one
    whenever it would have to wait for another.

    Nothing depends on it: a task that nobody has begun, or that went wrong, is left to the one who asks.
    """

    def __init__(self, tasks: Mapping[str, _Awaited]) -> None:
        self._left = dict(tasks)
        self._stopped = Future[None]()
        self._begun: set[str] = set()
        self._answers: dict[str, Answer | None] = {}
        self._news = threading.Condition()
        for _, copy in tasks.values():
            copy.add_done_callback(lambda _: self._tell())
        self._helpers = [_Helper() for _ in range(min(processors() - 1, len(tasks) - 1))]
        self._threads = [threading.Thread(target=self._work, args=(helper,)) for helper in self._helpers]

    def take(self, name: str) -> Answer | None:
        """The answer to a task; while somebody is at it, others are answered here. None if it is left to the caller."""
        with self._news:
            self._left.pop(name, None)
            if name not in self._begun:
                return None
        while (found := self._meanwhile(name)) is not None:
            self._told(found[0], found[1][0].answer())
        with self._news:
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
            self._told(name, helper.ask(task))

    def _told(self, name: str, answer: Answer | None) -> None:
        self._answers[name] = answer
        self._tell()

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()

    def _meanwhile(self, name: str) -> tuple[str, _Awaited] | None:
        """What can be begun here until a task is answered: as soon as there is a copy of it. None once it is."""
        with self._news:
            self._news.wait_for(lambda: name in self._answers or self._is_copied())
            return None if name in self._answers else self._next()

    def _is_copied(self) -> bool:
        """Whether the next task need not wait for its copy."""
        following = next(iter(self._left.values()), None)
        return following is not None and following[1].done()

    def _next(self) -> tuple[str, _Awaited] | None:
        """The first task that nobody has begun; none once nobody is to begin any."""
        with self._news:
            name = next(iter(self._left), None)
            if self._stopped.done() or name is None:
                return None
            self._begun.add(name)
            return name, self._left.pop(name)


class _Helper:
    """Another process, which ends when this one does, however that comes."""

    def __init__(self) -> None:
        # In a group of its own, so that Ctrl-C reaches this process alone.
        command = [sys.executable, "-P", "-c", _SERVE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)

    def ask(self, task: Task) -> Answer | None:
        """The answer; None when it could not be given, or read: one that starts after an update has other types."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()
            answer: Answer | None = pickle.load(self._process.stdout)  # noqa: S301 - our own process wrote it
        except Exception:  # noqa: BLE001 - loading may raise anything, and whoever waits for the answer is to be told
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
