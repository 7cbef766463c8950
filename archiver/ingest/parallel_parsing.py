"""Parsing of many new files by this process and the processes of a pool."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from msgspec import MsgspecError, Struct, msgpack

from ...core.conversation import ResumePoint, Session
from ...core.errors import PalaverError
from ..copies.raw import Copied
from ..files.compression import opened
from ..files.lines import head
from ..formats import TranscriptFormat
from ..reading.parsing import ParsedLines, parse
from ..redaction import Redactor
from ..redaction.transcript_redactor import TranscriptRedactor
from .parser_pool import ParserPool

ParsedFile: TypeAlias = tuple[Session, ParsedLines]
_T = TypeVar("_T")
_BATCH: Final = 64 << 20
"""Bytes of files that may be parsed before the first of them is stored."""
_DECODER: msgpack.Decoder[ParsedFile | None] = msgpack.Decoder(ParsedFile | None)


class ParseTask(Struct, frozen=True):
    """A new file to parse: its format, its path, and its copy in the archive at `root`."""

    format: TranscriptFormat
    path: Path
    root: Path
    archived: str
    key: bytes
    """Key of the placeholders for secrets."""

    def run(self) -> ParsedFile | None:
        """Return the file's session and lines; None if the copy cannot be read, as the caller then finds out too."""
        redactor = Redactor(self.key)
        try:
            with opened(self.root / self.archived) as file:
                session = TranscriptRedactor(redactor).session(self.format.identify(self.path, head(file)))
                return session, parse(self.format, session, ResumePoint(), file, redactor)
        except (OSError, PalaverError):
            return None


class ParallelParser:
    """Parses files in a pool as soon as they are copied, and in this process while it waits for one of them."""

    def __init__(self, pool: ParserPool, tasks: Mapping[str, tuple[ParseTask, Future[Copied]]]) -> None:
        """Submit every task once its copy exists; `tasks` has them in the order in which they are taken."""
        self._pool = pool
        self._tasks = {name: task for name, (task, _) in tasks.items()}
        self._waiting, self._lock = set(tasks), threading.Lock()
        self._submitted = dict[str, Future[bytes]]()
        self._parsed = dict[str, ParsedFile | None]()
        for name, (_, copy) in tasks.items():
            copy.add_done_callback(partial(self._submit, name))

    def take(self, name: str) -> ParsedFile | None:
        """Return what the file holds; None if no process has begun with it, or if parsing failed."""
        with self._lock:
            self._waiting.discard(name)
            future = self._submitted.pop(name, None)
        if future is None or future.cancel():
            return self._parsed.pop(name, None)
        while not future.done() and (other := self._cancelled()) is not None:
            self._parsed[other] = self._tasks[other].run()
        try:
            return _DECODER.decode(future.result())
        except (OSError, RuntimeError, MsgspecError):  # RuntimeError: the process died
            return None

    def _submit(self, name: str, copy: Future[Copied]) -> None:
        with self._lock:
            if name in self._waiting and not copy.cancelled() and copy.exception() is None:
                self._waiting.remove(name)
                self._submitted[name] = self._pool.submit(_run, self._tasks[name])

    def _cancelled(self) -> str | None:
        """Take the first task that no process has begun out of the pool."""
        with self._lock:
            name = next((name for name, future in self._submitted.items() if future.cancel()), None)
            if name is not None:
                del self._submitted[name]
            return name


def batches(items: Sequence[_T], size: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Cut items into lists of at most 64 MiB, each of at least one item."""
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
