"""Pool of processes that parse files.

This module imports only the modules that these processes need.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
from typing import TypeVar

from ...core.runtime import Closing, processors

_R = TypeVar("_R")
_PARSING = f"{__package__}.parallel_parser"
_SAFE_PATH = "PYTHONSAFEPATH"


class ParserPool(Closing):
    """Process pool with one process less than the number of available CPUs.

    The processes end when the pool is closed or this process ends.
    """

    def __init__(self) -> None:
        self._executor: ProcessPoolExecutor | None = None
        self._writer: Connection | None = None

    @property
    def size(self) -> int:
        """Maximum number of processes in the pool."""
        return processors() - 1

    def start(self) -> None:
        """Start the first process. It loads its modules in parallel with this process."""
        if self.size:
            self.submit(os.getpid)

    def submit(self, function: Callable[..., _R], *arguments: object) -> "Future[_R]":
        """Run a function in a process of the pool. The future fails if no process can start or if a process dies."""
        try:
            with _safe_path():
                return self._opened().submit(function, *arguments)
        except (OSError, RuntimeError) as error:  # A RuntimeError means that a process died or the pool was closed.
            failed = Future[_R]()
            failed.set_exception(error)
            return failed

    def close(self) -> None:
        """End all processes, including processes that are still parsing."""
        if self._executor is not None and self._writer is not None:
            self._writer.close()
            self._executor.shutdown(wait=False)
        self._executor = None

    def _opened(self) -> ProcessPoolExecutor:
        if self._executor is None:
            context = multiprocessing.get_context("spawn")
            reader, self._writer = context.Pipe(duplex=False)
            self._executor = ProcessPoolExecutor(self.size, context, _prepare, (reader,))
        return self._executor


@contextmanager
def _safe_path() -> Generator[None]:
    """Prevent processes that start in this context from importing modules of the current folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _prepare(reader: Connection) -> None:
    """Prepare a process of the pool: load the parser modules, and exit when the other end of the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_at_end, args=(reader,), daemon=True).start()
    import_module(_PARSING)


def _exit_at_end(reader: Connection) -> None:
    try:
        reader.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)
