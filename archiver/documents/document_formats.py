"""Kinds of documents, with their decoders and chunkers."""

import codecs
import io
import re
import tokenize
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ...core.document import Chunk
from ...core.errors import DocumentUnreadable, UnsupportedDocument
from . import code_chunks, markdown_chunks, pdf_pages
from .code_languages import CODE_LANGUAGES, CodeLanguage
from .text_windows import windows

VERSION: Final = 3
"""Version of the chunks. Increase it when a code change alters chunks, so that files are indexed again."""

_CONTROL: Final = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_CONTROLS_MAX: Final = 0.01
"""Maximum share of control characters in a text. Without this limit, nearly any bytes would pass as Windows-1252."""


class DocumentFormat(NamedTuple):
    """Kind of document, with a decoder and a chunker.

    The decoder turns bytes into one text, or one text per page. The chunker turns texts into chunks.
    """

    language: str
    texts: Callable[[bytes, Path], Sequence[str]]
    chunks: Callable[[Sequence[str]], list[Chunk]]


def format_of(path: Path) -> DocumentFormat:
    """Return the format of a file, by its suffix. Raises `UnsupportedDocument`."""
    known = _FORMATS.get(path.suffix.lower())
    if known is None:
        raise UnsupportedDocument(path, SUFFIXES)
    return known


def _decode(data: bytes, path: Path) -> list[str]:
    """Decode UTF-8, UTF-16 with a byte order mark, or Windows-1252. Raises `DocumentUnreadable`."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return [_text(data, "utf-16", path)]
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [_text(data, "cp1252", path)]
    return [_text(data, "utf-8-sig", path)]


def _decode_python(data: bytes, path: Path) -> list[str]:
    """Decode Python source with the encoding declared in its first lines. Raises `DocumentUnreadable`."""
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
        raise DocumentUnreadable(path, f"the file is not {name} text", hint="Save it as UTF-8.") from error
    if "\0" in text or len(_CONTROL.findall(text)) > _CONTROLS_MAX * len(text):
        raise DocumentUnreadable(path, "the file is not text", hint="The file is binary, despite its suffix.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _plain_chunks(text: str) -> list[Chunk]:
    return [Chunk(piece, start_line=start, end_line=end) for piece, start, end in windows(text)]


def _of_text(chunks: Callable[[str], list[Chunk]]) -> Callable[[Sequence[str]], list[Chunk]]:
    return lambda texts: [chunk for text in texts for chunk in chunks(text)]


def _of_code(language: CodeLanguage) -> DocumentFormat:
    decode = _decode_python if language.name == "python" else _decode
    return DocumentFormat(language.name, decode, _of_text(lambda text: code_chunks.chunks(text, language)))


_FORMATS: Final = {
    ".md": DocumentFormat("markdown", _decode, _of_text(markdown_chunks.chunks)),
    ".markdown": DocumentFormat("markdown", _decode, _of_text(markdown_chunks.chunks)),
    ".txt": DocumentFormat("text", _decode, _of_text(_plain_chunks)),
    ".pdf": DocumentFormat("pdf", pdf_pages.texts, pdf_pages.chunks),
    **{suffix: _of_code(language) for suffix, language in CODE_LANGUAGES.items()},
}
SUFFIXES: Final = tuple(_FORMATS)
