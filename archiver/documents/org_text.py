"""Headings and keywords of Org documents. In Org, a row that begins with stars is a heading even inside a block."""

import re
from collections.abc import Iterator
from typing import Final

from .outline import Heading

_HEADING: Final = re.compile(r"(\*+) +(\S.*)")
_KEYWORD: Final = re.compile(
    r"#\+(title|subtitle|author|email|date|description|keywords|filetags|language): *(.*)", re.IGNORECASE
)


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings, with their TODO state and tags."""
    for number, row in enumerate(text.split("\n")):
        if found := _HEADING.match(row):
            yield Heading(len(found[1]), found[2].rstrip(), number)


def metadata(text: str) -> dict[str, str]:
    """Return the keywords that describe the document. Org allows them anywhere, but they usually come first."""
    return {found[1].lower(): found[2] for row in text.split("\n") if (found := _KEYWORD.match(row))}
