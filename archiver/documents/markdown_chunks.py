"""Chunks of Markdown: one or more per section, each with the titles of the headings above it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ...core.document import Chunk
from ..files.clipping import one_line
from .text_windows import windows

_HEADER = 120


class _Heading(NamedTuple):
    level: int
    title: str
    line: int
    """Line number, 0-based."""


def chunks(text: str) -> list[Chunk]:
    """Return the chunks of a text.

    A heading that is followed directly by a deeper heading has no chunk of its own.
    """
    rows = text.split("\n")
    headings = list(_headings(rows))
    found: list[Chunk] = []
    above: list[_Heading] = []
    for number, heading in enumerate([None, *headings]):
        start = heading.line if heading else 0
        end = headings[number].line if number < len(headings) else len(rows)
        if heading is not None:
            above = [*(each for each in above if each.level < heading.level), heading]
            deeper = number < len(headings) and headings[number].level > heading.level
            if deeper and not any(row.strip() for row in rows[start + 1 : end]):
                continue
        path = " > ".join(each.title for each in above)
        for piece, first, last in windows("\n".join(rows[start:end]), start + 1):
            found.append(Chunk(piece, start_line=first, end_line=last, header_path=path))
    return found


def _headings(rows: list[str]) -> Iterator[_Heading]:
    """Yield the CommonMark headings, except headings in block quotes and lists."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable(["inline"])
    tokens = parser.parse("\n".join(_without_front_matter(rows)))
    for token, content in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield _Heading(int(token.tag[1]), one_line(content.content, _HEADER) or "-", token.map[0])


def _without_front_matter(rows: list[str]) -> list[str]:
    """Return the rows with front matter replaced by empty rows.

    CommonMark would parse the last row of front matter as a heading.
    """
    if rows[0].rstrip() != "---":
        return rows
    end = next((number for number, row in enumerate(rows[1:], 1) if row.rstrip() in {"---", "..."}), 0)
    return [""] * (end + 1) + rows[end + 1 :] if end else rows
