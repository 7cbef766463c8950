"""Recognition of binary, generated, minified and vendored files."""

import codecs
import re
from pathlib import Path
from typing import Final

from .code_languages import CODE_LANGUAGES

VENDORED_FOLDERS: Final = frozenset(
    {"node_modules", "site-packages", "bower_components", "third_party", "vendor", "Pods"}
)
"""Names of folders that contain third-party packages."""
CODE_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of a code file in a scanned folder. Larger files are usually bundles or data."""
_GENERATED_NAME: Final = re.compile(r".*\.(?:min|bundle)\.\w+|.*[._]pb2?(?:_grpc)?\.\w+")
_GENERATED_HEADER: Final = re.compile(
    rb"^[^\w\n]*(?:@generated\b|code generated\b.{0,200}\bdo not edit|(?:this file (?:is|was) )?auto-?generated\b)",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER: Final = 1_500
"""Number of bytes at the beginning of a file in which a "generated" comment is searched."""
_MINIFIED_BYTES: Final = 2_000
_MINIFIED_LINE: Final = 300
"""Minimum size, and minimum average bytes per line, of minified code."""
_SAMPLE: Final = 8_000
_WITH_NUL: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Beginnings of texts that contain NUL bytes: the byte order marks of UTF-16."""
_NOT_TEXT: Final = frozenset({".docx", ".pdf"})
"""Suffixes of formats that are not text. A file without text in them is damaged, and its reader reports that."""


def reason_by_name(path: Path, size: int) -> str:
    """Return the reason to skip a file, judged by its name and size, or an empty string to read the file."""
    if _GENERATED_NAME.fullmatch(path.name):
        return "generated"
    if size > CODE_BYTES_MAX and path.suffix.lower() in CODE_LANGUAGES:
        return "too large"
    return ""


def reason_by_content(path: Path, data: bytes) -> str:
    """Return the reason to skip a file, judged by its content, or an empty string to index the file."""
    suffix = path.suffix.lower()
    if suffix not in _NOT_TEXT and b"\0" in data[:_SAMPLE] and not data.startswith(_WITH_NUL):
        return "binary"
    if suffix not in CODE_LANGUAGES:
        return ""
    if _GENERATED_HEADER.search(data, 0, _HEADER):
        return "generated"
    minified = len(data) > _MINIFIED_BYTES and len(data) > _MINIFIED_LINE * (data.count(b"\n") + 1)
    return "minified" if minified else ""
