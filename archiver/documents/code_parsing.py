"""Parsing of documents, with separate processes for source code and for formats whose parsers can fail."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import LifoQueue

from msgspec.structs import replace

from ...core.closing import Closing
from ...core.document import Chunk
from ...core.errors import DocumentUnreadable
from ...core.processors import processors
from ...core.text import without_ansi
from ..redaction import Redactor
from .code_chunks import text_chunks
from .code_languages import CODE_LANGUAGES
from .document_formats import format_of
from .document_reader import DocumentContent, ParsedDocument, Section
from .isolated_parser import IsolatedParser
from .metadata import limited


def parse(path: Path, data: bytes, redactor: Redactor, isolated: IsolatedParser) -> ParsedDocument:
    """Parse a file, in a separate process if its format requires one.

    Source code whose parsing takes too much time or memory is split like prose.

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
    reader = format_of(path)
    if path.suffix.lower() in CODE_LANGUAGES:
        return isolated.parse(data, path, redactor.key) or _parsed(reader.read(data, path), redactor, _as_text)
    return _parsed((isolated if reader.isolated else reader).read(data, path), redactor, reader.chunks)


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
        return redactor.redact(without_ansi(valid).replace("\0", ""), keep_lines=True).text

    # Secrets are redacted before texts are split.
    sections = [
        replace(section, text=clean(section.text), headings=tuple(map(clean, section.headings)))
        for section in content.sections
    ]
    return ParsedDocument(split(sections), limited(content.metadata, clean))


def _as_text(sections: Sequence[Section]) -> list[Chunk]:
    return [chunk for section in sections for chunk in text_chunks(section.text)]
