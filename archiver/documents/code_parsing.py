"""Parsing of documents and source files in this process, in a separate process and in the processes of a pool."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from ...core.closing import Closing
from ...core.document import Chunk
from ...core.errors import DocumentUnreadable
from ...core.text import without_ansi
from ...core.worker_pool import WorkerPool, processors
from ..redaction import Redactor
from .document_formats import format_of
from .isolated_parser import IsolatedParser
from .metadata import limited

_ALONE: Final = 64
"""Number of files that are parsed in this process. Starting a pool takes longer than parsing them."""


class ParsedDocument(Struct, frozen=True):
    """Chunks and metadata of a file, without secrets."""

    chunks: list[Chunk] = []
    metadata: dict[str, str] = {}


_DECODER: Final = msgpack.Decoder(ParsedDocument)


def parse(path: Path, data: bytes, redactor: Redactor, isolated: IsolatedParser) -> ParsedDocument:
    """Parse a file, in a separate process if its format requires one.

    Raises:
        DocumentUnreadable: The file is damaged, or its reader failed, so no single file stops the ingest of others.
    """
    try:
        return _parse(path, data, redactor, isolated)
    except DocumentUnreadable:
        raise
    except Exception as error:  # Parsers may raise anything for foreign input.
        hint = "Open the file in its program and save it again."
        raise DocumentUnreadable(path, f"the reader failed with {type(error).__name__}", hint=hint) from error


def _parse(path: Path, data: bytes, redactor: Redactor, isolated: IsolatedParser) -> ParsedDocument:
    def clean(text: str) -> str:
        # Escapes in metadata, such as \uD800 in YAML, can produce surrogates, which the database refuses.
        valid = text.encode("utf-8", "replace").decode()
        return redactor.redact(without_ansi(valid).replace("\0", "")).text

    reader = format_of(path)
    content = (isolated if reader.isolated else reader).read(data, path)
    # Secrets are redacted before texts are split.
    sections = [
        replace(section, text=clean(section.text), headings=tuple(map(clean, section.headings)))
        for section in content.sections
    ]
    return ParsedDocument(reader.chunks(sections), limited(content.metadata, clean))


class CodeParser(Closing):
    """Parser that uses a pool if there are many source files."""

    def __init__(self, redactor: Redactor, isolated: IsolatedParser) -> None:
        self._redactor, self._isolated, self._submitted = redactor, isolated, 0
        self._pool = WorkerPool(__name__, processors())

    def submit(self, path: Path, data: bytes) -> Callable[[], ParsedDocument]:
        """Return a function that parses a file. In a pool, parsing starts at once."""
        alone = partial(parse, path, data, self._redactor, self._isolated)
        self._submitted += 1
        if self._submitted <= _ALONE:
            return alone
        future = self._pool.submit(_parse_encoded, path, data, self._redactor)

        def parsed() -> ParsedDocument:
            try:
                return _DECODER.decode(future.result())
            except (OSError, RuntimeError, MemoryError, MsgspecError):  # A RuntimeError means that the process died.
                return alone()

        return parsed

    def close(self) -> None:
        """End the processes of the pool."""
        self._pool.close()


def _parse_encoded(path: Path, data: bytes, redactor: Redactor) -> bytes:
    """Return the encoded result, or nothing if the file is unreadable. The caller then reports the reason."""
    try:
        with IsolatedParser() as isolated:
            return msgpack.encode(parse(path, data, redactor, isolated))
    except DocumentUnreadable:
        return b""
