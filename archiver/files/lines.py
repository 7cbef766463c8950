"""Numbered lines of a transcript with their byte ranges, and the JSON records on each line.

Only a line feed ends a line, so numbers and offsets agree with other tools. A record that contains unescaped line feeds
is on several lines, which `split` joins.
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
"""Maximum bytes of a line. The content of a longer line is not read."""

JOINED_LINES = 20_000
"""Maximum number of lines of one record."""
JOINED_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a record on several lines."""

HEAD_BYTES = 256 * 1024
"""Bytes read from the start of a file to recognise its format. A line that begins in this range is read to its end."""
HEAD_LINES = 50
"""Maximum lines of the file head that are decoded."""

_BOM = b"\xef\xbb\xbf"
_PIECE = 1 << 18
_STRUCTURE = re.compile(rb'\\.|["{}\[\]]')
_RECORD_START = re.compile(rb'\{\s*"')
_SPACE = re.compile(r"\s*")
_SURROGATE = re.compile("[\ud800-\udfff]")

Record: TypeAlias = dict[str, Any]


PARSED: Final = "parsed"
"""Outcome of a line that contains a record with events. `Source.coverage` counts the lines by outcome."""
REPEATED: Final = "repeated"
"""Outcome of a line that repeats the record of another line, as in forks and resumed sessions."""


class Reason(StrEnum):
    """Reason why a line has no record."""

    BLANK = "blank"
    CUT_SHORT = "cut-short"
    NOT_JSON = "not-json"
    NOT_AN_OBJECT = "not-an-object"
    OVERSIZED = "oversized"
    TOO_DEEP = "too-deep"


class Line(NamedTuple):
    """Line of a transcript, with its 1-based number, or several lines with one record.

    The half-open byte range includes the line end, but `data` does not.
    """

    number: int
    start: int
    end: int
    data: bytes
    complete: bool
    """False for a last line without a line feed, which may be unfinished."""
    oversized: bool
    """True if the line exceeds the limit. `data` is then empty."""
    line_count: int = 1
    """Number of lines that the record is on."""

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.number + self.line_count - 1

    @property
    def numbers(self) -> range:
        """Numbers of all lines."""
        return range(self.number, self.number + self.line_count)


def split(file: BinaryIO, *, start_byte: int = 0, start_line: int = 1, limit: int = LIMIT) -> Iterator[Line]:
    """Yield the lines of a file, beginning at a byte offset. At most two lines of `limit` bytes are in memory.

    Lines are joined if one record is on all of them, up to `JOINED_LINES` lines with `JOINED_BYTES` bytes.
    """
    lines = _single_lines(file, start_byte, start_line, limit)
    line = next(lines, None)
    while line is not None:
        following = next(lines, None)
        if following is None or _begins_record(following) or not _may_continue(line.data):
            yield line
        else:
            parts, following = _continued(line, following, lines)
            yield from parts
        line = following


def _continued(line: Line, following: Line | None, lines: Iterator[Line]) -> tuple[list[Line], Line | None]:
    """Join a line with the lines on which its record continues. Return the lines read and the line after them."""
    nesting, parts, size = _Nesting(line.data), [line], len(line.data)
    while following is not None and not nesting.is_closed and not _begins_record(following):
        size += len(following.data)
        if len(parts) == JOINED_LINES or size > JOINED_BYTES:
            break
        nesting.add(following.data)
        parts.append(following)
        following = next(lines, None)
    return _joined(parts) if nesting.is_closed and len(parts) > 1 else parts, following


def _joined(parts: list[Line]) -> list[Line]:
    """Return these lines as one, or unchanged if they are no record."""
    data = b"\n".join(part.data for part in parts)
    whole = parts[0]._replace(data=data, end=parts[-1].end, complete=parts[-1].complete, line_count=len(parts))
    return [whole] if isinstance(decode(data), list) else parts


def _may_continue(data: bytes) -> bool:
    """Return whether a line may begin a record that continues on the next line."""
    if not data.startswith(b"{"):
        return False
    unescaped = data.replace(b"\\\\", b"")
    return (unescaped.count(b'"') - unescaped.count(b'\\"')) % 2 == 1 or not data.endswith(b"}")


def _begins_record(line: Line) -> bool:
    # Inside a string, the quotation mark would be escaped. Inside an object on several lines, the line is indented.
    return line.oversized or line.data.startswith(b'{"') or _RECORD_START.match(line.data) is not None


