"""Exports of web services: JSON files with all conversations, possibly in a zip file.

A zip file is read as a stream: no file is unpacked to disk, and at most one conversation is in memory. Names inside a
zip file only select the files to read, and are never used as paths on disk.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ...core.errors import SourceUnreadable
from ..files.lines import JSON_DECODER

CONVERSATION_LIMIT = 64 * 1024 * 1024
"""Maximum length of a conversation in characters."""
EXPORT_LIMIT = 8 * 1024 * 1024 * 1024
"""Maximum characters read per export, as protection against decompression bombs."""

_MEMBER = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
_SPACE = re.compile(r"\s*")
_PIECE = 1 << 20
_HEAD = 1 << 20
_NEAR_END = 16
"""Number of characters before the end of the text read so far.

A decoding error among these characters may disappear when more text is read.
"""
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)


def head(path: Path) -> bytes:
    """Return the first bytes of an export's first file, or empty bytes if `path` is not an export.

    Raises `OSError`.
    """
    try:
        with _files(path) as files:
            return next((file.read(_HEAD) for file in files), b"")
    except _ZIP_FAULTS:
        return b""


def conversations(path: Path) -> Iterator[dict[str, object]]:
    """Yield every conversation of an export.

    Raises `SourceUnreadable` for damaged data, after yielding the conversations before the damage.
    """
    try:
        with _files(path) as files:
            reader = _JsonStream(path)
            for file in files:
                yield from reader.objects(file)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None
    except RecursionError:
        raise SourceUnreadable(path, "the JSON is nested too deeply for an export") from None
    except _ZIP_FAULTS as fault:
        hint = "Request a new export from the service."
        raise SourceUnreadable(path, f"the export is damaged: {fault}", hint=hint) from None


@contextmanager
def _files(path: Path) -> Generator[Iterator[BinaryIO]]:
    if path.suffix.lower() != ".zip":
        with path.open("rb") as file:
            yield iter((file,))
        return
    with zipfile.ZipFile(path) as pack:
        yield (cast("BinaryIO", pack.open(name)) for name in sorted(filter(_MEMBER.search, pack.namelist())))


class _JsonStream:
    """Stream of the JSON objects in the files of an export."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text, self._at, self._read = "", 0, 0

    def objects(self, file: BinaryIO) -> Iterator[dict[str, object]]:
        """Yield the objects of the list in a file, or the object if the file contains only one."""
        self._file = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        self._text, self._at = "", 0
        if self._next_character() == "[":
            self._at += 1
        while (character := self._next_character()) not in {"", "]"}:
            if character == ",":
                self._at += 1
                continue
            value = self._value()
            if isinstance(value, dict):
                yield cast("dict[str, object]", value)

    def _next_character(self) -> str:
        """Return the next character that is not whitespace, or an empty string at the end of the text."""
        while True:
            self._at = cast("re.Match[str]", _SPACE.match(self._text, self._at)).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _value(self) -> object:
        while True:
            try:
                value, self._at = JSON_DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as fault:
                cut = fault.pos >= len(self._text) - _NEAR_END or fault.msg.startswith("Unterminated string")
                if not cut or not self._read_more():
                    raise
            else:
                return value

    def _read_more(self) -> bool:
        rest = self._text[self._at :]
        limits = (("a conversation", len(rest), CONVERSATION_LIMIT), ("the export", self._read, EXPORT_LIMIT))
        for name, size, limit in limits:
            if size > limit:
                raise SourceUnreadable(self._path, f"{name} is larger than the limit of {limit >> 20} MB")
        piece = self._file.read(max(_PIECE, len(rest)))
        self._read += len(piece)
        self._text, self._at = rest + piece, 0
        return bool(piece)
