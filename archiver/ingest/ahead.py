"""Reading ahead: other processes parse many new files while this one takes them up, one after the other."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ..copies.raw import Copied
from .processes import Helper
from .task import Answer, Task

_T = TypeVar("_T")
_PORTION: Final = 64 << 20
"""Bytes of files that may be parsed ahead of being stored; a longer file is a portion of its own."""
_Awaited = tuple[Task, Future[Copied]]
"""A task, and the copy it needs."""


class Ahead:
    """Answers to tasks, in their order, from other processes, and from this one whenever it would have to wait for
    another.

    Nothing depends on it: a task that nobody has begun, or that went wrong, is left to the one who asks.
    """

    def __init__(self, tasks: Mapping[str, _Awaited], helpers: Sequence[Helper]) -> None:
        self._left = dict(tasks)
        self._stopped = Future[None]()
        self._begun: set[str] = set()
        """Tasks that somebody is at."""
        self._answers: dict[str, Answer | None] = {}
        self._news = threading.Condition()
        for _, copy in tasks.values():
            copy.add_done_callback(lambda _: self._tell())
        self._helpers = helpers
        self._threads = [threading.Thread(target=self._work, args=(helper,)) for helper in helpers]

    def take(self, name: str) -> Answer | None:
        """The answer to a task; while somebody is at it, others are answered here. None if it is left to the caller."""
        with self._news:
            self._left.pop(name, None)
            if name not in self._begun and name not in self._answers:
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
        if self._begun:
            for helper in self._helpers:
                helper.stop()
        for thread in self._threads:
            thread.join()

    def _work(self, helper: Helper) -> None:
        """Have all answered that nobody else begins; the next task is there before the helper is done with one."""
        asked = deque[str]()
        while (found := self._next(copied=bool(asked))) is not None or asked:
            if found is not None:
                name, (task, copy) = found
                first: list[Future[Any]] = [copy, self._stopped]
                wait(first, return_when=FIRST_COMPLETED)
                helper.ask(task)
                asked.append(name)
            if found is None or len(asked) > 1:
                self._told(asked.popleft(), helper.answer())

    def _told(self, name: str, answer: Answer | None) -> None:
        with self._news:
            self._begun.remove(name)
            self._answers[name] = answer
            self._news.notify_all()

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

    def _next(self, *, copied: bool = False) -> tuple[str, _Awaited] | None:
        """The first task that nobody has begun, only where there is a copy if it is to be `copied`; none once nobody is
        to begin any.
        """
        with self._news:
            name = next(iter(self._left), None)
            if self._stopped.done() or name is None or (copied and not self._is_copied()):
                return None
            self._begun.add(name)
            return name, self._left.pop(name)


def portions(items: Sequence[_T], size: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Cut items into lists of at most 64 MiB, each of at least one item."""
    portion: list[_T] = []
    total = 0
    for item in items:
        if portion and total + size(item) > _PORTION:
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += size(item)
    if portion:
        yield portion
