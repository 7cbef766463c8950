"""Markdown, by headings: each section is a chunk, or several, under the path of the headings above it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ...core.document import Chunk
from ..files.clipping import one_line
from .windows import windows

_HEADER = 120


class _Heading(NamedTuple):
    level: int
    title: str
    line: int
    """Counted from 0."""


def chunks(text: str) -> list[Chunk]:
    """The text's chunks. A heading with nothing below it but deeper headings stands in their paths alone."""
    rows = text.split("\n")
    marks = list(_headings(rows))
    found: list[Chunk] = []
    above: list[_Heading] = []
    for place, mark in enumerate([None, *marks]):
        start = mark.line if mark else 0
        end = marks[place].line if place < len(marks) else len(rows)
        if mark is not None:
            above = [*(heading for heading in above if heading.level < mark.level), mark]
            deeper = place < len(marks) and marks[place].level > mark.level
            if deeper and not any(row.strip() for row in rows[start + 1 : end]):
                continue
        found += _section("\n".join(rows[start:end]), start + 1, " > ".join(heading.title for heading in above))
    return found


def _section(text: str, first_line: int, header_path: str) -> Iterator[Chunk]:
    for told, start, end in windows(text, first_line):
        yield Chunk(told, start_line=start, end_line=end, header_path=header_path)


def _headings(rows: list[str]) -> Iterator[_Heading]:
    """The headings that structure the text, as CommonMark has them: none in code, quotes or lists."""
    # Loaded where it is needed: most commands read no document.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable(["inline"])
    tokens = parser.parse("\n".join(_without_front_matter(rows)))
    for token, inside in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield _Heading(int(token.tag[1]), one_line(inside.content, _HEADER) or "-", token.map[0])


def _without_front_matter(rows: list[str]) -> list[str]:
    """The rows with those of front matter blank: CommonMark would take its last one for a heading."""
    if rows[0].rstrip() != "---":
        return rows
    end = next((place for place, row in enumerate(rows[1:], 1) if row.rstrip() in {"---", "..."}), 0)
    return [""] * (end + 1) + rows[end + 1 :] if end else rows
