"""Rows read from a database file's pages, which SQLite itself cannot reach (https://sqlite.org/fileformat2.html)."""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from .database import PAGE, Row, Value

_USABLE: Final = PAGE - 8
"""Bytes of a page without its checksum."""
_TABLE_LEAF: Final = 13
_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer, by serial type."""


class _Pages:
    """Pages of a database file, each with the last state in its write-ahead log."""

    def __init__(self, file: BinaryIO, log: bytes) -> None:
        self._file, self.size = file, file.seek(0, os.SEEK_END)
        self._newer = dict[int, bytes]()
        current = {log[16:24], log[40:48]}
        """Salts of the log's header and of its first frame; others belong to frames that were written back before."""
        for start in range(_LOG_HEADER, len(log) - _FRAME_HEADER, _FRAME_HEADER + PAGE):
            if log[start + 8 : start + 16] in current:
                number = int.from_bytes(log[start : start + 4], "big")
                # The last frame may be incomplete.
                self._newer[number] = log[start + _FRAME_HEADER : start + _FRAME_HEADER + PAGE]
        self.size += len(log)

    def numbers(self) -> Iterator[int]:
        last = -(-self._file.seek(0, os.SEEK_END) // PAGE)
        yield from range(1, last + 1)
        yield from sorted(number for number in self._newer if number > last)

    def load(self, number: int) -> bytes:
        """Return a page, counted from 1; zeros where there is none."""
        self._file.seek(max(0, number - 1) * PAGE)
        newer = self._newer.get(number, b"")
        return newer + self._file.read(PAGE).ljust(PAGE, b"\0")[len(newer) :]


def leaf_rows(path: Path | None, log: Path) -> Iterator[tuple[int, Row]]:
    """Yield (row id, columns) of every row on a table's leaf page, whichever table; what cannot be decoded is left out.

    Pages are read as the write-ahead log has them, also from its frames behind a damaged one, which SQLite drops.
    Without `path` only those in the log are read. Checksums are not compared: the caller verifies each row by its
    content.
    """
    with path.open("rb") if path else BytesIO() as file:
        pages = _Pages(file, log.read_bytes() if log.exists() else b"")
        for number in pages.numbers():
            page = pages.load(number)
            if page[0] == _TABLE_LEAF:
                yield from _rows(pages, page)


def _rows(pages: _Pages, page: bytes) -> Iterator[tuple[int, Row]]:
    (count,) = struct.unpack_from(">H", page, 3)
    for number in range(min(count, PAGE // 4)):
        with suppress(IndexError, struct.error, UnicodeDecodeError):
            (at,) = struct.unpack_from(">H", page, 8 + 2 * number)
            size, at = _varint(page, at)
            key, at = _varint(page, at)
            yield key, _columns(_payload(pages, page, at, size))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it."""
    value = 0
    for byte in range(9):
        part = data[at + byte]
        value = value << 8 | part if byte == 8 else value << 7 | part & 0x7F
        if part < 0x80 or byte == 8:
            return value, at + byte + 1
    raise IndexError(at)


def _payload(pages: _Pages, page: bytes, at: int, size: int) -> bytes:
    """Return a cell's payload, with what is on its overflow pages."""
    if size <= _USABLE - 35:
        return page[at : at + size]
    least = (_USABLE - 12) * 32 // 255 - 23
    local = least + (size - least) % (_USABLE - 4)
    local = local if local <= _USABLE - 35 else least
    payload, place = bytearray(page[at : at + local]), page[at + local : at + local + 4]
    while len(payload) < min(size, pages.size):
        overflow = pages.load(int.from_bytes(place, "big"))
        place = overflow[:4]
        payload += overflow[4:_USABLE]
    return bytes(payload[:size])


def _columns(payload: bytes) -> Row:
    end, at = _varint(payload, 0)
    body, row = end, list[Value]()
    while at < end:
        kind, at = _varint(payload, at)
        if kind >= 12:
            size = (kind - 12) // 2
            value = payload[body : body + size]
            if len(value) < size:
                raise IndexError(body)
            row.append(value.decode() if kind % 2 else value)
            body += size
        elif kind in _INTEGERS:
            row.append(int.from_bytes(payload[body : body + _INTEGERS[kind]], "big", signed=True))
            body += _INTEGERS[kind]
        elif kind == 7:
            row.append(struct.unpack_from(">d", payload, body)[0])
            body += 8
        else:
            row.append({8: 0, 9: 1}.get(kind))
    return tuple(row)
