"""Lines: a transcript as numbered stretches of bytes, and the records that stand in each.

Lines end at `\\n` bytes and nowhere else, so numbers and offsets agree with every other tool that counts lines.
"""

import io
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias, cast

import orjson

LIMIT = 32 * 1024 * 1024
"""Bytes of the longest line that is read; of a longer one only the offsets are known."""

HEAD_BYTES = 256 * 1024
HEAD_LINES = 50
"""How much of a file tells what it is; a line that begins in these bytes is read to its end."""

_BOM = b"\xef\xbb\xbf"
_PIECE = 1 << 18
_SPACE = re.compile(r"\s*")
_SURROGATE = re.compile("[\ud800-\udfff]")

Record: TypeAlias = dict[str, Any]


PARSED: Final = "parsed"
REPEATED: Final = "repeated"
"""Outcome of a line that this or another file brought before, as forks and resumed sessions do."""


class Reason(StrEnum):
    """Why a line holds no record."""

    BLANK = "blank"
    CUT_SHORT = "cut-short"
    NOT_JSON = "not-json"
    NOT_AN_OBJECT = "not-an-object"
    OVERSIZED = "oversized"
    TOO_DEEP = "too-deep"


class Line(NamedTuple):
    """One line: its 1-based number, its half-open byte range with the line end, and its content without it."""

    number: int
    start: int
    end: int
    data: bytes
    complete: bool
    """False for a last line without `\\n`, which may still be being written."""
    oversized: bool
    """True when the line is longer than the limit; `data` is empty then."""


def split(file: BinaryIO, *, start_byte: int = 0, start_line: int = 1, limit: int = LIMIT) -> Iterator[Line]:
    """The lines of a file from a byte offset on, holding at most one line of `limit` bytes and what is read ahead."""
    file.seek(start_byte)
    start, number = start_byte, start_line
    while data := file.readline(limit + 1):
        complete = data.endswith(b"\n")
        oversized = len(data) > limit and not complete
        end = start + len(data)
        if oversized:
            rest, complete = _passed(file)
            data, end = b"", end + rest
        elif start == 0:
            data = data.removeprefix(_BOM)
        yield Line(number, start, end, data.removesuffix(b"\n").removesuffix(b"\r"), complete, oversized)
        if not complete:
            return  # what its agent writes meanwhile is the rest of this line
        start, number = end, number + 1


def _passed(file: BinaryIO) -> tuple[int, bool]:
    """Pass over the rest of a line: how many bytes it had, and whether it has an end."""
    size = 0
    while piece := file.readline(_PIECE):
        size += len(piece)
        if piece.endswith(b"\n"):
            return size, True
    return size, False


def blanked(length: int, *, opens: bool) -> bytes:
    """What stands where a line of this many bytes was erased; the first one of an exchange is told from the others."""
    return (b"\t" if opens else b" ").ljust(length)[:length]


def blanked_record(*, opens: bool) -> Record:
    """What stands in a document where a record was erased."""
    return {"": 1} if opens else {}


def is_blanked(data: bytes) -> bool:
    """Whether an erased line stood here: agents write no line of spaces, and no empty record."""
    return data == b"{}" or opens_blanked(data) or (data[:2] == b"  " and not data.strip(b" "))


def opens_blanked(data: bytes) -> bool:
    """Whether the first line of an erased exchange stood here."""
    return data == b'{"":1}' or (data[:2] == b"\t " and not data.strip())


def head(file: BinaryIO) -> bytes:
    """The first lines of a file, whole, as far as they tell what it is."""
    start = file.read(HEAD_BYTES)
    return start if start.endswith(b"\n") else start + file.readline(LIMIT)


def head_records(head: bytes) -> Iterator[Record]:
    """The records in the first lines of a file, as far as they can be read, each when it is asked for."""
    lines = io.BytesIO(head.removeprefix(_BOM))
    decoded = map(decode, islice((line for line in lines if line.strip()), HEAD_LINES))
    return (record for found in decoded if isinstance(found, list) for record in found)


def records(line: Line) -> list[Record] | Reason:
    """The objects on a line: one, several when objects are glued together, or the reason why there is none."""
    return Reason.OVERSIZED if line.oversized else decode(line.data)


def decode(data: bytes) -> list[Record] | Reason:
    """The objects in some bytes, in order.

    What strict JSON forbids is repaired: lone surrogates and invalid UTF-8 become U+FFFD, NUL bytes and control
    characters are tolerated, and a whole object glued to another one, or to a cut-off one, is recovered.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _recover(data)
    return [cast("Record", value)] if isinstance(value, dict) else Reason.NOT_AN_OBJECT


def _recover(data: bytes) -> list[Record] | Reason:
    text = data.replace(b"\0", b"").decode("utf-8", "replace").strip().lstrip("\ufeff")
    if not text:
        return Reason.BLANK
    try:
        values, fault = _values(text, 0)
        if fault is not None:
            values += _glued_tail(text, fault)
        repaired = [_repaired(value) for value in values]
    except RecursionError:
        return Reason.TOO_DEEP
    objects = [cast("Record", value) for value in repaired if isinstance(value, dict)]
    if objects:
        return objects
    if fault is None:
        return Reason.NOT_AN_OBJECT
    return Reason.CUT_SHORT if _is_cut(text, fault) else Reason.NOT_JSON


def _values(text: str, at: int) -> tuple[list[object], json.JSONDecodeError | None]:
    """Values that stand one after another, and the fault that ended them unless the text did."""
    values: list[object] = []
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as fault:
            return values, fault
        values.append(value)
        at = cast("re.Match[str]", _SPACE.match(text, at)).end()
    return values, None


def _glued_tail(text: str, fault: json.JSONDecodeError) -> list[object]:
    """Whole objects after a record that was cut off without a line end.

    They count only when they reach the end of the line: what a cut-off record contains is no record itself.
    """
    if _is_cut(text, fault):
        return []
    for at in (text.rfind('{"', 1, fault.pos + 2), text.find('{"', fault.pos)):
        if at >= 0:
            values, further = _values(text, at)
            if further is None:
                return values
    return []


def _is_cut(text: str, fault: json.JSONDecodeError) -> bool:
    return fault.pos >= len(text) or fault.msg.startswith("Unterminated string")


def _repaired(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_repaired(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in cast("dict[str, object]", value).items()}
    return value


def _integer(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits, which JSON allows.
    return int(digits) if len(digits) < 400 else float(digits)


def _no_constant(_: str) -> None:
    return None


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=_no_constant)
