"""Protocol of document readers, and the values that they return."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from ...core.document import Chunk, ChunkKind
from ..files.clipping import one_line
from .text_windows import SIZE, windows

_PAGE: Final = 4_000
"""Maximum characters of a chunk of a page, for example in a PDF file. A longer page is split."""
_HEADING: Final = 120
"""Maximum characters of a heading in a header path."""


class Section(Struct, frozen=True):
    """Part of a document: the text below one heading, a page, a notebook cell, or the whole text of a file.

    `headings` are the headings above the text. `page` and `line`, the first line of the text, are 1-based, or 0 if the
    format has none.
    """

    text: str
    headings: tuple[str, ...] = ()
    page: int = 0
    line: int = 0
    kind: ChunkKind = ChunkKind.DOCUMENT


class DocumentContent(Struct, frozen=True):
    """Sections of a document and its metadata, such as `title` and `author`."""

    sections: tuple[Section, ...]
    metadata: dict[str, str] = field(default_factory=dict[str, str])


class ParsedDocument(Struct, frozen=True):
    """Chunks and metadata of a file, without secrets."""

    chunks: list[Chunk] = []
    metadata: dict[str, str] = {}


class DocumentReader(Protocol):
    """Reader of one document format, in two steps: `read` and `chunks`.

    Secrets are redacted between the steps. Splitting a text before its redaction could split a secret.
    """

    @property
    def language(self) -> str:
        """Name of the format, as stored with each document."""
        ...

    @property
    def isolated(self) -> bool:
        """True if `read` must run in a separate process, because a file can make the parser slow or exhaust memory."""
        ...

    def read(self, data: bytes, path: Path) -> DocumentContent:
        """Return the content of a file. Raises `DocumentUnreadable`."""
        ...

    def chunks(self, sections: Sequence[Section]) -> list[Chunk]:
        """Return the chunks of redacted sections."""
        ...


class TextReader(Struct, frozen=True):
    """Reader of a plain-text format. `split` returns the chunks of the whole text."""

    language: str
    decode: Callable[[bytes, Path], str]
    split: Callable[[str], list[Chunk]]
    metadata: Callable[[str], dict[str, str]] = lambda _: {}
    isolated: bool = False

    def read(self, data: bytes, path: Path) -> DocumentContent:
        """Return the whole text as one section. Raises `DocumentUnreadable`."""
        text = self.decode(data, path)
        return DocumentContent((Section(text, line=1),), self.metadata(text))

    def chunks(self, sections: Sequence[Section]) -> list[Chunk]:
        """Return the chunks of the text."""
        return [chunk for section in sections for chunk in self.split(section.text)]


class SectionReader(Struct, frozen=True):
    """Reader of a format whose parser returns sections, such as DOCX or PDF."""

    language: str
    parse: Callable[[bytes, Path], DocumentContent]
    isolated: bool = True

    def read(self, data: bytes, path: Path) -> DocumentContent:
        """Return the sections that the parser extracts. Raises `DocumentUnreadable`."""
        return self.parse(data, path)

    def chunks(self, sections: Sequence[Section]) -> list[Chunk]:
        """Return one chunk per section, or several chunks for a long section."""
        return chunks_of(sections)


def chunks_of(sections: Iterable[Section]) -> list[Chunk]:
    """Split sections into chunks. Chunks of a section without line numbers have the line numbers 0."""
    return [
        Chunk(
            window.text,
            section.kind,
            window.start_line if section.line else 0,
            window.end_line if section.line else 0,
            section.page,
            unit="cell" if section.kind is ChunkKind.CODE else "",
            header_path=" > ".join(one_line(heading, _HEADING) or "-" for heading in section.headings),
        )
        for section in sections
        for window in windows(section.text, section.line, _PAGE if section.page else SIZE)
    ]
