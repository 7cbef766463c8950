"""Overlapping windows of long text, cut at the end of a paragraph, a line or a sentence."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SIZE: Final = 1_000
"""Approximate characters of a window."""
OVERLAP: Final = 200
"""Maximum characters that a window repeats from the previous one.

The overlap ensures that each sentence is whole in at least one window.
"""
_LATE: Final = 0.5
"""Minimum share of the window size at which a window may end.

If a paragraph ends after this share of the window, the window ends there. Otherwise it ends at the last line that fits.
Lines longer than this share are split into sentences. Otherwise, a heading before such a line would become a window of
its own.
"""
_SENTENCE: Final = re.compile(r".+?(?:[.!?\u2026]\s+|[\u3002\uff01\uff1f]|$)", re.DOTALL)


class DocumentWindow(NamedTuple):
    """Range of text with its first and last line, 1-based and inclusive."""

    text: str
    start_line: int
    end_line: int


class _Row(NamedTuple):
    line: int
    text: str
    complete: bool = True
    """False for a sentence of a long line that continues in the next row."""


def windows(text: str, first_line: int = 1, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[DocumentWindow]:
    """Yield overlapping windows of a text.

    Every non-whitespace character is in at least one window. Text that consists of whitespace yields no window.
    """
    longest = int(_LATE * size)
    rows = [
        row for line, whole in enumerate(text.split("\n"), first_line) for row in _rows(line, whole, longest, overlap)
    ]
    start = 0
    while start < len(rows):
        end = _end(rows, start, size)
        if (window := _window(rows[start:end])) is not None:
            yield window
        if end == len(rows):
            return
        # The next window must contain at least one new row.
        start = next(index for index in range(_back(rows, end, overlap), end + 1) if _end(rows, index, size) > end)


def _rows(line: int, text: str, longest: int, overlap: int) -> Iterator[_Row]:
    """Yield a line, or the sentences of a line with more than `longest` characters.

    A sentence that exceeds the overlap is split, at spaces if possible.
    """
    if len(text) <= longest:
        yield _Row(line, text)
        return
    piece = overlap - 1 if overlap > 1 else longest
    for sentence in _SENTENCE.findall(text):
        rest: str = sentence
        while len(rest) > piece:
            cut = rest.rfind(" ", piece // 2, piece) + 1 or piece
            yield _Row(line, rest[:cut], complete=False)
            rest = rest[cut:]
        yield _Row(line, rest, complete=False)
    yield _Row(line, "")


def _end(rows: Sequence[_Row], start: int, size: int) -> int:
    """Return the index after the last row of the window that begins at row `start`."""
    length, end = 0, start
    while end < len(rows) and (end == start or length + len(rows[end].text) <= size):
        length += len(rows[end].text) + 1
        end += 1
    if end == len(rows):
        return end
    left = length
    for index in range(end - 1, start, -1):
        left -= len(rows[index].text) + 1
        if left < _LATE * size:
            break
        if not rows[index].text.strip():
            return index
    return end


def _back(rows: Sequence[_Row], end: int, overlap: int) -> int:
    """Return the index of the earliest row at which the next window may begin, limited by the overlap."""
    length, start = 0, end
    while start and length + len(rows[start - 1].text) < overlap:
        start -= 1
        length += len(rows[start].text) + 1
    return start


def _window(rows: Sequence[_Row]) -> DocumentWindow | None:
    full = [index for index, row in enumerate(rows) if row.text.strip()]
    if not full:
        return None
    kept = rows[full[0] : full[-1] + 1]
    text = "".join(row.text + ("\n" if row.complete else "") for row in kept)
    return DocumentWindow(text.rstrip(), kept[0].line, kept[-1].line)
