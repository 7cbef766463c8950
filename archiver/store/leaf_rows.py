"""Rows read from a database file's pages, which SQLite itself cannot reach (https://sqlite.org/fileformat2.html)."""

import mmap
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from .database import Row, Value

_PAGE: Final = 4_096
_USABLE: Final = _PAGE - 8
"""Bytes of a page without its checksum."""
_TABLE_LEAF: Final = 13
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer, by serial type."""


def leaf_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield (row id, columns) of every row on a table's leaf page, whichever table; what cannot be decoded is left out.

    Checksums are not compared: the caller verifies each row by its content.
    """
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield from _rows(data)


def _rows(data: mmap.mmap) -> Iterator[tuple[int, Row]]:
    for start in range(0, len(data) - _PAGE + 1, _PAGE):
        page = data[start : start + _PAGE]
        if page[0] != _TABLE_LEAF:
            continue
        (count,) = struct.unpack_from(">H", page, 3)
        for number in range(min(count, _PAGE // 4)):
            with suppress(IndexError, struct.error, UnicodeDecodeError):
                (at,) = struct.unpack_from(">H", page, 8 + 2 * number)
                size, at = _varint(page, at)
                key, at = _varint(page, at)
                yield key, _columns(_payload(data, page, at, size))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it."""
    value = 0
    for byte in range(9):
        part = data[at + byte]
        value = value << 8 | part if byte == 8 else value << 7 | part & 0x7F
        if part < 0x80 or byte == 8:
            return value, at + byte + 1
    raise IndexError(at)


def _payload(data: mmap.mmap, page: bytes, at: int, size: int) -> bytes:
    """Return a cell's payload, with what is on its overflow pages."""
    if size <= _USABLE - 35:
        return page[at : at + size]
    least = (_USABLE - 12) * 32 // 255 - 23
    local = least + (size - least) % (_USABLE - 4)
    local = local if local <= _USABLE - 35 else least
    payload, place = bytearray(page[at : at + local]), page[at + local : at + local + 4]
    while len(payload) < min(size, len(data)):
        start = (int.from_bytes(place, "big") - 1) * _PAGE
        if start < 0 or start >= len(data):
            raise IndexError(start)
        place = data[start : start + 4]
        payload += data[start + 4 : start + _USABLE]
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
