"""Chunks of source code: one or more for each unit, such as a function, and others for the lines between units."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate, islice
from typing import Final

from ...core import tokens
from ...core.document import Chunk, ChunkKind
from .code_languages import CodeLanguage
from .code_units import CONTAINERS, CodeUnit, units
from .document_reader import CHUNKS_MAX, PROSE_MAX
from .text_windows import windows

_TOKENS: Final = 512
"""Approximate maximum tokens of a chunk. A larger unit is split into its inner units, or else into blocks."""
_BLOCK: Final = 100
"""Maximum lines of a block."""
_CHARACTERS: Final = 4_000
"""Maximum characters of a chunk, because a single line, such as literal data, can be very long."""
_PARSED: Final = 4 << 20
"""Maximum characters of a file that is parsed. Parsing takes about 70 times the memory of the file."""
_CLOSING: Final = re.compile(r"(?:[\s)}\];,]|\bend\b)*")


def chunks(text: str, language: CodeLanguage) -> list[Chunk]:
    """Return the chunks of a file. Together they contain every line that is not blank.

    If no unit is found because the file is too large or has syntax errors, the file is split like prose. Its chunks
    then have no `unit`. A file with too many units is split like prose too, unless the members of small classes are the
    reason, which then share a chunk.
    """
    found, whole = units(text, language) if len(text) <= _PARSED else ([], False)
    if not (found or whole):
        return text_chunks(text)
    rows = _Rows(text.split("\n"))
    module = CodeUnit(0, len(rows.texts), "module")
    covering = _with_gaps(found, module, rows)
    for containers in (CONTAINERS, frozenset[str]()):
        split = [chunk for unit in covering for chunk in _chunks(unit, rows, containers)]
        if len(split) <= CHUNKS_MAX:
            return split
    return text_chunks(text)


def text_chunks(text: str, kind: ChunkKind = ChunkKind.CODE) -> list[Chunk]:
    """Split a text that cannot be parsed into overlapping chunks, like prose: at most one more than `CHUNKS_MAX`."""
    pieces = islice(windows(text[:PROSE_MAX]), CHUNKS_MAX + 1)
    return [Chunk(piece, kind, start, end) for piece, start, end in pieces]


class _Rows:
    """Lines of a file, with methods for the length and the token count of a range of lines."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._lengths = [0, *accumulate(len(text) + 1 for text in texts)]

    def join(self, start: int, end: int) -> str:
        return "\n".join(self.texts[start:end])

    def length(self, start: int, end: int) -> int:
        return self._lengths[end] - self._lengths[start]

    def tokens(self, start: int, end: int) -> int:
        """Return the number of tokens in a range of lines. For a short range, return an upper bound, which is faster.

        Code has at most one token per two characters.
        """
        length = self.length(start, end)
        return length // 2 if length <= 2 * _TOKENS else tokens.count(self.join(start, end))


def _with_gaps(found: Sequence[CodeUnit], whole: CodeUnit, rows: _Rows) -> list[CodeUnit]:
    """Return units that together contain every line of `whole`.

    The lines between the found units become copies of `whole` with these lines. Lines that contain only closing
    brackets are added to the unit before them instead. A unit inside the lines of the previous unit is left out.
    """
    covering: list[CodeUnit] = []
    start, doc = whole.start, whole.doc
    for unit in [*found, CodeUnit(whole.end, whole.end, "")]:
        if unit.start > start:
            if covering and _CLOSING.fullmatch(rows.join(start, unit.start)):
                covering[-1] = covering[-1]._replace(end=unit.start)
            else:
                covering.append(whole._replace(start=start, end=unit.start, doc=doc, inside=()))
                doc = ""
        if unit.end > max(unit.start, start):
            covering.append(unit._replace(start=max(unit.start, start)))
        start = max(start, unit.end)
    return covering


def _chunks(unit: CodeUnit, rows: _Rows, containers: Container[str]) -> Iterator[Chunk]:
    """Yield the chunks of a unit. A unit of a kind in `containers` is split into its inner units, even a small one."""
    size = 0 if unit.inside and unit.kind in containers else rows.tokens(unit.start, unit.end)
    large = size > _TOKENS or unit.end - unit.start > _BLOCK
    if unit.inside and (large or unit.kind in containers):
        if unit.inside[0].start == unit.start:  # Otherwise, no chunk would have the name of the unit.
            yield from _chunks(unit._replace(end=unit.start + 1, inside=()), rows, containers)
            unit = unit._replace(doc="")
        for inside in _with_gaps(unit.inside, unit, rows):
            yield from _chunks(inside, rows, containers)
        return
    doc = unit.doc
    for start, end in _blocks(unit, size, rows) if large else [(unit.start, unit.end)]:
        first = next((index for index in range(start, end) if rows.texts[index].strip()), None)
        if first is None:
            continue
        text = rows.join(first, end).rstrip()
        last = first + text.count("\n") + 1
        for cut in range(0, len(text), _CHARACTERS):
            piece = text[cut : cut + _CHARACTERS]
            yield Chunk(
                piece,
                ChunkKind.CODE,
                first + 1,
                last,
                unit=unit.kind,
                name=unit.name,
                signature=unit.signature,
                doc=doc,
                unit_start=unit.lines[0],
                unit_end=unit.lines[1],
            )
            doc = ""


def _blocks(unit: CodeUnit, size: int, rows: _Rows) -> Iterator[tuple[int, int]]:
    """Split a unit of `size` tokens into blocks, and yield the first row and the end row (exclusive) of each block.

    The number of tokens of a block is estimated from its number of characters. A block has at least one row.
    """
    longest = rows.length(unit.start, unit.end) * _TOKENS // max(size, 1)
    start = unit.start
    for index in range(unit.start + 1, unit.end):
        if rows.length(start, index + 1) > longest or index - start == _BLOCK:
            yield start, index
            start = index
    yield start, unit.end