class _Nesting:
    """Nesting of the JSON text that was read so far."""

    def __init__(self, data: bytes) -> None:
        self._depth, self._in_string = 0, False
        self.add(data)

    @property
    def is_closed(self) -> bool:
        """True if no object, list or string is open."""
        return self._depth <= 0 and not self._in_string

    def add(self, data: bytes) -> None:
        for token in _STRUCTURE.finditer(data):
            mark = token[0]
            if mark == b'"':
                self._in_string = not self._in_string
            elif not self._in_string and len(mark) == 1:
                self._depth += 1 if mark in b"{[" else -1


def _single_lines(file: BinaryIO, start_byte: int, start_line: int, limit: int) -> Iterator[Line]:
    file.seek(start_byte)
    start, number = start_byte, start_line
    while data := file.readline(limit + 1):
        complete = data.endswith(b"\n")
        oversized = len(data) > limit and not complete
        end = start + len(data)
        if oversized:
            rest, complete = _skip_line(file)
            data, end = b"", end + rest
        elif start == 0:
            data = data.removeprefix(_BOM)
        yield Line(number, start, end, data.removesuffix(b"\n").removesuffix(b"\r"), complete, oversized)
        if not complete:
            return  # Bytes that the agent writes later belong to this line.
        start, number = end, number + 1


def _skip_line(file: BinaryIO) -> tuple[int, bool]:
    """Skip the rest of a line. Return its length in bytes, and whether the line has a line end."""
    size = 0
    while piece := file.readline(_PIECE):
        size += len(piece)
        if piece.endswith(b"\n"):
            return size, True
    return size, False


def blanked(length: int, *, opens: bool) -> bytes:
    """Return `length` bytes of whitespace that replace an erased line.

    The first byte is a tab if the line opened an exchange, otherwise a space.
    """
    return (b"\t" if opens else b" ").ljust(length)[:length]


def blanked_record(*, opens: bool) -> Record:
    """Return the record that replaces an erased record: `{"": 1}` if the record opened an exchange, otherwise `{}`."""
    return {"": 1} if opens else {}


def is_blanked(data: bytes) -> bool:
    """Return whether `blanked` or `blanked_record` replaced this line. Agents never write such lines."""
    return data == b"{}" or opens_blanked(data) or (data[:2] == b"  " and not data.strip(b" "))


def opens_blanked(data: bytes) -> bool:
    """Return whether this line is blanked and was the first line of an exchange."""
    return data == b'{"":1}' or (data[:2] == b"\t " and not data.strip())


def head(file: BinaryIO) -> bytes:
    """Return the first lines of a file, from which its format is recognised."""
    start = file.read(HEAD_BYTES)
    return start if start.endswith(b"\n") else start + file.readline(LIMIT)


def head_records(head: bytes) -> Iterator[Record]:
    """Yield the readable records in the first lines of a file."""
    lines = islice((line for line in split(io.BytesIO(head)) if line.data.strip()), HEAD_LINES)
    return (record for found in map(records, lines) if isinstance(found, list) for record in found)


def records(line: Line) -> list[Record] | Reason:
    """Return the objects on a line, or the reason why the line has none. A line can contain several joined objects."""
    return Reason.OVERSIZED if line.oversized else decode(line.data)


def decode(data: bytes) -> list[Record] | Reason:
    """Return the objects in a line's bytes, in order.

    Invalid JSON is repaired: lone surrogates and invalid UTF-8 become U+FFFD, NUL bytes are removed, and control
    characters are accepted. Complete objects that follow another object, even a truncated one, are recovered.
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
            values += _joined_tail(text, fault)
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
    """Decode consecutive JSON values from offset `at` on. Return them with the error that stopped decoding, or None."""
    values: list[object] = []
    while at < len(text):
        try:
            value, at = JSON_DECODER.raw_decode(text, at)
        except json.JSONDecodeError as fault:
            return values, fault
        values.append(value)
        at = cast("re.Match[str]", _SPACE.match(text, at)).end()
    return values, None


def _joined_tail(text: str, fault: json.JSONDecodeError) -> list[object]:
    """Return the complete JSON objects that follow a truncated record on the same line.

    If other text follows the last object, return an empty list, because the objects may be nested in the truncated
    record.
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
    # Python refuses to parse integers of thousands of digits, which JSON allows.
    return int(digits) if len(digits) < 400 else float(digits)


JSON_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=lambda _: None)
"""Tolerant decoder: it accepts control characters and integers of any length, and returns None for NaN and Infinity."""
