"""Where each memory of a graph stands in its picture: columns by the distance from the origin, few crossing lines."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from statistics import fmean
from typing import Protocol
from unicodedata import east_asian_width

from msgspec import Struct

from ..core.memory import Edge
from .quote import clean

WIDTH, GAP, ROOM = 236, 116, 18
"""Pixels: of a box, between columns, and between the boxes of one."""
ROW, HEAD, PADDING = 16, 18, 9
"""Pixels: of a row of text, of the line above it, and around both."""
_COLUMNS, _ROWS = 28, 4
"""Latin letters in a row, so that those of wide fonts fit too, and rows of a box."""
_SWEEPS = 6
"""How often the columns are sorted by their neighbours; more changed nothing on graphs of a hundred memories."""

Near = Mapping[str, Sequence[str]]


class Pictured(Protocol):
    """A memory as the picture needs it: how far it is from the origin, and how much the way to it carries."""

    @property
    def id(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def relevance(self) -> float: ...


class Box(Struct, frozen=True):
    """A memory in its place, in pixels from the upper left corner. `rows` are what it says, cut to fit."""

    node: Pictured
    rows: tuple[str, ...]
    x: float
    y: float
    height: float

    @property
    def middle(self) -> float:
        """Half-way down."""
        return self.y + self.height / 2


def laid_out(nodes: Iterable[Pictured], edges: Iterable[Edge]) -> dict[str, Box]:
    """A box for each memory, by id; the same for the same graph. Edges have both ends among the memories."""
    columns: defaultdict[int, list[Pictured]] = defaultdict(list)
    for node in nodes:
        columns[node.depth].append(node)
    near: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        near[edge.source_id].append(edge.target_id)
        near[edge.target_id].append(edge.source_id)
    return _placed(_ordered([columns[depth] for depth in sorted(columns)], near), near)


def _ordered(columns: list[list[Pictured]], near: Near) -> list[list[Pictured]]:
    """Each column sorted by where the neighbours of its memories stand in the columns beside it."""
    rank = {node.id: float(place) for column in columns for place, node in enumerate(column)}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = {node.id: _mean(near[node.id], rank, rank[node.id]) for node in column if node.id in near}
            column.sort(key=lambda node: (wanted.get(node.id, rank[node.id]), rank[node.id]))
            rank.update((node.id, float(place)) for place, node in enumerate(column))
    return columns


def _placed(columns: Sequence[Sequence[Pictured]], near: Near) -> dict[str, Box]:
    """The tallest column closely packed, all others beside what they hang together with."""
    rows = {node.id: wrapped(node.content) for column in columns for node in column}
    heights = {name: HEAD + ROW * len(told) + 2 * PADDING for name, told in rows.items()}
    sizes = [[heights[node.id] for node in column] for column in columns]
    first = max(range(len(columns)), key=lambda place: sum(sizes[place]) + ROOM * len(sizes[place]))
    middles: dict[str, float] = {}
    for place in (first, *reversed(range(first)), *range(first + 1, len(columns))):
        column = columns[place]
        tops = _settled(_wanted(column, near, middles), sizes[place])
        middles.update((node.id, top + heights[node.id] / 2) for node, top in zip(column, tops, strict=True))
    highest = min(middles[name] - heights[name] / 2 for name in middles)
    return {
        node.id: Box(
            node,
            rows[node.id],
            place * (WIDTH + GAP),
            middles[node.id] - heights[node.id] / 2 - highest,
            heights[node.id],
        )
        for place, column in enumerate(columns)
        for node in column
    }


def _wanted(column: Sequence[Pictured], near: Near, middles: Mapping[str, float]) -> list[float]:
    """Where each box of a column had best stand: at its neighbours that have their place, else at the box before it."""
    known = [_mean(near[node.id], middles, nan) if node.id in near else nan for node in column]
    last = next((each for each in known if not isnan(each)), 0.0)
    return [last := last if isnan(each) else each for each in known]


def _settled(middles: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The upper ends of boxes in this order, none over another, that stand near their middles on the whole."""
    tops: list[float] = []
    for middle, height in zip(middles, heights, strict=True):
        lowest = tops[-1] + heights[len(tops) - 1] + ROOM if tops else middle - height / 2
        tops.append(max(middle - height / 2, lowest))
    off = fmean(top + height / 2 - middle for top, height, middle in zip(tops, heights, middles, strict=True))
    return [top - off for top in tops]


def _mean(names: Sequence[str], places: Mapping[str, float], otherwise: float) -> float:
    return fmean(found) if (found := [places[name] for name in names if name in places]) else otherwise


def wrapped(text: str) -> tuple[str, ...]:
    """The text in at most four rows, cut between words where there are any; wide letters count twice."""
    rows = [""]
    for word in clean(text).split():
        if len(rows) > _ROWS:
            break
        for piece in _pieces(word):
            if rows[-1] and _breadth(f"{rows[-1]} {piece}") > _COLUMNS:
                rows.append(piece)
            else:
                rows[-1] = f"{rows[-1]} {piece}".strip()
    if len(rows) > _ROWS:
        rows = [*rows[: _ROWS - 1], f"{rows[_ROWS - 1][: _COLUMNS - 1]}…"]
    return tuple(rows)


def _pieces(word: str) -> Iterable[str]:
    """A word that is longer than a row, in rows."""
    piece, breadth = "", 0
    for letter in word:
        breadth += _breadth(letter)
        if breadth > _COLUMNS:
            yield piece
            piece, breadth = "", _breadth(letter)
        piece += letter
    yield piece


def _breadth(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
