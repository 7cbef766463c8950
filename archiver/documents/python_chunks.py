"""Chunks of Python source: functions, classes and methods."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...core import tokens
from ...core.document import Chunk, ChunkKind

_TOKENS: Final = 512
"""Maximum tokens of a chunk. A larger class is split into its methods, a larger function into blocks."""
_BLOCK: Final = 100
"""Maximum lines of a block."""
_CHARACTERS: Final = 4_000
"""Maximum characters of a chunk, because a single line, such as literal data, can be very long."""
_SIGNATURE: Final = 300
_TOP = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Unit(NamedTuple):
    """Range of rows, 0-based with an exclusive end: a definition, or other rows of a module or class."""

    start: int
    end: int
    unit: str
    name: str
    signature: str
    inside: "tuple[_Unit, ...]" = ()


def chunks(text: str) -> list[Chunk]:
    """Return the chunks of a module. Invalid source is split at top-level lines that look like definitions."""
    rows = text.split("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Third-party code has invalid escapes and similar problems.
            units = list(_definitions(ast.parse(text).body, rows, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        units = _top_level(rows)
    whole = _with_gaps(units, _Unit(0, len(rows), "module", "", ""))
    return [chunk for unit in whole for chunk in _chunks(unit, rows)]


def _definitions(body: Iterable[ast.stmt], rows: Sequence[str], owner: str) -> Iterator[_Unit]:
    """Yield the definitions in a body. A definition includes its decorators and the comments above it."""
    for node in body:
        if not isinstance(node, _Definition):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        while first and rows[first - 1].lstrip().startswith("#"):
            first -= 1
        end = node.end_lineno or node.lineno
        name = f"{owner}.{node.name}" if owner else node.name
        signature = _signature(rows[node.lineno - 1 : node.body[0].lineno])
        if isinstance(node, ast.ClassDef):
            unit = _Unit(first, end, "class", name, signature)
            yield unit._replace(inside=tuple(_with_gaps(list(_definitions(node.body, rows, name)), unit)))
        else:
            yield _Unit(first, end, "method" if owner else "function", name, signature)


def _top_level(rows: Sequence[str]) -> list[_Unit]:
    """Return a unit for each top-level line that looks like a definition. A unit ends where the next one begins."""
    found = [(index, match) for index, row in enumerate(rows) if (match := _TOP.match(row))]
    ends = [*(index for index, _ in found[1:]), len(rows)]
    return [
        _Unit(index, end, "class" if row[0].startswith("class") else "function", row[1], _signature(rows[index:end]))
        for (index, row), end in zip(found, ends, strict=False)
    ]


def _with_gaps(units: Sequence[_Unit], whole: _Unit) -> list[_Unit]:
    """Return units that cover `whole` completely.

    They are the given units and, for each gap between them, a copy of `whole` limited to that gap.
    """
    found: list[_Unit] = []
    start = whole.start
    for unit in units:
        if unit.start > start:
            found.append(whole._replace(start=start, end=unit.start))
        # A line above that looks like a comment may be the end of a string in the previous unit.
        found.append(unit._replace(start=max(unit.start, start)))
        start = max(start, unit.end)
    return [*found, whole._replace(start=start)] if start < whole.end else found


def _chunks(unit: _Unit, rows: Sequence[str]) -> Iterator[Chunk]:
    if len(unit.inside) > 1 and tokens.count("\n".join(rows[unit.start : unit.end])) > _TOKENS:
        for inside in unit.inside:
            yield from _chunks(inside, rows)
        return
    for start, end in _blocks(unit, rows):
        first = next((index for index in range(start, end) if rows[index].strip()), None)
        if first is None:
            continue
        text = "\n".join(rows[first:end]).rstrip()
        last = first + text.count("\n") + 1
        for cut in range(0, len(text), _CHARACTERS):
            piece = text[cut : cut + _CHARACTERS]
            kind, name = unit.unit, unit.name
            yield Chunk(piece, ChunkKind.CODE, first + 1, last, unit=kind, name=name, signature=unit.signature)


def _blocks(unit: _Unit, rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the row range of a unit, split into blocks within the limits. A block has at least one row."""
    start, size = unit.start, 0
    for index in range(unit.start, unit.end):
        count = tokens.count(rows[index]) + 1
        if index > start and (size + count > _TOKENS or index - start == _BLOCK):
            yield start, index
            start, size = index, 0
        size += count
    yield start, unit.end


def _signature(rows: Sequence[str]) -> str:
    """Return a declaration on one line, up to its final colon."""
    signature, depth = "", 0
    for character in " ".join(" ".join(rows).split()):
        depth += (character in "([{") - (character in ")]}")
        if (character == ":" and depth <= 0) or len(signature) >= _SIGNATURE:
            break
        signature += character
    return signature.strip()
