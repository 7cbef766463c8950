"""Masker: lines of a copy without secrets and private spans, byte for byte as long as they were.

A line that was JSON stays JSON, so that every offset, number of a line and record stays where it was. What was masked
begins with its placeholder where there is room for it; the rest are asterisks.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import orjson

from ..parse.lines import LIMIT
from ..redaction import Redactor
from ..redaction.redactor import PASSES
from . import private
from .views import Span, View

_Masked = tuple[int, int, int, bytes]
"""Start and end in the line, how far the mark is to be preferred (less is more), and the mark."""

_LITERAL = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("?)', re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}
_UNSEEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00\x1b]")
_JOINTS: Final[tuple[tuple[re.Pattern[bytes], Callable[[re.Match[bytes]], bytes]], ...]] = (
    (re.compile(rb"(?!)"), lambda _: b""),  # as it stands
    (re.compile(rb'"[ \t]*,[ \t]*"'), lambda _: b" "),  # arguments of a command
    (re.compile(rb'"[ \t]*[,:][ \t]*"'), lambda joint: b": " if b":" in joint[0] else b"\n"),  # settings, line by line
)
"""What stands between strings, and as what it is seen, so that rules for commands and settings find what they know."""
_KEY_END = re.compile(rb"[ \t\r\n]*:")
_OBJECT = re.compile(rb"[ \t\r\n]*[{\[]")
_PRIVATE: Final = private.PLACEHOLDER.encode()
_PERSONS = re.compile(rb'(?i)"(?:user|human|userMessage|user[_.](?:message|input|prompt))')
_RESULT = re.compile(rb'"(?:tool_result|toolUseResult|tool_use_id|functionResponse|function_call_output)"')
_MASK = re.compile(rb"\[(?:secret:[a-z0-9-]{1,64}:[0-9a-f]{6}|private)\]\**|\*+")
_DEPTH: Final = 4
"""How many texts within texts are looked into."""
_LEAST: Final = 9
"""Bytes of the shortest text that holds anything to mask by itself."""


class Masker:
    """Masks with the key of one archive. Masking twice changes nothing; who reads it finds the same placeholders."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """The rest of a file, masked line by line. A line that is too long to be read is masked as a whole."""
        while line := file.readline(LIMIT):
            if len(line) == LIMIT and not line.endswith(b"\n"):
                yield from _blacked(line, file)
            else:
                yield self.masked(line)

    def masked(self, text: bytes) -> bytes:
        """A line, or a document, masked. What may be the first half of a secret, at its very end, is masked too."""
        whole = text.endswith(b"\n") or is_json(text)
        for _ in range(PASSES):
            if not self._may_change(text) and whole:
                return text
            found = self._found(text, whole=whole)
            made = _over(text, found)
            if made == text:
                return text
            text = made
        return re.sub(rb"[^\r\n]", b"*", text)

    def _may_change(self, text: bytes) -> bool:
        """Whether there is a sign of anything, also where escapes hide or glue what is said."""
        if b"\\u00" in text or b"\0" in text or b"\x1b" in text:
            return True
        for escape in (b"\\n", b"\\t", b"\\r"):
            text = text.replace(escape, b"\n")
        return self._redactor.has_sign(text)

    def _found(self, text: bytes, *, whole: bool) -> list[_Masked]:
        found: list[_Masked] = []
        typed = _PERSONS.search(text) is not None and _RESULT.search(text) is None
        self._in_json(View(text), found, _DEPTH, typed=typed)
        if not is_json(text):
            self._in_text(View(text), found)
        if not whole:
            found.append((_loose_end(text), len(text), 2, b""))
        return found

    def _in_json(self, view: View, found: list[_Masked], depth: int, *, typed: bool) -> None:
        """What strings of JSON hold, each by itself, and what they hold together with their names and neighbours."""
        plain: list[Span] = []
        left_open: dict[bytes, int] = {}
        key = b""
        for literal in _LITERAL.finditer(view.text):
            span, told = literal.span(1), _read(literal[1])
            is_key = _KEY_END.match(view.text, literal.end()) is not None
            key = told if is_key else key
            if depth and not is_key and _OBJECT.match(told) and b'"' in told:
                self._in_inner(view, span, told, found, depth - 1, typed=typed)
                continue
            plain.append(span)
            before = 0 if is_key else left_open.get(key, 0)
            if before or (len(told) >= _LEAST and self._tells(told)):
                seen = view.piece(span, _ESCAPE, _unescaped)
                left_open[key] = self._in_text(seen, found, before, typed=typed and not is_key)
        self._together(view, plain, found)

    def _in_inner(self, view: View, span: Span, told: bytes, found: list[_Masked], depth: int, *, typed: bool) -> None:
        """JSON within a string of JSON."""
        if self._may_change(told):
            any_: list[_Masked] = []
            self._in_json(View(told), any_, depth, typed=typed)
            if any_:
                self._in_json(view.piece(span, _ESCAPE, _unescaped), found, depth, typed=typed)

    def _tells(self, text: bytes) -> bool:
        """Whether there is something to mask in a text. The way back to where it stands costs more than to ask."""
        return self._redactor.has_sign(text) and (
            bool(self._redactor.spans(text)) or b"\x1b" in text or b"\0" in text or private.may_hold_tag(text)
        )

    def _in_text(self, view: View, found: list[_Masked], depth: int = 0, *, typed: bool = False) -> int:
        """What a text holds, as it stands and as a terminal shows it.

        Returns how many private spans of a person are open at its end, as `depth` are before it.
        """
        views = [view]
        if b"\x1b" in view.text or b"\0" in view.text:
            views.append(view.piece((0, len(view.text)), _UNSEEN, _nothing))
        for each in views:
            for start, end, mark in self._redactor.spans(each.text):
                found.append((*each.origin((start, end)), 0, mark))
        text = view.text.decode(errors="surrogateescape")
        for span in private.spans(text, depth, typed=typed):
            start, end = (len(text[:place].encode(errors="surrogateescape")) for place in span)
            found.append((*view.origin((start, end)), 0, _PRIVATE))
        return private.typed(text, depth)[1] if typed else 0

    def _together(self, view: View, plain: list[Span], found: list[_Masked]) -> None:
        """Secrets that only their surroundings give away, as far as they stand within strings."""
        for joint, between in _JOINTS:
            if not self._redactor.spans(joint.sub(between, view.text)):
                continue
            seen = view.piece((0, len(view.text)), joint, between)
            for start, end, mark in self._redactor.spans(seen.text):
                parts = _within(view.text, seen.before((start, end)), plain)
                found += ((*view.origin(part), 1, mark) for part in parts)


def is_json(text: bytes) -> bool:
    """Whether a line, or a document, is what JSON allows."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def is_masked_from(ours: BinaryIO, theirs: BinaryIO, *, unfinished: bool = False) -> bool:
    """Whether one file is the beginning of another, but for what was masked in it, or erased.

    With `unfinished`, its last line may have any content: it was still being written, and is written anew.
    """
    while mine := ours.readline(LIMIT):
        other = theirs.read(len(mine))
        if len(mine) != len(other):
            return False
        if mine != other and mine.strip() and _without_masks(mine, mine) != _without_masks(mine, other):
            return unfinished and not mine.endswith(b"\n")
    return True


