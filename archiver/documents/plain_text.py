"""Plain text and Org documents: decoding of text files, headings, and the sections below them.

In Org, a row that begins with stars is a heading even inside a block.
"""

import codecs
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from ...core.document import ChunkKind
from ...core.errors import DocumentUnreadable
from .document_reader import CHUNKS_MAX, Section


class Heading(NamedTuple):
    """Heading in a text. Level 1 is the highest.

    `line` is the 0-based number of the heading's first row, and `rows` the number of its rows.
    """

    level: int
    title: str
    line: int
    rows: int = 1


_DEPTH: Final = 12
"""Maximum number of headings above a position. In a format without a limit, such as Org, the highest are dropped."""


class HeadingStack:
    """Headings above the current position."""

    def __init__(self) -> None:
        self._above: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        """Add a heading. It replaces the headings of the same level and of deeper levels."""
        self._above = [*(each for each in self._above if each[0] < level), (level, title)][-_DEPTH:]

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the headings, the highest first."""
        return tuple(title for _, title in self._above)


class SectionBuilder:
    """Builder of sections. It receives the headings and texts of a document in reading order."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._path, self._level = HeadingStack(), 0
        self._title, self._texts = "", list[str]()

    def heading(self, level: int, title: str) -> None:
        """Begin a section. A heading that is followed directly by a deeper heading has no section of its own."""
        self._finish(next_level=level)
        self._path.enter(level, title)
        self._title, self._level = title, level

    def text(self, text: str) -> None:
        """Add text to the current section."""
        self._texts.append(text)

    def paragraph(self) -> None:
        """End the current paragraph. This has no effect if the current section has no text yet."""
        if self._texts and self._texts[-1] != "\n":
            self._texts.append("\n")

    def code(self, text: str) -> None:
        """Add a section of code below the current heading."""
        self._finish(next_level=self._level + 1)
        self._add(text, ChunkKind.CODE)

    def sections(self) -> tuple[Section, ...]:
        """Return all sections that contain text."""
        self._finish(next_level=0)
        return tuple(self._sections)

    def _finish(self, *, next_level: int) -> None:
        body = "".join(self._texts).strip("\n")
        if body.strip() or next_level <= self._level:
            self._add("\n\n".join(filter(None, (self._title, body))))
        self._title, self._texts = "", []

    def _add(self, text: str, kind: ChunkKind = ChunkKind.DOCUMENT) -> None:
        if text.strip():
            self._sections.append(Section(text, self._path.titles, kind=kind))


def split_at(headings: Iterable[Heading], text: str) -> Iterator[Section]:
    """Split a text at its headings, and yield the sections with their line numbers.

    A heading that is followed directly by a deeper heading has no section of its own. A text with too many headings is
    one section, because most of its sections would be too small to be searched one by one.
    """
    rows, path = text.split("\n"), HeadingStack()
    known = list(islice(headings, CHUNKS_MAX + 1))
    if len(known) > CHUNKS_MAX:
        known = []
    for number, heading in enumerate([None, *known]):
        start = heading.line if heading else 0
        following = known[number] if number < len(known) else None
        end = following.line if following else len(rows)
        section_rows = rows[start:end]
        if heading is not None:
            path.enter(heading.level, heading.title)
            deeper = following is not None and following.level > heading.level
            if deeper and not any(row.strip() for row in section_rows[heading.rows :]):
                continue
        yield Section("\n".join(section_rows), path.titles, line=start + 1)


_HEADING: Final = re.compile(r"(\*+) +(\S.*)")
_KEYWORD: Final = re.compile(
    r"#\+(title|subtitle|author|email|date|description|keywords|filetags|language): *(.*)", re.IGNORECASE
)


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings, with their TODO state and tags."""
    for number, row in enumerate(text.split("\n")):
        if found := _HEADING.match(row):
            yield Heading(len(found[1]), found[2].rstrip(), number)


def metadata(text: str) -> dict[str, str]:
    """Return the keywords that describe the document. Org allows them anywhere, but they usually come first."""
    return {found[1].lower(): found[2] for row in text.split("\n") if (found := _KEYWORD.match(row))}


_CONTROL: Final = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_CONTROLS_MAX: Final = 0.01
"""Maximum share of control characters in a text. Without this limit, nearly any bytes would pass as Windows-1252."""


def decode(data: bytes, path: Path, declared: str | None = None) -> str:
    """Decode the bytes of a text file with the first encoding that fits. Raises `DocumentUnreadable`.

    The encodings are tried in this order: UTF-16 with a byte order mark, the declared encoding, UTF-8, Windows-1252.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _text(data, "utf-16", path)
    for encoding in (declared, "utf-8-sig"):
        if encoding is not None and _is_valid(data, encoding):
            return _text(data, encoding, path)
    return _text(data, "cp1252", path)


def decode_python(data: bytes, path: Path) -> str:
    """Decode Python source with the encoding declared in its first lines. Raises `DocumentUnreadable`."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise DocumentUnreadable(path, str(error), hint="Save it as UTF-8.") from None
    return _text(data, encoding, path)


def _is_valid(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def _text(data: bytes, encoding: str, path: Path) -> str:
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError) as error:
        name = encoding.removesuffix("-sig").upper()
        raise DocumentUnreadable(path, f"the file is not {name} text", hint="Save it as UTF-8.") from error
    if "\0" in text or len(_CONTROL.findall(text)) > _CONTROLS_MAX * len(text):
        raise DocumentUnreadable(path, "the file is not text", hint="The file is binary, despite its suffix.")
    return text.replace("\r\n", "\n").replace("\r", "\n")
