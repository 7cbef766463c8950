"""Readers of text, Markdown, reStructuredText, Org, HTML and Jupyter notebooks: headings, text and metadata.

- reStructuredText: only titles and the field list below the document title are parsed. Directives never run, and
  unknown directives, such as those of Sphinx, cause no errors.
- Org: a row that begins with stars is a heading even inside a block.
- HTML: scripts, navigation and markup are left out.
- Notebooks: outputs of code cells, such as images, are skipped.
"""

import codecs
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ...core.document import ChunkKind
from ...core.errors import DocumentUnreadable
from .document_reader import CHUNKS_MAX, DocumentContent, Section, flat

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from yaml.events import Event


class Heading(NamedTuple):
    """Heading in a text. Level 1 is the highest.

    `line` is the 0-based number of the heading's first row, and `rows` the number of its rows.
    """

    level: int
    title: str
    line: int
    rows: int = 1


_LEVELS: Final = 12
"""Maximum number of headings above a position. In a format without a limit, such as Org, the highest are dropped."""


class HeadingStack:
    """Headings above the current position."""

    def __init__(self) -> None:
        self._above: list[tuple[int, str]] = []

    def enter(self, level: int, title: str) -> None:
        """Add a heading. It replaces the headings of the same level and of deeper levels."""
        self._above = [*(each for each in self._above if each[0] < level), (level, title)][-_LEVELS:]

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
    first = list(islice(headings, CHUNKS_MAX + 1))
    if len(first) > CHUNKS_MAX:
        first = []
    for number, heading in enumerate([None, *first]):
        start = heading.line if heading else 0
        following = first[number] if number < len(first) else None
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


def org_headings(text: str) -> Iterator[Heading]:
    """Yield the headings, with their TODO state and tags."""
    for number, row in enumerate(text.split("\n")):
        if heading := _HEADING.match(row):
            yield Heading(len(heading[1]), heading[2].rstrip(), number)


def org_metadata(text: str) -> dict[str, str]:
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


_HEADING_ROW: Final = re.compile(r"^ {0,3}(?:#{1,6}(?!\S)|=+ *$|-+ *$)", re.MULTILINE)
_ROWS_MAX: Final = 10 * CHUNKS_MAX
"""Maximum number of rows that look like a heading. A shell script in a code block can have hundreds."""
_FRONT_MATTER: Final = 16_000
_DEPTH: Final = 10
"""Maximum characters and depth of front matter that is parsed. PyYAML needs 5 s for 5,000 nested lists."""


def markdown_headings(text: str) -> Iterator[Heading]:
    """Yield the CommonMark headings, except headings in block quotes and lists.

    A text with too many rows that look like headings has none, because the parser needs 2 KB of memory for each.
    """
    if next(islice(_HEADING_ROW.finditer(text), _ROWS_MAX, None), None) is not None:
        return
    rows = text.split("\n")
    end = _end_of_front_matter(rows)
    # CommonMark would parse the last row of front matter as a heading.
    body = "\n".join([""] * end + rows[end:])
    for token, content in pairwise(_parser().parse(body)):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield Heading(int(token.tag[1]), content.content, token.map[0], token.map[1] - token.map[0])


@cache
def _parser() -> "MarkdownIt":
    """Return the parser, which thousands of notebook cells share. Creating one takes longer than parsing a cell."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline"])


def markdown_metadata(text: str) -> dict[str, str]:
    """Return the values in the YAML front matter. Invalid front matter is ignored."""
    rows = text.split("\n")
    end = _end_of_front_matter(rows)
    source = "\n".join(rows[1 : end - 1])
    if not end or len(source) > _FRONT_MATTER:
        return {}
    import yaml

    try:
        if _depth(yaml.parse(source, yaml.BaseLoader)) > _DEPTH:
            return {}
        # This loader creates no objects, and leaves dates and numbers as they are written.
        document: Any = yaml.load(source, yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return flat(document)


def _depth(events: Iterable["Event"]) -> int:
    """Return the depth of nested collections. Stop counting at the first depth beyond the limit."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent

    depth = deepest = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > _DEPTH:
            break
    return deepest


def _end_of_front_matter(rows: list[str]) -> int:
    """Return the number of rows of the front matter, or 0 if the text does not begin with front matter."""
    if rows[0].rstrip() != "---":
        return 0
    return next((number + 1 for number, row in enumerate(rows[1:], 1) if row.rstrip() in {"---", "..."}), 0)


_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1*\s*")
_FIELD: Final = re.compile(r":(?![: ])((?:[^:\\]|\\.|:(?![ `]))+):(?:\s+(.*)|\s*)$")
_SHORT: Final = 4
"""Minimum length of an underline that is shorter than its title. docutils accepts such a title with a warning."""


