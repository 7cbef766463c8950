"""Program that parses documents for `IsolatedParser`, with limits of memory and time.

The program reads requests from standard input and writes replies to standard output. Before each request and reply, 8
bytes contain its size. The program ends when its input ends.
"""

import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from ...core.errors import DocumentUnreadable
from ..redaction import Redactor
from .document_formats import format_of
from .isolated_parser import HEADER, Parsed, Request, parse_here

_MEMORY: Final = 1 << 30
_SECONDS: Final = 20.0
"""Maximum CPU seconds of one document."""


def main() -> None:
    """Answer requests until the input ends."""
    _limit_memory()
    logging.disable()
    requests, replies = sys.stdin.buffer, _replies()
    while header := requests.read(HEADER):
        request = msgspec.msgpack.decode(requests.read(int.from_bytes(header)), type=Request)
        # The default action of this signal ends the process even while native code runs.
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        reply = msgspec.msgpack.encode(_parsed(request))
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(len(reply).to_bytes(HEADER) + reply)
        replies.flush()


def _parsed(request: Request) -> Parsed:
    """Parse a file. With a key of redaction, return chunks without secrets, and otherwise sections.

    A parser that needs too much memory kills this process, as the operating system does. The parent then reports it.
    """
    path = Path(os.fsdecode(request.path))
    try:
        if request.key:
            return Parsed(document=parse_here(path, request.data, Redactor(request.key)))
        return Parsed(format_of(path).read(request.data, path))
    except DocumentUnreadable as problem:
        return Parsed(problem=problem.reason, hint=problem.hint)
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
        raise


def _replies() -> BinaryIO:
    """Return a file for replies to standard output. From then on, all other text that parsers print is discarded."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return replies


def _limit_memory() -> None:
    # Some systems define a memory limit but refuse to set it.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
