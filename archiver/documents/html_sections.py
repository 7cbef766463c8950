"""Sections of HTML: headings, text and metadata, without scripts, navigation and markup."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from .document_reader import DocumentContent
from .outline import SectionBuilder
from .plain_text import decode

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


def content(data: bytes, path: Path) -> DocumentContent:
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