def rst_headings(text: str) -> Iterator[Heading]:
    """Yield the section titles. The order in which their adornment styles first occur determines their levels."""
    styles: list[str] = []
    rows = text.split("\n")
    number = 0
    while number < len(rows):
        underlined = _title_at(rows, number)
        if underlined is None:
            number += 1
            continue
        style, title, count = underlined
        if style not in styles:
            styles.append(style)
        yield Heading(styles.index(style) + 1, title, number, count)
        number += count


def rst_metadata(text: str) -> dict[str, str]:
    """Return the docinfo: the field list at the beginning or below the document title, and the title itself."""
    rows = text.split("\n")
    start = _after_blank(rows, 0)
    title = _title_at(rows, start)
    if title is not None:
        start = _after_blank(rows, start + title[2])
    above = {"title": title[1]} if title is not None else {}
    return above | {name.lower(): value for name, value in _fields(rows, start)}


def _title_at(rows: list[str], number: int) -> tuple[str, str, int] | None:
    """Return the style, the title and the number of rows of a title that begins at a row, or None."""
    first, second, third = (*rows[number : number + 3], "", "", "")[:3]
    if number and rows[number - 1].strip() and not _ADORNMENT.fullmatch(rows[number - 1]):
        return None
    if over := _ADORNMENT.fullmatch(first):
        title = second.strip()
        if title and first.rstrip() == third.rstrip() and _fits(title, first) and not _ADORNMENT.fullmatch(second):
            return over[1] * 2, title, 3
        return None
    under = _ADORNMENT.fullmatch(second)
    if under and first.strip() and not first[0].isspace() and _fits(first.rstrip(), second):
        return under[1], first.rstrip(), 2
    return None


def _fits(title: str, adornment: str) -> bool:
    length = len(adornment.rstrip())
    return length >= _SHORT or length >= _width(title)


def _width(text: str) -> int:
    """Return the number of columns of a text.

    A wide character, as in Chinese, takes two columns. A combining character takes none.
    """
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _fields(rows: list[str], start: int) -> Iterator[tuple[str, str]]:
    name, value = "", list[str]()
    for row in rows[start:]:
        if field := _FIELD.match(row):
            if name:
                yield name, " ".join(value)
            name, value = field[1], [field[2] or ""]
        elif name and (row.startswith((" ", "\t")) or not row.strip()):
            value.append(row.strip())
        else:
            break
    if name:
        yield name, " ".join(value)


def _after_blank(rows: list[str], start: int) -> int:
    return next((number for number in range(start, len(rows)) if rows[number].strip()), len(rows))


_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_SKIPPED: Final = frozenset("button head iframe nav noscript script select style svg template".split())
_LINES: Final = frozenset("br caption dd dt li option summary tr".split())
_BLOCKS: Final = frozenset(
    """address article aside blockquote body center details dialog div dl fieldset figcaption figure footer form header
    hr main menu ol p pre section table ul""".split()
)
_EMPTY_CELLS: Final = re.compile(r"(?: \|){2,}")
_CELLS: Final = frozenset({"td", "th"})
_META: Final = {
    "author": "author",
    "date": "date",
    "dc.creator": "author",
    "dc.date": "date",
    "dc.title": "title",
    "description": "description",
    "keywords": "keywords",
    "og:description": "description",
    "og:title": "title",
}
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_CHARSET_BYTES: Final = 1_024
"""Number of bytes at the beginning in which the HTML standard searches the declaration of the encoding."""
_ANCHORS: Final = "\u00a7\u00b6\uf0c1"
"""Characters that documentation generators use as link texts in headings and definitions."""


def html_content(data: bytes, path: Path) -> DocumentContent:
    """Return the sections and the metadata of a page. Raises `DocumentUnreadable`."""
    declared = _CHARSET.search(data, 0, _CHARSET_BYTES)
    parser = _Parser()
    parser.feed(decode(data, path, declared[1].decode("ascii", "replace") if declared else None))
    parser.close()
    return parser.content()


