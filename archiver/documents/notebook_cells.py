"""Cells of Jupyter notebooks. Outputs of code cells, such as images, are skipped."""

from pathlib import Path
from typing import Any, Final

import msgspec

from ...core.errors import DocumentUnreadable
from .document_reader import DocumentContent
from .markdown_text import headings
from .metadata import flat
from .outline import SectionBuilder


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


def content(data: bytes, path: Path) -> DocumentContent:
    """Return the headings, texts and code of a notebook. Raises `DocumentUnreadable`."""
    try:
        notebook = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DocumentUnreadable(path, "the file is damaged or not a Jupyter notebook", hint=_HINT) from None
    found = SectionBuilder()
    for cell in [*notebook.cells, *(cell for sheet in notebook.worksheets for cell in sheet.cells)]:
        source = _joined(cell.source) or _joined(cell.input)
        if cell.cell_type == "code":
            found.code(source)
        elif cell.cell_type == "heading":
            found.heading(cell.level, source)
        elif cell.cell_type == "markdown":
            _add_markdown(found, source)
        else:
            found.text(source + "\n\n")
    return DocumentContent(found.sections(), _metadata(notebook.metadata))


def _add_markdown(found: SectionBuilder, source: str) -> None:
    start = 0
    rows = source.split("\n")
    for heading in headings(source):
        found.text("\n".join(rows[start : heading.line]) + "\n\n")
        found.heading(heading.level, heading.title)
        start = heading.line + heading.rows
    found.text("\n".join(rows[start:]) + "\n\n")


def _metadata(found: dict[str, Any]) -> dict[str, str]:
    """Return the title, the authors and the programming language."""
    names = [flat(author).get("name", "") for author in _list(found.get("authors"))]
    language = flat(found.get("language_info")) or flat(found.get("kernelspec"))
    known = {"author": ", ".join(filter(None, names)), "programming language": language.get("name", "")}
    return {name: value for name, value in flat(found).items() if name == "title"} | known


def _list(found: object) -> list[Any]:
    try:
        return msgspec.convert(found, list[Any])
    except msgspec.ValidationError:
        return []


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
