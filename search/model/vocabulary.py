"""The vocabulary: what a brief plain text is made of, as most queries are, without loading a tokenizer.

That takes 20 ms and 18 MB. It is asked about every other text, and says the same about plain ones.
"""

import re
from typing import NamedTuple

_PLAIN = re.compile(r"[\t\n\r -Z\\-~]{0,254}")
"""ASCII of which the model sees all, with none of its own signs, such as `[SEP]`."""
_WORD = re.compile(r"[A-Za-z0-9]+|\S")
_LONGEST = 100
"""Characters of a word from which on it is a word that nobody knows."""
_ROWS = b'"vocab":{\n'


class Pieces(NamedTuple):
    """The numbers of a text's pieces, the model's own two among them, and where each other one begins and ends."""

    ids: list[int]
    spans: list[tuple[int, int]]


class Vocabulary:
    """Pieces of words and their numbers, each on a row of its own, in the order of their bytes."""

    def __init__(self, tokenizer: bytes) -> None:
        """What a tokenizer's file says; raises `ValueError` where it has no vocabulary."""
        first = tokenizer.index(_ROWS) + len(_ROWS)
        self._rows = tokenizer[first : tokenizer.index(b"\n}", first) + 1]
        """A few of them are looked at: to read all of them takes longer than all that is asked of them."""

    def pieces(self, text: str) -> Pieces | None:
        """The pieces of a plain text: of each word the longest that it begins with, then of what is left. None of any
        other text, and of what has a word that is not made of known pieces.
        """
        if not _PLAIN.fullmatch(text):
            return None
        ids, spans = list[int](), list[tuple[int, int]]()
        for word in _WORD.finditer(text):
            start, end = word.span()
            if end - start > _LONGEST:
                return None
            while start < end:
                number, length = self._longest(text[start:end].lower(), begins=start == word.start())
                if number is None:
                    return None
                ids.append(number)
                spans.append((start, start + length))
                start += length
        first, last = self._number("[CLS]"), self._number("[SEP]")
        return None if first is None or last is None else Pieces([first, *ids, last], spans)

    def _longest(self, word: str, *, begins: bool) -> tuple[int | None, int]:
        """The longest piece that this, or what is left of a word, begins with: its number and how long it is."""
        for length in range(len(word), 0, -1):
            number = self._number(word[:length] if begins else f"##{word[:length]}")
            if number is not None:
                return number, length
        return None, 0

    def _number(self, piece: str) -> int | None:
        """The number of a piece."""
        escaped = piece.replace("\\", "\\\\").replace('"', '\\"')
        wanted, rows = f'"{escaped}":'.encode(), self._rows
        low, high = 0, len(rows)
        while low < high:
            row = rows.rfind(b"\n", low, (low + high) // 2) + 1 or low
            if rows[row : row + len(wanted)] < wanted:
                low = rows.index(b"\n", row) + 1
            else:
                high = row
        found = rows.startswith(wanted, low)
        return int(rows[low + len(wanted) : rows.index(b"\n", low)].rstrip(b",")) if found else None