class _Parser(HTMLParser):
    """Parser of a page as a stream. It builds no tree, so deeply nested elements need no memory."""

    def __init__(self) -> None:
        super().__init__()
        self._found, self._metadata = SectionBuilder(), dict[str, str]()
        self._title: list[str] | None = None
        self._skipping, self._skipped_depth = "", 0
        self._level, self._preformatted = 0, False
        self._line: list[str] = []

    def content(self) -> DocumentContent:
        """Return the sections and the metadata of the page. Call this after the whole page was parsed."""
        self._break("body")
        return DocumentContent(self._found.sections(), self._metadata)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        role = attributes.get("role")
        if tag == "meta":
            self._note_metadata(attributes)
        elif tag == "title" and self._skipping in {"", "head"} and "title" not in self._metadata:
            self._title = []
        elif tag in {"body", "main"} or role == "main":
            # An element without an end tag must not hide the whole page. Texts before the main part are navigation.
            self._skipping, self._line, self._found = "", [], SectionBuilder()
        elif self._skipping:
            self._skipped_depth += tag == self._skipping
        elif tag in _SKIPPED or role == "navigation":
            self._skipping, self._skipped_depth = tag, 1
        else:
            self._break(tag)
            self._level = _HEADINGS.get(tag, self._level)
            self._preformatted |= tag == "pre"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta" or tag not in _SKIPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title" and self._title is not None:
            self._metadata["title"], self._title = " ".join("".join(self._title).split()), None
        elif self._skipping:
            self._skipped_depth -= tag == self._skipping
            if not self._skipped_depth:
                self._skipping = ""
        else:
            self._break(tag)
            self._preformatted &= tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._title is not None:
            self._title.append(data)
        elif not self._skipping:
            self._line.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip a marked section, as the HTML standard requires. The base class raises an error for unknown sections."""
        return self.parse_bogus_comment(i, report)

    def _break(self, tag: str) -> None:
        """End the current line or paragraph if the tag separates it from the following text."""
        if tag in _CELLS and any(map(str.strip, self._line)):
            self._line.append(" | ")
        if tag not in _HEADINGS and tag not in _LINES and tag not in _BLOCKS:
            return
        text, self._line = "".join(self._line), []
        if not self._preformatted:
            text = _EMPTY_CELLS.sub(" |", " ".join(text.split())).removesuffix(" |").strip(_ANCHORS)
        if self._level and (tag in _HEADINGS or tag in _BLOCKS):
            self._found.heading(self._level, text)
            self._level = 0
        elif text.strip():
            self._found.text(f"{text}\n")
        if tag in _BLOCKS:
            self._found.paragraph()

    def _note_metadata(self, attributes: dict[str, str]) -> None:
        name = _META.get((attributes.get("name") or attributes.get("property") or "").lower())
        if name:
            self._metadata.setdefault(name, attributes.get("content", ""))


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    input: str | list[str] = ""
    """Source of a code cell in version 3 of the format."""
    level: int = 1
    """Level of a heading cell in version 3."""


class _Worksheet(msgspec.Struct):
    cells: list[_Cell] = []


class _Notebook(msgspec.Struct):
    nbformat: int
    metadata: dict[str, Any] = {}
    cells: list[_Cell] = []
    worksheets: list[_Worksheet] = []


_DECODER: Final = msgspec.json.Decoder(_Notebook)
_HINT: Final = "Open it in Jupyter and save it again."


def notebook_content(data: bytes, path: Path) -> DocumentContent:
    """Return the headings, texts and code of a notebook. Raises `DocumentUnreadable`."""
    try:
        notebook = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DocumentUnreadable(path, "the file is damaged or not a Jupyter notebook", hint=_HINT) from None
    sections = SectionBuilder()
    for cell in [*notebook.cells, *(cell for sheet in notebook.worksheets for cell in sheet.cells)]:
        source = _joined(cell.source) or _joined(cell.input)
        if cell.cell_type == "code":
            sections.code(source)
        elif cell.cell_type == "heading":
            sections.heading(cell.level, source)
        elif cell.cell_type == "markdown":
            _add_markdown(sections, source)
        else:
            sections.text(source + "\n\n")
    return DocumentContent(sections.sections(), _metadata(notebook.metadata))


def _add_markdown(sections: SectionBuilder, source: str) -> None:
    start = 0
    rows = source.split("\n")
    for heading in markdown_headings(source):
        sections.text("\n".join(rows[start : heading.line]) + "\n\n")
        sections.heading(heading.level, heading.title)
        start = heading.line + heading.rows
    sections.text("\n".join(rows[start:]) + "\n\n")


def _metadata(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the title, the authors and the programming language."""
    names = [flat(author).get("name", "") for author in _list(metadata.get("authors"))]
    language = flat(metadata.get("language_info")) or flat(metadata.get("kernelspec"))
    values = {"author": ", ".join(filter(None, names)), "programming language": language.get("name", "")}
    return {name: value for name, value in flat(metadata).items() if name == "title"} | values


def _list(value: object) -> list[Any]:
    try:
        return msgspec.convert(value, list[Any])
    except msgspec.ValidationError:
        return []


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
