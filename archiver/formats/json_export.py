"""Exports: the conversations that a service hands out, as JSON files that may lie in a zip.

Nothing is unpacked: members are read where they are, as a stream, and nothing is held but one conversation. Names in a
zip are compared and never used as paths.
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

CONVERSATION_LIMIT = 64 * 1024 * 1024
"""Characters of the longest conversation that is read."""
EXPORT_LIMIT = 8 * 1024 * 1024 * 1024
"""Characters that are read of one export, so that a zip that unpacks without end comes to one."""
COUNT_LIMIT = 500_000
"""Conversations that are read of one export."""

_MEMBER = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json")
_SPACE = re.compile(r"\s*")
_PIECE = 1 << 20
_HEAD = 1 << 20
_NEAR_END = 16
"""Characters before the end of what was read in which a fault may come from the cut alone."""
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)


def head(path: Path) -> bytes:
    """The beginning of the first conversations of an export, empty where the file is none; raises `OSError`."""
    try:
        with _files(path) as files:
            for file in files:
                return file.read(_HEAD)
    except _ZIP_FAULTS:
        pass
    return b""


def conversations(path: Path) -> Iterator[dict[str, object]]:
    """Every conversation of an export, one at a time; raises `SourceUnreadable`, after those before the fault."""
    try:
        with _files(path) as files:
            text = _Window(path)
            for file in files:
                yield from text.elements(file)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None
    except RecursionError:
        raise SourceUnreadable(path, "nested too deeply to be an export") from None
    except _ZIP_FAULTS as fault:
        raise SourceUnreadable(path, f"damaged: {fault}", hint="Ask the service for the export again.") from None


@contextmanager
def _files(path: Path) -> Generator[Iterator[BinaryIO]]:
    if path.suffix.lower() != ".zip":
        with path.open("rb") as file:
            yield iter((file,))
        return
    with zipfile.ZipFile(path) as pack:
        names = sorted(name for name in pack.namelist() if _MEMBER.search(name) and name.endswith(".json"))
        yield (cast("BinaryIO", pack.open(name)) for name in names)


class _Window:
    """The part of an export that is being read, as text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text, self._at, self._read, self._count = "", 0, 0, 0

    def elements(self, file: BinaryIO) -> Iterator[dict[str, object]]:
        """The objects of the list that a file holds, or the one object that it is."""
        self._file = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        self._text, self._at = "", 0
        if self._next() == "[":
            self._at += 1
        while self._next() not in {"", "]"}:
            if self._text[self._at] == ",":
                self._at += 1
                continue
            value = self._value()
            self._count += 1
            if self._count > COUNT_LIMIT:
                raise SourceUnreadable(self._path, f"more than {COUNT_LIMIT} conversations")
            if isinstance(value, dict):
                yield cast("dict[str, object]", value)

    def _next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> object:
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as fault:
                cut = fault.pos >= len(self._text) - _NEAR_END or fault.msg.startswith("Unterminated string")
                if not cut or not self._more():
                    raise
            else:
                return value

    def _more(self) -> bool:
        kept = self._text[self._at :]
        if len(kept) > CONVERSATION_LIMIT or self._read > EXPORT_LIMIT:
            limit = EXPORT_LIMIT if self._read > EXPORT_LIMIT else CONVERSATION_LIMIT
            raise SourceUnreadable(self._path, f"larger than the {limit >> 20} MB that are read")
        piece = self._file.read(max(_PIECE, len(kept)))
        self._read += len(piece)
        self._text, self._at = kept + piece, 0
        return bool(piece)


def _integer(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits, which JSON allows.
    return int(digits) if len(digits) < 400 else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
