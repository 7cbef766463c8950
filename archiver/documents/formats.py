"""The kinds of files that are taken up, each with its reader. Adding one is adding a row."""

import codecs
import io
import re
import tokenize
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from ...core.document import Chunk
from ...core.errors import DocumentUnreadable, UnsupportedDocument
from . import markdown, pdf, plain, python

VERSION: Final = 2
"""Raise it when anything in this package gives a file other chunks: files are then read anew where they are met."""

_CONTROL: Final = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_CONTROLS_MAX: Final = 0.01
"""Largest share of control characters in a text: any bytes are Windows-1252, or nearly so."""

Chunker: TypeAlias = Callable[[str], list[Chunk]]


class DocumentFormat(NamedTuple):
    """How one kind of file is read: bytes into texts (a file's one, or one for each page), texts into chunks."""

    language: str
    texts: Callable[[bytes, Path], Sequence[str]]
    chunks: Callable[[Sequence[str]], list[Chunk]]


def format_of(path: Path) -> DocumentFormat:
    """How this file is read, by its name alone; raises `UnsupportedDocument`."""
    known = _FORMATS.get(path.suffix.lower())
    if known is None:
        raise UnsupportedDocument(path, SUFFIXES)
    return known


def _decoded(data: bytes, path: Path) -> list[str]:
    """Decode UTF-8, UTF-16 with a byte order mark, or else Windows-1252, a superset of Latin-1's printable characters.

    Raises `DocumentUnreadable` for data that is no text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return [_text(data, "utf-16", path)]
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [_text(data, "cp1252", path)]
    return [_text(data, "utf-8-sig", path)]


def _source(data: bytes, path: Path) -> list[str]:
    """Python says in its first lines how it is encoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise DocumentUnreadable(path, str(error), hint="Save it as UTF-8.") from None
    return [_text(data, encoding, path)]


def _text(data: bytes, encoding: str, path: Path) -> str:
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        name = encoding.removesuffix("-sig").upper()
        raise DocumentUnreadable(path, f"it is not {name} text", hint="Save it as UTF-8.") from error
    if "\0" in text or len(_CONTROL.findall(text)) > _CONTROLS_MAX * len(text):
        raise DocumentUnreadable(path, "it is not text", hint="Only its name says that it is.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _one(chunks: Chunker) -> Callable[[Sequence[str]], list[Chunk]]:
    return lambda texts: [chunk for text in texts for chunk in chunks(text)]


_FORMATS: Final = {
    ".md": DocumentFormat("markdown", _decoded, _one(markdown.chunks)),
    ".markdown": DocumentFormat("markdown", _decoded, _one(markdown.chunks)),
    ".txt": DocumentFormat("text", _decoded, _one(plain.chunks)),
    ".py": DocumentFormat("python", _source, _one(python.chunks)),
    ".pdf": DocumentFormat("pdf", pdf.texts, pdf.chunks),
}
SUFFIXES: Final = tuple(_FORMATS)
