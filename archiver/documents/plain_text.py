"""Decoding of text files."""

import codecs
import io
import re
import tokenize
from pathlib import Path
from typing import Final

from ...core.errors import DocumentUnreadable

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
