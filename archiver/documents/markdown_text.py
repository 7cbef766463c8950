"""Headings and front matter of Markdown."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

from .document_reader import CHUNKS_MAX
from .metadata import flat
from .outline import Heading

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from yaml.events import Event

_HEADING_ROW: Final = re.compile(r"^ {0,3}(?:#{1,6}(?!\S)|=+ *$|-+ *$)", re.MULTILINE)
_ROWS_MAX: Final = 10 * CHUNKS_MAX
"""Maximum number of rows that look like a heading. A shell script in a code block can have hundreds."""
_FRONT_MATTER: Final = 16_000
_DEPTH: Final = 10
"""Maximum characters and depth of front matter that is parsed. PyYAML needs 5 s for 5,000 nested lists."""


def headings(text: str) -> Iterator[Heading]:
    """Yield the CommonMark headings, except headings in block quotes and lists.

    A text with too many rows that look like headings has none, because the parser needs 2 KB of memory for each.
    """
    if next(islice(_HEADING_ROW.finditer(text), _ROWS_MAX, None), None) is not None:
        return
    rows = text.split("\n")
    end = _end_of_front_matter(rows)
    # CommonMark would parse the last row of front matter as a heading.
    body = "\n".join([""] * end + rows[end:])
    for token, content in pairwise(_parser().parse(body)):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield Heading(int(token.tag[1]), content.content, token.map[0], token.map[1] - token.map[0])


@cache
def _parser() -> "MarkdownIt":
    """Return the parser, which thousands of notebook cells share. Creating one takes longer than parsing a cell."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline"])


def metadata(text: str) -> dict[str, str]:
    """Return the values in the YAML front matter. Invalid front matter is ignored."""
    rows = text.split("\n")
    end = _end_of_front_matter(rows)
    source = "\n".join(rows[1 : end - 1])
    if not end or len(source) > _FRONT_MATTER:
        return {}
    import yaml

    try:
        if _depth(yaml.parse(source, yaml.BaseLoader)) > _DEPTH:
            return {}
        # This loader creates no objects, and leaves dates and numbers as they are written.
        found: Any = yaml.load(source, yaml.BaseLoader)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return flat(found)


def _depth(events: Iterable["Event"]) -> int:
    """Return the depth of nested collections. Stop counting at the first depth beyond the limit."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent

    depth = deepest = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > _DEPTH:
            break
    return deepest


def _end_of_front_matter(rows: list[str]) -> int:
    """Return the number of rows of the front matter, or 0 if the text does not begin with front matter."""
    if rows[0].rstrip() != "---":
        return 0
    return next((number + 1 for number, row in enumerate(rows[1:], 1) if row.rstrip() in {"---", "..."}), 0)
