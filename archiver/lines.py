"""Files as numbered lines with their byte ranges, their JSON records, and functions that clip text.

Only a line feed ends a line, so numbers and offsets agree with other tools. A record that contains unescaped line
feeds is on several lines, which `split` joins. A JSON document that contains a conversation is converted to one
record per line, and a file that an agent compressed with zstd is decompressed.
"""

import io
import json
import logging
import os
import re
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeAlias, cast

import orjson

from ..core.text import without_ansi

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LINE_LIMIT = 32 * 1024 * 1024
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
_MEDIA_LABEL = re.compile(r"\[(?:image|document|application|text)(?:/[\w.+-]+)?(?:, \d+ KB)?\]")

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


def split(file: BinaryIO, *, start_byte: int = 0, start_line: int = 1, limit: int = LINE_LIMIT) -> Iterator[Line]:
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
    joined = parts[0]._replace(data=data, end=parts[-1].end, complete=parts[-1].complete, line_count=len(parts))
    return [joined] if isinstance(decode(data), list) else parts


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
            skipped, complete = _skip_line(file)
            data, end = b"", end + skipped
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
    return start if start.endswith(b"\n") else start + file.readline(LINE_LIMIT)


def head_records(head: bytes) -> Iterator[Record]:
    """Yield the readable records in the first lines of a file."""
    lines = islice((line for line in split(io.BytesIO(head)) if line.data.strip()), HEAD_LINES)
    return (record for on_line in map(records, lines) if isinstance(on_line, list) for record in on_line)


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


MARGIN: Final = 1000
"""Extra characters that `clip` keeps on each side of a cut, so that redaction sees every secret completely."""
CUT: Final = "\0"
"""Character before and after the number in a clip marker. `clean` removes this character from all other text."""

GAP: Final = re.compile(r"\[… \d+ characters left out …\]")
"""Pattern for the line that replaces the middle of a shortened text."""

# The marker has line ends on both sides, because patterns recognise many secrets by the character after them.
_CUT = re.compile(rf"\n{CUT}(\d{{1,15}}){CUT}\n?")
_PLAN = re.compile(r"\s*implement the following plan:?\s*", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,3}\s+(.+?)\s*$", re.MULTILINE)


def clean(text: str) -> str:
    """Return the text without ANSI sequences, NUL characters and surrounding whitespace."""
    return without_ansi(text).replace("\0", "").strip()


def clip(text: str, limit: int | None) -> str:
    """Return the text, shortened to its head and tail if it has more than `limit` characters.

    With `None`, the length is not limited. The head and the tail keep `MARGIN` extra characters, because redaction
    cannot recognise a secret that was cut. Call `trim` after redaction to remove the extra characters.
    """
    if limit is None or len(text) <= limit:
        return text
    if len(text) <= limit + 2 * MARGIN:
        return f"{text}\n{CUT}{limit}{CUT}"
    head, tail = limit * 2 // 3 + MARGIN, limit // 3 + MARGIN
    return f"{text[:head]}\n{CUT}{len(text) - head - tail}{CUT}\n{text[-tail:]}"


def trim(text: str) -> str:
    """Remove the extra characters from a text that `clip` shortened. Return any other text unchanged."""
    at = text.find(CUT)
    cut = _CUT.match(text, at - 1) if at > 0 else None
    if cut is None:
        return text
    head, tail, number = text[: cut.start()], text[cut.end() :], int(cut[1])
    if tail:
        return _gapped(head[:-MARGIN], number + 2 * MARGIN, tail[MARGIN:])
    limit = number
    first, last = limit * 2 // 3, limit // 3
    return head if len(head) <= limit else _gapped(head[:first], len(head) - first - last, head[-last:])


def _gapped(head: str, left_out: int, tail: str) -> str:
    return f"{head.rstrip()}\n[… {left_out} characters left out …]\n{tail.lstrip()}"


