"""Python, by functions and classes: what a reader would ask for by name."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...core import tokens
from ...core.document import Chunk, ChunkKind

_TOKENS: Final = 512
"""A unit of more is taken apart: a class into its methods, a function into blocks."""
_BLOCK: Final = 100
"""Lines in a block, at most."""
_CHARACTERS: Final = 4_000
"""Characters of a line that no block can hold whole, as in data written out."""
_SIGNATURE: Final = 300
_TOP = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Unit(NamedTuple):
    """A stretch of lines, counted from 0, the end not included."""

    start: int
    end: int
    unit: str
    name: str
    signature: str
    inside: "tuple[_Unit, ...]" = ()


def chunks(text: str) -> list[Chunk]:
    """The text's chunks. What Python no longer understands is cut where definitions begin at the margin."""
    rows = text.split("\n")
    return [chunk for unit in _units(text, rows) for chunk in _chunks(unit, rows)]


def _units(text: str, rows: Sequence[str]) -> list[_Unit]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes and the like, in code that is not ours
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _filled(_guessed(rows), 0, len(rows), "module", "", "")
    return _filled(list(_defined(body, rows, "")), 0, len(rows), "module", "", "")


def _defined(body: Iterable[ast.stmt], rows: Sequence[str], owner: str) -> Iterator[_Unit]:
    """The definitions in a body, with the decorators and comments that belong to them."""
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
            inside = _filled(list(_defined(node.body, rows, name)), first, end, "class", name, signature)
            yield _Unit(first, end, "class", name, signature, tuple(inside))
        else:
            yield _Unit(first, end, "method" if owner else "function", name, signature)


def _guessed(rows: Sequence[str]) -> list[_Unit]:
    """What looks like a definition at the margin, each up to the next."""
    found = [(place, match) for place, row in enumerate(rows) if (match := _TOP.match(row))]
    ends = [*(place for place, _ in found[1:]), len(rows)]
    return [
        _Unit(place, end, "class" if row[0].startswith("class") else "function", row[1], _signature(rows[place:end]))
        for (place, row), end in zip(found, ends, strict=False)
    ]


def _filled(units: Sequence[_Unit], start: int, end: int, unit: str, name: str, signature: str) -> list[_Unit]:
    """The units with what stands between them, which belongs to the whole."""
    found: list[_Unit] = []
    for one in units:
        if one.start > start:
            found.append(_Unit(start, one.start, unit, name, signature))
        # What looks like its comment may be the end of a text that the unit before ends with.
        found.append(one._replace(start=max(one.start, start)))
        start = max(start, one.end)
    if start < end:
        found.append(_Unit(start, end, unit, name, signature))
    return found


def _chunks(unit: _Unit, rows: Sequence[str]) -> Iterator[Chunk]:
    if len(unit.inside) > 1 and tokens.count("\n".join(rows[unit.start : unit.end])) > _TOKENS:
        for inside in unit.inside:
            yield from _chunks(inside, rows)
        return
    for start, end in _blocks(unit, rows):
        text = "\n".join(rows[start:end])
        if text.strip():
            first = next(place for place in range(start, end) if rows[place].strip())
            kept = "\n".join(rows[first:end]).rstrip()
            for cut in range(0, len(kept), _CHARACTERS):
                lines = (first + 1, first + kept.count("\n") + 1)
                told = kept[cut : cut + _CHARACTERS]
                yield Chunk(told, ChunkKind.CODE, *lines, unit=unit.unit, name=unit.name, signature=unit.signature)


def _blocks(unit: _Unit, rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The whole unit, or blocks of it within the limits, of one line at least."""
    start, price = unit.start, 0
    for place in range(unit.start, unit.end):
        cost = tokens.count(rows[place]) + 1
        if place > start and (price + cost > _TOKENS or place - start == _BLOCK):
            yield start, place
            start, price = place, 0
        price += cost
    yield start, unit.end


def _signature(rows: Sequence[str]) -> str:
    """A declaration in one line, up to the colon that ends it."""
    told, depth = "", 0
    for sign in " ".join(" ".join(rows).split()):
        depth += (sign in "([{") - (sign in ")]}")
        if (sign == ":" and depth <= 0) or len(told) >= _SIGNATURE:
            break
        told += sign
    return told.strip()
