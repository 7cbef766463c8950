"""Lines of a raw copy within the byte range of stored exchanges. The rest of the copy is never read."""

from collections.abc import Iterator
from typing import Final

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.lines import split
from ...core.conversation import Span
from ...core.errors import PalaverError

MOST: Final = 16 << 20
"""Maximum bytes of the ranges of one page. Larger exchanges have no token counts and no line counts of edits."""


class RawLines:
    """Lines of one raw copy, by number. A copy that is missing or damaged has no lines."""

    def __init__(self, raw: RawArchive, archived: str) -> None:
        self._raw, self._archived, self._left = raw, archived, MOST
        self._lines: dict[int, bytes] = {}

    def load(self, span: Span) -> None:
        """Read the lines of an exchange, unless the ranges that were read so far are too large together."""
        size = span.end_byte - span.start_byte
        if size > self._left or span.start_line in self._lines:
            return
        self._left -= size
        try:
            with self._raw.open(self._archived) as file:
                for line in split(file, start_byte=span.start_byte, start_line=span.start_line):
                    if line.number > span.end_line:
                        break
                    self._lines[line.number] = line.data
        except (OSError, PalaverError):
            return

    def on(self, line: int | None) -> bytes:
        """Return the record on a line, or an empty byte string."""
        return self._lines.get(line or 0, b"")

    def within(self, span: Span) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of an exchange that were read, with their numbers."""
        for number in range(span.start_line, span.end_line + 1):
            if number in self._lines:
                yield number, self._lines[number]
