"""Parsing of documents, in separate processes with memory and time limits where a parser can fail.

Source code and some document formats need third-party parsers, which can hang, crash or exhaust the memory on hostile
files. In these cases, only the separate process ends.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import LifoQueue
from threading import Timer
from typing import IO, Final

import msgspec
from msgspec.structs import replace

from ...core.document import Chunk, ChunkKind
from ...core.errors import DocumentUnreadable
from ...core.runtime import Closing, processors
from ...core.text import visible
from ..redaction import Redactor
from .code_chunks import CODE_LANGUAGES, text_chunks
from .document_formats import format_of
from .document_reader import CHUNKS_MAX, TEXT_MAX, DocumentContent, ParsedDocument, Section, limited

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


_SHORT: Final = 128 << 10
"""Maximum bytes of a text that is parsed in this process, which takes less than a second and 100 MB for any content."""


def parse(path: Path, data: bytes, redactor: Redactor, isolated: IsolatedParser) -> ParsedDocument:
    """Parse a file, in a separate process if its format requires one.

    Source code and long texts whose parsing takes too much time or memory are split like prose.

    Raises:
        DocumentUnreadable: The file is damaged, or its reader failed. One bad file must not stop the ingest of others.
    """
    try:
        return _parse(path, data, redactor, isolated)
    except (DocumentUnreadable, OSError):
        raise
    except Exception as error:  # Parsers may raise anything for foreign input.
        hint = "Open the file in its program and save it again."
        raise DocumentUnreadable(path, f"the reader failed with {type(error).__name__}", hint=hint) from error


def _parse(path: Path, data: bytes, redactor: Redactor, isolated: IsolatedParser) -> ParsedDocument:
    reader, is_code = format_of(path), path.suffix.lower() in CODE_LANGUAGES
    if reader.isolated:
        return _parsed(isolated.read(data, path), redactor, reader.chunks)
    if not is_code and len(data) <= _SHORT:
        return parse_here(path, data, redactor)
    kind = ChunkKind.CODE if is_code else ChunkKind.DOCUMENT
    return isolated.parse(data, path, redactor.key) or _parsed(
        reader.read(data, path), redactor, partial(_as_text, kind)
    )


def parse_here(path: Path, data: bytes, redactor: Redactor) -> ParsedDocument:
    """Parse a file in this process, without limits of time and memory. Raises `DocumentUnreadable`."""
    reader = format_of(path)
    return _parsed(reader.read(data, path), redactor, reader.chunks)


class CodeParser(Closing):
    """Parser of source code that uses one separate process for each CPU."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._parsers = [IsolatedParser() for _ in range(processors())]
        self._idle = LifoQueue[IsolatedParser]()
        for parser in self._parsers:
            self._idle.put(parser)
        self._threads = ThreadPoolExecutor(len(self._parsers), thread_name_prefix="palaver-parser")

    def submit(self, path: Path, data: bytes) -> Callable[[], ParsedDocument]:
        """Begin to parse a file. Return a function that waits for the result.

        The returned function raises `DocumentUnreadable` if the file cannot be parsed.
        """
        return self._threads.submit(self._parse, path, data).result

    def _parse(self, path: Path, data: bytes) -> ParsedDocument:
        parser = self._idle.get()
        try:
            return parse(path, data, self._redactor, parser)
        except OSError as error:
            raise DocumentUnreadable(path, f"no parser can start: {error}", hint="Index the file again.") from None
        finally:
            self._idle.put(parser)

    def close(self) -> None:
        """Stop all parser processes, including those that are still working."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for parser in self._parsers:
            parser.kill()
        self._threads.shutdown()
        for parser in self._parsers:
            parser.close()


def _parsed(
    content: DocumentContent, redactor: Redactor, split: Callable[[Sequence[Section]], list[Chunk]]
) -> ParsedDocument:
    def clean(text: str) -> str:
        # Escapes in metadata, such as \uD800 in YAML, can produce surrogates, which the database refuses.
        valid = text.encode("utf-8", "replace").decode()
        return redactor.redact(visible(valid), keep_lines=True).text

    # Secrets are redacted before texts are split.
    sections = [
        replace(section, text=clean(section.text[:TEXT_MAX]), headings=tuple(map(clean, section.headings)))
        for section in content.sections
    ]
    chunks = split(sections)
    truncated = content.truncated or len(chunks) > CHUNKS_MAX
    cut = {"indexed": f"only the first {min(len(chunks), CHUNKS_MAX):,} chunks"} if truncated else {}
    return ParsedDocument(chunks[:CHUNKS_MAX], limited(content.metadata, clean) | cut, truncated)


def _as_text(kind: ChunkKind, sections: Sequence[Section]) -> list[Chunk]:
    return [chunk for section in sections for chunk in text_chunks(section.text, kind)]
