"""Views: what a text says once its escapes are read, with the way back to the bytes that say it."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Optional

from msgspec import Struct

Span = tuple[int, int]
"""Half-open, in bytes."""


class View(Struct, frozen=True):
    """A text made from a piece of another one. What was replaced there is one piece that no span divides.

    For each change there is its start here in `starts`, and its end here and its span there in `changes`.
    """

    text: bytes
    of: Optional["View"] = None
    starts: tuple[int, ...] = ()
    changes: tuple[tuple[int, int, int], ...] = ()

    def piece(self, span: Span, pattern: re.Pattern[bytes], told: Callable[[re.Match[bytes]], bytes]) -> "View":
        """A piece of this text, in which every match of the pattern is what is `told` of it."""
        first, last = span
        starts, changes, pieces = [0], [(0, first, first)], list[bytes]()
        size, done = 0, first
        for match in pattern.finditer(self.text, first, last):
            start, end = match.span()
            new = told(match)
            pieces += (self.text[done:start], new)
            size += start - done
            starts.append(size)
            size += len(new)
            changes.append((size, start, end))
            done = end
        return View(b"".join((*pieces, self.text[done:last])), self, tuple(starts), tuple(changes))

    def origin(self, span: Span) -> Span:
        """Where a span stands in the text that everything was made from."""
        return span if self.of is None else self.of.origin(self.before(span))

    def before(self, span: Span) -> Span:
        """Where a span, which is not empty, stands in the text that this one was made from."""
        start, end = span
        until, first, last = self.changes[bisect_right(self.starts, start) - 1]
        from_ = first if start < until else last + start - until
        until, _, last = self.changes[bisect_left(self.starts, end) - 1]
        return from_, last + max(0, end - until)
