"""Parser that reads documents in a separate process, with memory and time limits.

Third-party parsers can hang, crash or exhaust the memory on hostile files. In these cases, only the separate process
ends.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import IO, Final

import msgspec

from ...core.closing import Closing
from ...core.errors import DocumentUnreadable
from .document_reader import DocumentContent, ParsedDocument

HEADER: Final = 8
"""Length in bytes of the header of each request and reply, which contains the size of the message."""
_COMMAND: Final = (sys.executable, "-P", "-m", f"{__package__}.parser_process")
_SECONDS: Final = 60.0
"""Maximum seconds of one document. The process itself limits the CPU time and the memory."""
_TOO_LARGE: Final = "parsing takes too much time or memory"


class Request(msgspec.Struct, frozen=True):
    """Document to parse. The suffix of its path determines the reader.

    With the `key` of a redactor, the reply contains chunks without secrets. Without `key`, the reply contains sections.
    """

    path: bytes
    data: bytes
    key: bytes = b""


class Parsed(msgspec.Struct, frozen=True):
    """Reply to a request: sections or chunks of a document, or else the problem with the document and a hint."""

    content: DocumentContent | None = None
    document: ParsedDocument | None = None
    problem: str = ""
    hint: str = ""


class IsolatedParser(Closing):
    """Parser that runs in a separate process.

    The process starts with the first document. If a document crashes it or exceeds a limit, a new process starts with
    the next document.
    """

    def __init__(self, command: Sequence[str] = _COMMAND, seconds: float = _SECONDS) -> None:
        self._command, self._seconds = command, seconds
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, data: bytes, path: Path) -> DocumentContent:
        """Return the content of a file. Raises `DocumentUnreadable`."""
        parsed = self._parsed(Request(os.fsencode(path), data))
        if parsed is None:
            raise self._ended(path)
        if parsed.content is None:
            raise DocumentUnreadable(path, parsed.problem, hint=parsed.hint)
        return parsed.content

    def parse(self, data: bytes, path: Path, key: bytes) -> ParsedDocument | None:
        """Return the chunks of a file, or None if the process ended without a reply. Raises `DocumentUnreadable`.

        The process redacts secrets with the key `key`.
        """
        parsed = self._parsed(Request(os.fsencode(path), data, key))
        if parsed is None:
            self.close()
            return None
        if parsed.document is None:
            raise DocumentUnreadable(path, parsed.problem, hint=parsed.hint)
        return parsed.document

    def kill(self) -> None:
        """End the process from another thread. A call in progress then returns as if the process had crashed."""
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _parsed(self, request: Request) -> Parsed | None:
        reply = self._exchange(msgspec.msgpack.encode(request))
        return None if reply is None else msgspec.msgpack.decode(reply, type=Parsed)

    def _exchange(self, request: bytes) -> bytes | None:
        """Send a request and return the reply, or None if the process ended."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(len(request).to_bytes(HEADER) + request)
            process.stdin.flush()
            size = _exactly(process.stdout, HEADER)
            return _exactly(process.stdout, int.from_bytes(size)) if size is not None else None
        except BrokenPipeError:
            return None
        finally:
            timer.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        # The process has its own group, so Ctrl-C reaches only this process, which then ends the parser.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def _ended(self, path: Path) -> DocumentUnreadable:
        assert self._process is not None
        status = self._process.wait()
        self.close()
        if status in {-signal.SIGKILL, -signal.SIGPROF}:
            return DocumentUnreadable(path, _TOO_LARGE, hint="Split it into smaller files.")
        return DocumentUnreadable(path, "the parser crashed", hint="Open the file in its program and save it again.")


def _exactly(file: IO[bytes], size: int) -> bytes | None:
    """Read exactly `size` bytes, or return None if the file has fewer."""
    found = file.read(size)
    return found if len(found) == size else None
