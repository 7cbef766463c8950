"""Formats of documents: the reader for each suffix, and the readers of PDF and DOCX files.

Libraries parse PDF, YAML and Markdown. A scan of the lines finds the titles of reStructuredText. In a test with 700
files, it found the same titles as docutils in one seventieth of the CPU time. It never runs directives. The standard
library's parsers read HTML and DOCX without building a tree of the whole document. A DOCX file is a ZIP archive of XML
parts, which are parsed as a stream, so images are never decompressed.
"""

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import Element, ParseError, iterparse
from zipfile import BadZipFile, ZipFile

from ...core.document import Chunk
from ...core.errors import DocumentUnreadable, UnsupportedDocument
from . import code_chunks, markup
from .code_chunks import CODE_LANGUAGES, CodeLanguage
from .document_reader import DocumentContent, DocumentReader, Section, SectionReader, TextReader, chunks_of
from .markup import Heading, SectionBuilder, decode, decode_python, split_at

if TYPE_CHECKING:
    from pypdf import PdfReader

_PAGES: Final = 2_000
_CHARACTERS: Final = 5_000_000
_METADATA: Final = {"/Title": "title", "/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}


def pdf_content(data: bytes, path: Path) -> DocumentContent:
    """Return the text of each page, and the metadata. Raises `DocumentUnreadable`."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(BytesIO(data))
        encrypted = reader.is_encrypted and not reader.decrypt("")
        count = 0 if encrypted else min(len(reader.pages), _PAGES)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged file may cause any error
        raise _damaged_pdf(path) from None
    if encrypted:
        hint = "Save it without a password, then index the new file."
        raise DocumentUnreadable(path, "the file is encrypted", hint=hint)
    pages = _pages(reader, count, path)
    too_long = count == _PAGES or sum(len(page.text) for page in pages) >= _CHARACTERS
    return DocumentContent(pages, _metadata(reader), too_long)


def _pages(reader: "PdfReader", count: int, path: Path) -> tuple[Section, ...]:
    """Return the pages that contain text. Unreadable pages are omitted."""
    sections: list[Section] = []
    left, failed = _CHARACTERS, False
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()[:left]
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a damaged page may cause any error
            text, failed = "", True
        if text.strip():
            sections.append(Section(text, page=number + 1))
        left -= len(text)
        if not left:
            break
    if sections:
        return tuple(sections)
    if failed:
        raise _damaged_pdf(path)
    hint = "If the pages are scanned, run text recognition first."
    raise DocumentUnreadable(path, "the file contains no text", hint=hint)


def _metadata(reader: "PdfReader") -> dict[str, str]:
    try:
        information: dict[Any, Any] = dict(reader.metadata or {})
        return {name: str(information[key]) for key, name in _METADATA.items() if key in information}
    except Exception:  # noqa: BLE001 - damaged metadata may cause any error
        return {}


def _damaged_pdf(path: Path) -> DocumentUnreadable:
    return DocumentUnreadable(path, "the file is damaged or not a PDF", hint="Open it in a viewer and save it again.")


_PART_BYTES: Final = 64 << 20
"""Maximum bytes of an XML part after decompression."""
_BODY: Final = (r"word/document\d*\.xml", r"word/footnotes\d*\.xml", r"word/endnotes\d*\.xml")
_STYLES: Final = r"word/styles\d*\.xml"
_PROPERTIES: Final = r"docProps/core\.xml"
_NAMES: Final = {"creator": "author", "created": "date"}
_KEPT: Final = ("title", "creator", "subject", "description", "keywords", "category", "created", "language")
_HEADING: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)
_OLE: Final = b"\xd0\xcf\x11\xe0"
"""First bytes of an encrypted file and of a file of Word 2003 or older."""
_IGNORED: Final = frozenset({"Fallback", "moveFrom"})
"""Elements whose text is repeated elsewhere: alternatives for older programs, and the old position of moved text."""
_DOCX_CHARACTERS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_BASES: Final = 20
"""Maximum number of base styles to follow when the heading level of a style is searched."""


def docx_content(data: bytes, path: Path) -> DocumentContent:
    """Return the sections and the core properties of a document. Raises `DocumentUnreadable`."""
    if data.startswith(_OLE):
        reason = "the file is encrypted, or has the format of Word 2003 or older"
        raise DocumentUnreadable(path, reason, hint="Save it as DOCX without a password.")
    try:
        with ZipFile(BytesIO(data)) as archive:
            levels = _heading_levels(_part(archive, _STYLES, path))
            body = _BodyParser(levels)
            if not _part(archive, _BODY[0], path):
                raise _damaged_docx(path)
            for name in _BODY:
                body.parse(_part(archive, name, path))
            return DocumentContent(body.sections(), _properties(_part(archive, _PROPERTIES, path)))
    # The last three errors are raised for unknown compression methods, encrypted parts and damaged data.
    except (BadZipFile, ParseError, NotImplementedError, RuntimeError, ValueError, OSError, EOFError) as problem:
        raise _damaged_docx(path) from problem


def _damaged_docx(path: Path) -> DocumentUnreadable:
    return DocumentUnreadable(path, "the file is damaged or not a DOCX file", hint="Open it in Word and save it again.")


def _part(archive: ZipFile, pattern: str, path: Path) -> bytes:
    """Return the content of the archive member whose name matches `pattern`, or empty bytes if there is none.

    Raises:
        DocumentUnreadable: The member is too large.
    """
    name = next((name for name in archive.namelist() if re.fullmatch(pattern, name)), None)
    if name is None:
        return b""
    with archive.open(name) as part:
        content = part.read(_PART_BYTES + 1)
    if len(content) > _PART_BYTES:
        reason = f"its text is larger than {_PART_BYTES >> 20} MiB"
        raise DocumentUnreadable(path, reason, hint="Split it into smaller files.")
    return content


class _BodyParser:
    """Parser of the XML parts that contain text."""

    def __init__(self, levels: dict[str, int]) -> None:
        self._levels, self._found = levels, SectionBuilder()
        self._ignoring = 0
        self._rows, self._cells = list[list[str]](), list[list[str]]()
        """Texts of the open table rows and cells, the innermost last."""

    def sections(self) -> tuple[Section, ...]:
        """Return the sections of all parsed parts."""
        return self._found.sections()

    def parse(self, part: bytes) -> None:
        """Add the text of a part. Raises `ParseError`."""
        for event, element in _elements(part):
            tag = _local(element.tag)
            if tag in _IGNORED:
                self._ignoring += 1 if event == "start" else -1
                element.clear()
            elif self._ignoring:
                continue
            elif event == "start":
                self._rows += [[]] if tag == "tr" else []
                self._cells += [[]] if tag == "tc" else []
            else:
                self._end(tag, element)

    def _end(self, tag: str, element: Element) -> None:
        if tag == "p":
            self._add_paragraph(element)
            element.clear()  # A text box is in the paragraph around it, which must not repeat its text.
        elif tag == "tc" and self._cells and self._rows:
            self._rows[-1].append(" ".join(self._cells.pop()))
        elif tag == "tr" and self._rows:
            self._add(" | ".join(filter(None, self._rows.pop())), "\n")
        elif tag == "tbl":
            self._found.paragraph()

    def _add_paragraph(self, element: Element) -> None:
        text = _text(element).strip()
        level = self._level(element)
        if text and level is not None and not self._cells:
            self._found.heading(level, text)
        else:
            self._add(text, "\n\n")

    def _add(self, text: str, end: str) -> None:
        if text and self._cells:
            self._cells[-1].append(text)
        elif text:
            self._found.text(text + end)

    def _level(self, paragraph: Element) -> int | None:
        """Return the level of a heading, or None for other paragraphs."""
        for properties in _children(paragraph, "pPr"):
            for element in _children(properties, "outlineLvl"):
                return _outline_level(element)
            for element in _children(properties, "pStyle"):
                return self._levels.get(_value(element))
        return None


def _heading_levels(part: bytes) -> dict[str, int]:
    """Map the ID of each heading style to its level. The level of the document title is 0."""
    levels, bases = dict[str, int](), dict[str, str]()
    for event, style in _elements(part):
        if event == "start" or _local(style.tag) != "style":
            continue
        identifier = next((value for name, value in style.items() if _local(name) == "styleId"), "")
        name = "".join(map(_value, _children(style, "name")))
        level = next((_outline_level(element) for element in style.iter() if _local(element.tag) == "outlineLvl"), None)
        if heading := _HEADING.fullmatch(name):
            level = int(heading[1])
        elif name.lower() == "title":
            level = 0
        if level is not None:
            levels[identifier] = level
        bases.update((identifier, _value(base)) for base in _children(style, "basedOn"))
    for identifier in bases:
        base = identifier
        for _ in range(_BASES):
            if base in levels or base not in bases:
                break
            base = bases[base]
        if base in levels:
            levels.setdefault(identifier, levels[base])
    return levels


def _properties(part: bytes) -> dict[str, str]:
    found = {_local(element.tag): element.text or "" for event, element in _elements(part) if event == "end"}
    return {_NAMES.get(name, name): found[name] for name in _KEPT if found.get(name)}


def _elements(part: bytes) -> Iterator[tuple[str, Element]]:
    if part:
        # Expat limits the expansion of entities, and the process its time and memory.
        yield from iterparse(BytesIO(part), ("start", "end"))  # noqa: S314


def _text(paragraph: Element) -> str:
    # The properties of a paragraph contain tab stops, which have the same name as tabs.
    runs = (element for child in paragraph if _local(child.tag) != "pPr" for element in child.iter())
    return "".join(
        element.text or "" if (tag := _local(element.tag)) == "t" else _DOCX_CHARACTERS.get(tag, "") for element in runs
    )


def _outline_level(element: Element) -> int | None:
    """Return the level of a heading, 1 to 9, or None for the level of body text."""
    value = _value(element)
    return int(value) + 1 if value in set("012345678") else None


def _children(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if _local(child.tag) == name)


def _value(element: Element) -> str:
    return next((value for name, value in element.items() if _local(name) == "val"), "")


def _local(name: str) -> str:
    """Return a name without its namespace, because two editions of the standard have different namespaces."""
    return name.rpartition("}")[2]


VERSION: Final = 7
"""Version of the chunks. Increase it when a code change alters chunks, so that files are indexed again."""


def format_of(path: Path) -> DocumentReader:
    """Return the reader of a file, by its suffix. Raises `UnsupportedDocument`."""
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedDocument(path, SUFFIXES)
    return reader


def _by_headings(headings: Callable[[str], Iterator[Heading]]) -> Callable[[str], list[Chunk]]:
    return lambda text: chunks_of(split_at(headings(text), text))


def _by_size(text: str) -> list[Chunk]:
    return chunks_of([Section(text, line=1)])


def _of_code(language: CodeLanguage) -> DocumentReader:
    decoder = decode_python if language.name == "python" else decode
    return TextReader(language.name, decoder, lambda text: code_chunks.chunks(text, language))


_MARKDOWN: Final = TextReader("markdown", decode, _by_headings(markup.markdown_headings), markup.markdown_metadata)
_HTML: Final = SectionReader("html", markup.html_content)
_FORMATS: Final[dict[str, DocumentReader]] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".rst": TextReader("rst", decode, _by_headings(markup.rst_headings), markup.rst_metadata),
    ".org": TextReader("org", decode, _by_headings(markup.org_headings), markup.org_metadata),
    ".txt": TextReader("text", decode, _by_size),
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".ipynb": SectionReader("notebook", markup.notebook_content),
    ".docx": SectionReader("docx", docx_content),
    ".pdf": SectionReader("pdf", pdf_content),
    **{suffix: _of_code(language) for suffix, language in CODE_LANGUAGES.items()},
}
SUFFIXES: Final = tuple(_FORMATS)
