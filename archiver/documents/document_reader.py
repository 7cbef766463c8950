"""Document readers: their protocol, the values that they return, metadata, and windows of long text.

Metadata are named values, such as `title`, from front matter and similar parts of other formats. Windows overlap, and
are cut at the end of a paragraph, a line or a sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import replace

from ...core.document import Chunk, ChunkKind
from ..lines import one_line

SIZE: Final = 1_000
"""Approximate characters of a window."""
OVERLAP: Final = 200
"""Maximum characters that a window repeats from the previous one.

The overlap ensures that each sentence is whole in at least one window.
"""
_LATE: Final = 0.5
"""Minimum share of the window size at which a window may end.

If a paragraph ends after this share of the window, the window ends there. Otherwise it ends at the last line that fits.
Lines longer than this share are split into sentences. Otherwise, a heading before such a line would become a window of
its own.
"""
_SENTENCE: Final = re.compile(r".+?(?:[.!?\u2026]\s+|[\u3002\uff01\uff1f]|$)", re.DOTALL)


class DocumentWindow(NamedTuple):
    """Range of text with its first and last line, 1-based and inclusive."""

    text: str
    start_line: int
    end_line: int


class _Row(NamedTuple):
    line: int
    text: str
    complete: bool = True
    """False for a sentence of a long line that continues in the next row."""


def windows(text: str, first_line: int = 1, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[DocumentWindow]:
    """Yield overlapping windows of a text.

    Every non-whitespace character is in at least one window. Text that consists of whitespace yields no window.
    """
    longest = int(_LATE * size)
    rows = [
        row
        for line, row_text in enumerate(text.split("\n"), first_line)
        for row in _rows(line, row_text, longest, overlap)
    ]
    start = 0
    while start < len(rows):
        end = _end(rows, start, size)
        if (window := _window(rows[start:end])) is not None:
            yield window
        if end == len(rows):
            return
        # The next window must contain at least one new row.
        start = next(index for index in range(_back(rows, end, overlap), end + 1) if _end(rows, index, size) > end)


def _rows(line: int, text: str, longest: int, overlap: int) -> Iterator[_Row]:
    """Yield a line, or the sentences of a line with more than `longest` characters.

    A sentence that exceeds the overlap is split, at spaces if possible.
    """
    if len(text) <= longest:
        yield _Row(line, text)
        return
    piece = overlap - 1 if overlap > 1 else longest
    for sentence in _SENTENCE.findall(text):
        remaining: str = sentence
        while len(remaining) > piece:
            cut = remaining.rfind(" ", piece // 2, piece) + 1 or piece
            yield _Row(line, remaining[:cut], complete=False)
            remaining = remaining[cut:]
        yield _Row(line, remaining, complete=False)
    yield _Row(line, "")


def _end(rows: Sequence[_Row], start: int, size: int) -> int:
    """Return the index after the last row of the window that begins at row `start`."""
    length, end = 0, start
    while end < len(rows) and (end == start or length + len(rows[end].text) <= size):
        length += len(rows[end].text) + 1
        end += 1
    if end == len(rows):
        return end
    left = length
    for index in range(end - 1, start, -1):
        left -= len(rows[index].text) + 1
        if left < _LATE * size:
            break
        if not rows[index].text.strip():
            return index
    return end


def _back(rows: Sequence[_Row], end: int, overlap: int) -> int:
    """Return the index of the earliest row at which the next window may begin, limited by the overlap."""
    length, start = 0, end
    while start and length + len(rows[start - 1].text) < overlap:
        start -= 1
        length += len(rows[start].text) + 1
    return start


def _window(rows: Sequence[_Row]) -> DocumentWindow | None:
    full = [index for index, row in enumerate(rows) if row.text.strip()]
    if not full:
        return None
    kept = rows[full[0] : full[-1] + 1]
    text = "".join(row.text + ("\n" if row.complete else "") for row in kept)
    return DocumentWindow(text.rstrip(), kept[0].line, kept[-1].line)


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


_NAME: Final = 60
_VALUE: Final = 500
_COUNT: Final = 32
"""Maximum characters of names and values, and maximum number of values of a document."""


def flat(metadata: object) -> dict[str, str]:
    """Return a mapping with its values as texts. Return an empty dictionary if `metadata` is not a mapping.

    A list becomes its texts, joined by commas. Any other value becomes an empty text.
    """
    try:
        entries = convert(metadata, dict[str, Any])
    except ValidationError:
        return {}
    return {name: _text(value) for name, value in entries.items()}


def limited(metadata: Mapping[str, str], redact: Callable[[str], str]) -> dict[str, str]:
    """Return the first 32 entries that have a name and a value, with names in lower case.

    Names and values are redacted, put on one line and shortened.
    """
    kept: dict[str, str] = {}
    for name, value in metadata.items():
        # A value is redacted before it is shortened, so that no secret is cut.
        short = one_line(redact(value), _VALUE)
        if short and name.strip() and len(kept) < _COUNT:
            kept.setdefault(one_line(redact(name).lower(), _NAME), short)
    return kept


def _text(value: object) -> str:
    try:
        values = convert(value, str | list[Any])
    except ValidationError:
        return ""
    return values if isinstance(values, str) else ", ".join(item for item in values if isinstance(item, str))