def _without_masks(mine: bytes, other: bytes) -> bytes:
    """One of two lines, without what stands where the first is masked."""
    kept, done = list[bytes](), 0
    for mask in _MASK.finditer(mine):
        kept.append(other[done : mask.start()])
        done = mask.end()
    return b"\0".join((*kept, other[done:]))


def _over(text: bytes, found: list[_Masked]) -> bytes:
    """The text with marks in place of what was found; where finds overlap, they are one."""
    merged: list[_Masked] = []
    for start, end, rank, mark in sorted(found):
        if merged and start < merged[-1][1]:
            first, until, best, kept = merged[-1]
            merged[-1] = (first, max(until, end), min(best, rank), mark if rank < best else kept)
        elif start < end:
            merged.append((start, end, rank, mark))
    pieces: list[bytes] = []
    done = 0
    for start, end, _, mark in merged:
        room = end - start
        pieces += (text[done:start], (mark if len(mark) <= room else b"").ljust(room, b"*"))
        done = end
    return b"".join((*pieces, text[done:]))


def _within(text: bytes, span: Span, plain: list[Span]) -> Iterator[Span]:
    """The parts of a span that lie in strings, without half an escape."""
    start, end = span
    for first, last in plain[max(0, bisect_right(plain, span) - 1) :]:
        if first >= end:
            break
        low, high = max(first, start), min(last, end)
        if b"\\" in text[first:last]:
            for escape in _ESCAPE.finditer(text, first, last):
                low = escape.start() if escape.start() < low < escape.end() else low
                high = escape.end() if escape.start() < high < escape.end() else high
        if low < high:
            yield low, high


def _loose_end(text: bytes) -> int:
    """Where a text that breaks off may begin to say what cannot be known yet: its last string, or what follows it."""
    end = 0
    for literal in _LITERAL.finditer(text):
        end = literal.end() if literal[2] else literal.start(1)
    return end


def _read(literal: bytes) -> bytes:
    """What a string of JSON says, quickly."""
    if b"\\" not in literal:
        return literal
    try:
        told: str = orjson.loads(b'"%b"' % literal)
        return told.encode()
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return _ESCAPE.sub(_unescaped, literal)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    told = escape[0]
    if told[1:2] == b"u" and len(told) > 2:
        units = [int(unit, 16) for unit in told[2:].split(b"\\u")]
        character = chr(units[0]) if len(units) == 1 else chr(0x10000 + (units[0] - 0xD800 << 10) + units[1] - 0xDC00)
        return character.encode(errors="surrogatepass")
    return _SHORT.get(told[1:], told[1:])


def _nothing(_: re.Match[bytes]) -> bytes:
    return b""


def _blacked(line: bytes, file: BinaryIO) -> Iterator[bytes]:
    while line:
        ended = line.endswith(b"\n")
        yield b"*" * (len(line) - ended) + b"\n" * ended
        line = b"" if ended else file.readline(LIMIT)
