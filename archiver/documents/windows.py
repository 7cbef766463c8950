"""Windows: long text in stretches that overlap, cut where a paragraph, a line or a sentence ends."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SIZE: Final = 1_000
"""Characters in a window, about."""
OVERLAP: Final = 200
"""Characters that a window repeats of the one before, at most, so that a sentence at a cut stands whole in one."""
_LATE: Final = 0.5
"""From which share of a window on the end of a paragraph is a better place to cut than the last line that fits.

Lines that are longer than this share are cut into sentences, so that no window is a heading alone.
"""
_SENTENCE: Final = re.compile(r".+?(?:[.!?\u2026]\s+|[\u3002\uff01\uff1f]|$)", re.DOTALL)


class Window(NamedTuple):
    """A stretch of text and the lines it stands on, 1-based and inclusive."""

    text: str
    start_line: int
    end_line: int


class _Row(NamedTuple):
    line: int
    text: str
    whole: bool = True
    """False for a sentence of a long line, which the next row continues."""


def windows(text: str, first_line: int = 1, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[Window]:
    """The text in windows; none where it is blank. Every character that is not blank stands in one at least."""
    longest = int(_LATE * size)
    rows = [
        row for line, told in enumerate(text.split("\n"), first_line) for row in _rows(line, told, longest, overlap)
    ]
    start = 0
    while start < len(rows):
        end = _end(rows, start, size)
        if (window := _window(rows[start:end])) is not None:
            yield window
        if end == len(rows):
            return
        # What is repeated must leave room for what comes next, or the next window would bring nothing new.
        start = next(place for place in range(_back(rows, end, overlap), end + 1) if _end(rows, place, size) > end)


def _rows(line: int, text: str, longest: int, overlap: int) -> Iterator[_Row]:
    """Yield a line, or the sentences of one with more than `longest` characters.

    A sentence that is too long to be repeated in an overlap is cut at blanks where there are some.
    """
    if len(text) <= longest:
        yield _Row(line, text)
        return
    piece = overlap - 1 if overlap > 1 else longest
    for sentence in _SENTENCE.findall(text):
        rest: str = sentence
        while len(rest) > piece:
            cut = rest.rfind(" ", piece // 2, piece) + 1 or piece
            yield _Row(line, rest[:cut], whole=False)
            rest = rest[cut:]
        yield _Row(line, rest, whole=False)
    yield _Row(line, "")


def _end(rows: Sequence[_Row], start: int, size: int) -> int:
    """The row after the last one that goes into the window which begins here."""
    length, end = 0, start
    while end < len(rows) and (end == start or length + len(rows[end].text) <= size):
        length += len(rows[end].text) + 1
        end += 1
    if end == len(rows):
        return end
    left = length
    for place in range(end - 1, start, -1):
        left -= len(rows[place].text) + 1
        if left < _LATE * size:
            break
        if not rows[place].text.strip():
            return place
    return end


def _back(rows: Sequence[_Row], end: int, overlap: int) -> int:
    """The row where the next window begins."""
    length, start = 0, end
    while start and length + len(rows[start - 1].text) < overlap:
        start -= 1
        length += len(rows[start].text) + 1
    return start


def _window(rows: Sequence[_Row]) -> Window | None:
    full = [place for place, row in enumerate(rows) if row.text.strip()]
    if not full:
        return None
    told = rows[full[0] : full[-1] + 1]
    text = "".join(row.text + ("\n" if row.whole else "") for row in told)
    return Window(text.rstrip(), told[0].line, told[-1].line)
