"""Headings and front matter of Markdown."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from .metadata import flat
from .outline import Heading

if TYPE_CHECKING:
    from yaml.events import Event

_FRONT_MATTER: Final = 16_000
_DEPTH: Final = 10
"""Maximum characters and depth of front matter that is parsed. PyYAML needs 5 s for 5,000 nested lists."""


def headings(text: str) -> Iterator[Heading]:
    """Yield the CommonMark headings, except headings in block quotes and lists."""
    from markdown_it import MarkdownIt

    rows = text.split("\n")
    end = _end_of_front_matter(rows)
    # CommonMark would parse the last row of front matter as a heading.
    body = "\n".join([""] * end + rows[end:])
    parser = MarkdownIt("commonmark").disable(["inline"])
    for token, content in pairwise(parser.parse(body)):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield Heading(int(token.tag[1]), content.content, token.map[0], token.map[1] - token.map[0])


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