def one_line(text: str, limit: int | None = None) -> str:
    """Return the text with whitespace collapsed to single spaces, truncated to `limit` characters."""
    line = " ".join(text.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plan_in(prompt: str) -> str | None:
    """Return the Markdown plan that follows `Implement the following plan:` at the start of a prompt, or None."""
    opening = _PLAN.match(prompt)
    return prompt[opening.end() :] if opening else None


def heading_of(markdown: str) -> re.Match[str] | None:
    """Return the match of the first heading of level 1 to 3. Group 1 is the heading text."""
    return _HEADING.search(markdown)


DOCUMENT_LIMIT = 256 * 1024 * 1024
"""Maximum bytes of a document that is parsed. Larger documents are only copied."""


def document_lines(file: BinaryIO) -> BinaryIO:
    """Convert a JSON document to JSON lines: first the fields of the document, then one line per record.

    Records are the objects in the document's lists. For example, `{"id": 1, "turns": [{"a": 2}, {"a": 3}]}` becomes
    three lines: `{"id":1}`, `{"a":2}` and `{"a":3}`.

    A document that is itself a list becomes one line per element. A damaged or oversized document becomes one line
    without a line end, like a line that is still being written.
    """
    with file:
        data = file.read(DOCUMENT_LIMIT + 1)
    if len(data) > DOCUMENT_LIMIT:
        return io.BytesIO(b"{")
    try:
        return io.BytesIO(b"".join(map(line, _records(_loaded(data)))))
    except (ValueError, RecursionError):
        return io.BytesIO(data.replace(b"\n", b" "))


def without_records(data: bytes, erased: Mapping[int, bool]) -> bytes:
    """Return a JSON document in which blank records replace the records on the erased lines.

    The lines are numbered as in `document_lines`. `erased` maps each erased line to True if an exchange began on it.
    """
    number = 1

    def replaced(value: object) -> object:
        nonlocal number
        number += 1
        blank = number - 1 in erased and value != {"": 1}
        return blanked_record(opens=erased[number - 1]) if blank else value

    value = _loaded(data)
    if isinstance(value, list):
        return line([replaced(each) for each in cast("list[object]", value)])
    if not isinstance(value, dict):
        return b"{}"
    document = cast("dict[str, object]", value)
    lists = {name: cast("list[object]", each) for name, each in document.items() if _contains_records(each)}
    number += 1
    emptied = {name: [replaced(each) for each in records] for name, records in lists.items()}
    return line(emptied if 1 in erased else {name: emptied.get(name, each) for name, each in document.items()})


def line(value: object) -> bytes:
    """Return a JSON value on one line, with a line end. Lone surrogates stay escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # orjson rejects lone surrogates, deep nesting and large integers.
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _loaded(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data.decode("utf-8-sig", "replace"), strict=False)


def _records(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from cast("list[object]", value)
    elif isinstance(value, dict):
        document = cast("dict[str, object]", value)
        lists = {name: each for name, each in document.items() if _contains_records(each)}
        yield {name: each for name, each in document.items() if name not in lists}
        for elements in lists.values():
            yield from cast("list[object]", elements)
    else:
        yield value


def _contains_records(value: object) -> bool:
    return isinstance(value, list) and isinstance(next(iter(cast("list[object]", value)), None), dict)


def is_media_label(line: str) -> bool:
    """Return whether a line is a label of a picture or a file, such as `[image/png, 12 KB]`."""
    return _MEDIA_LABEL.fullmatch(line.strip()) is not None


_LEVEL: Final = 19
_FRAME_HEADER: Final = struct.Struct("<II")
_SKIPPABLE: Final = 0x184D2A50
"""Magic bytes of a skippable frame (RFC 8878, 3.1.2)."""
_log = logging.getLogger(__name__)


def compress_lines(lines: Iterable[bytes], target: BinaryIO, size: int) -> None:
    """Compress lines into an empty file. Pad the file with a skippable frame to at least `size` bytes."""
    with zstd.ZstdFile(target, "wb", level=_LEVEL) as packed:
        packed.writelines(lines)
    missing = size - target.tell()
    if missing > 0:
        padding = max(0, missing - _FRAME_HEADER.size)
        target.write(_FRAME_HEADER.pack(_SKIPPABLE, padding) + bytes(padding))


class DecompressedFile(io.RawIOBase):
    """Decompressed content of a file. If the file is damaged, the content ends at the first unreadable byte."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._packed, self._path = packed, path
        self._plain = zstd.ZstdFile(packed)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read decompressed bytes into a buffer, and return the number of bytes."""
        try:
            return self._plain.readinto(buffer)
        except (EOFError, zstd.ZstdError) as error:
            _log.warning("%s is damaged after %d bytes: %s", os.fsencode(self._path), self._plain.tell(), error)
            return 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset in the decompressed content."""
        try:
            return self._plain.seek(offset, whence)
        except (EOFError, zstd.ZstdError):
            return self._plain.tell()

    def tell(self) -> int:
        """Return the current offset in the decompressed content."""
        return self._plain.tell()

    def close(self) -> None:
        """Close this file and the compressed file."""
        if not self.closed:
            self._plain.close()
            self._packed.close()
        super().close()


SUFFIX: Final = ".zst"
DOCUMENT: Final = ".json"
BUFFER: Final = 1 << 18
"""Size of the read buffer in bytes. Python's default of 8 KiB more than doubles the time to split long lines."""


def opened(path: Path) -> BinaryIO:
    """Open a file as a stream of lines. Raises `OSError`.

    A file with the suffix `.zst` is decompressed, up to the first unreadable byte. A file with the suffix `.json` is
    converted to one record per line.
    """
    return as_lines(path.open("rb", BUFFER), path)


def as_lines(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a stream of lines for an open file, converted by the suffix of its path as in `opened`."""
    if path.suffix == DOCUMENT:
        return document_lines(file)
    if path.suffix == SUFFIX:
        return io.BufferedReader(DecompressedFile(file, path))
    return file


_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of a file to hash. Hashing a file of this size takes about 1 ms."""


def content_hash(file: str, key: bytes) -> bytes | None:
    """Return the keyed hash of the content of `file`, or None if the file is too large or cannot be read.

    If the file does not exist, return empty bytes.
    """
    try:
        state = Path(file).stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > _BYTES_MAX:
            return None
        return blake2b(Path(file).read_bytes(), key=key, digest_size=16).digest()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError):
        return None
