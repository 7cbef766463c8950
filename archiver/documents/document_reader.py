"""Protocol of document readers, and the values that they return."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.document import Chunk, ChunkKind
from ..files.clipping import one_line
from .text_windows import SIZE, windows

CHUNKS_MAX: Final = 2_000
"""Maximum number of chunks of a file. It is also the maximum number of sections that are searched one by one."""
_PAGE: Final = 4_000
"""Maximum characters of a chunk of a page, for example in a PDF file. A longer page is split."""
TEXT_MAX: Final = (CHUNKS_MAX + 1) * _PAGE
"""Maximum characters of a section to parse. No format has more in `CHUNKS_MAX` chunks."""
_METADATA: Final = 1 << 20
"""Number of characters at the beginning of a text in which its metadata is searched."""
PROSE_MAX: Final = 2 * CHUNKS_MAX * SIZE
"""Maximum characters of a section to split into windows. `CHUNKS_MAX` windows contain half of them at most."""
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
    """Sections of a document and its metadata, such as `title` and `author`.

    `truncated` is true if the reader did not read the whole file, because it is too long.
    """

    sections: tuple[Section, ...]
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    truncated: bool = False


class ParsedDocument(Struct, frozen=True):
    """Chunks and metadata of a file, without secrets. `truncated` is true if the chunks omit a part of the file."""

    chunks: list[Chunk] = []
    metadata: dict[str, str] = {}
    truncated: bool = False


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
        return DocumentContent((Section(text, line=1),), self.metadata(text[:_METADATA]))

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
        content = self.parse(data, path)
        return replace(content, sections=tuple(merged(content.sections)))

    def chunks(self, sections: Sequence[Section]) -> list[Chunk]:
        """Return one chunk per section, or several chunks for a long section."""
        return chunks_of(sections)


def merged(sections: Sequence[Section]) -> Sequence[Section]:
    """Join the sections of a file that has too many, such as one with 100,000 headings, and return any other unchanged.

    Most of its sections are too small to be searched one by one. Code is not joined with prose, and no page with
    another. The joined sections have no headings above them.
    """
    if len(sections) <= CHUNKS_MAX:
        return sections
    groups = (list(group) for _, group in groupby(sections, lambda section: (section.kind, section.page)))
    return [replace(group[0], text="\n\n".join(section.text for section in group), headings=()) for group in groups]


def chunks_of(sections: Iterable[Section]) -> list[Chunk]:
    """Split sections into chunks, at most one more than `CHUNKS_MAX`.

    Chunks of a section without line numbers have the line numbers 0.
    """
    chunks = (
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
        for window in windows(section.text[:PROSE_MAX], section.line, _PAGE if section.page else SIZE)
    )
    return list(islice(chunks, CHUNKS_MAX + 1))
