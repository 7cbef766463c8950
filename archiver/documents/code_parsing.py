"""Parsing of documents, with separate processes for source code and for formats whose parsers can fail."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import LifoQueue
from typing import Final

from msgspec.structs import replace

from ...core.closing import Closing
from ...core.document import Chunk, ChunkKind
from ...core.errors import DocumentUnreadable
from ...core.processors import processors
from ...core.text import visible
from ..redaction import Redactor
from .code_chunks import text_chunks
from .code_languages import CODE_LANGUAGES
from .document_formats import format_of
from .document_reader import CHUNKS_MAX, TEXT_MAX, DocumentContent, ParsedDocument, Section
from .isolated_parser import IsolatedParser
from .metadata import limited

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
