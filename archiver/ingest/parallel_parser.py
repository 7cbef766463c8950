"""Parallel parsing of many new files: in this process, and in the processes of a pool."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from msgspec import MsgspecError, Struct, msgpack

from ...core.conversation import ResumePoint, Session
from ...core.errors import PalaverError
from ..copies.raw_copy import Copied
from ..formats import TranscriptFormat
from ..lines import opened
from ..reading.parsing import ParsedLines, parse, session_in
from ..redaction import Redactor
from .parser_pool import ParserPool

ParsedFile: TypeAlias = tuple[Session, ParsedLines]
_T = TypeVar("_T")
_BATCH: Final = 64 << 20
"""Maximum total size in bytes of the files that are parsed before the first of them is stored."""
_DECODER: msgpack.Decoder[ParsedFile | None] = msgpack.Decoder(ParsedFile | None)


class ParseTask(Struct, frozen=True):
    """New file to parse: its format, its path, and its copy in the archive at `root`."""

    format: TranscriptFormat
    path: Path
    root: Path
    archived: str
    key: bytes
    """Key for the placeholders of secrets."""

    def run(self) -> ParsedFile | None:
        """Return the file's session and lines, or None if the copy cannot be read.

        The caller then reads the copy itself and reports the problem.
        """
        redactor = Redactor(self.key)
        try:
            with opened(self.root / self.archived) as file:
                session = session_in(self.format, self.path, file, redactor)
                return session, parse(self.format, session, ResumePoint(), file, redactor)
        except (OSError, PalaverError):
            return None


class ParallelParser:
    """Parser that sends copied files to a pool of processes. While it waits, it parses other files in this process."""

    def __init__(self, pool: ParserPool, tasks: Mapping[str, tuple[ParseTask, Future[Copied]]]) -> None:
        """Start each task as soon as its raw copy is written.

        `tasks` is ordered: the caller must call `take` in the same order.
        """
        self._pool = pool
        self._tasks = {name: task for name, (task, _) in tasks.items()}
        self._lock = threading.RLock()
        self._uncopied, self._ready = set(tasks), deque[str]()
        self._active = 0
        self._submitted = dict[str, Future[bytes]]()
        self._parsed = dict[str, ParsedFile | None]()
        for name, (_, copy) in tasks.items():
            copy.add_done_callback(partial(self._add, name))

    def take(self, name: str) -> ParsedFile | None:
        """Return the parsed content of a file, or None if parsing was not started or failed."""
        with self._lock:
            self._uncopied.discard(name)
            if name in self._ready:
                self._ready.remove(name)
            future = self._submitted.pop(name, None)
        if future is None:
            return self._parsed.pop(name, None)
        while not future.done() and (other := self._next()) is not None:
            self._parsed[other] = self._tasks[other].run()
        try:
            return _DECODER.decode(future.result())
        except (OSError, RuntimeError, MemoryError, MsgspecError):  # A RuntimeError means that the process died.
            return None

    def _add(self, name: str, copy: Future[Copied]) -> None:
        with self._lock:
            if name in self._uncopied and not copy.cancelled() and copy.exception() is None:
                self._uncopied.remove(name)
                self._ready.append(name)
                self._submit()

    def _submit(self) -> None:
        """Submit tasks until the pool has one more task than processes. `take` parses other tasks in this process."""
        with self._lock:
            while self._active <= self._pool.size and (name := self._next()) is not None:
                self._active += 1
                self._submitted[name] = future = self._pool.submit(_run, self._tasks[name])
                future.add_done_callback(self._done)

    def _done(self, future: Future[bytes]) -> None:
        with self._lock:
            if not future.cancelled() and future.exception() is None:  # Otherwise the pool is broken.
                self._active -= 1
                self._submit()

    def _next(self) -> str | None:
        with self._lock:
            return self._ready.popleft() if self._ready else None


def batches(items: Sequence[_T], size: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Split items into lists with a total size of at most 64 MiB. A list has at least one item."""
    batch: list[_T] = []
    total = 0
    for item in items:
        if batch and total + size(item) > _BATCH:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def _run(task: ParseTask) -> bytes:
    return msgpack.encode(task.run())
