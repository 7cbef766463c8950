"""Fields of JSON records as the expected type, or as a harmless default if they have another type."""

from collections.abc import Callable
from typing import Any, cast

from ...core.clock import parse_instant
from ...core.conversation import Milliseconds
from ..files.lines import Record

_COUNT_MAX = 10**12
"""Larger counts do not occur, and sums of billions of these fit into a database column."""


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def mappings(value: object) -> list[Record]:
    """Return the elements of a list as objects; other elements are empty objects."""
    return [mapping(each) for each in listing(value)]


def string(value: object) -> str:
    """Return the value if it is text, else empty text."""
    return value if isinstance(value, str) else ""


def first_string(record: Record, *names: str) -> str:
    """Return the first of these fields that is non-empty text."""
    return next((value for name in names if (value := string(record.get(name)))), "")


def whole(value: object) -> int:
    """Return the value if it is a plausible count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX else 0


def total(record: Record, *names: str) -> int:
    """Return the sum of these counts."""
    return sum(whole(record.get(name)) for name in names)


def instant(value: object) -> Milliseconds | None:
    """Return the time of RFC 3339 text, or of a number of seconds, milliseconds or microseconds since 1970."""
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e17:
        return None
    return round(value / 1000 if value > 1e14 else value if value > 1e11 else value * 1000)


def joined_text(content: object, text_of: Callable[[Record], str]) -> str:
    """Return the text of content: text itself, a block or a list of blocks, each read by `text_of`."""
    if isinstance(content, str):
        return content
    blocks = listing(content) or [content]
    return "\n".join(filter(None, (block if isinstance(block, str) else text_of(mapping(block)) for block in blocks)))


def media_label(kind: str, data: object) -> str:
    """Return a label that stands for a picture or a file encoded as base64: its type and size."""
    return f"[{kind}, {len(string(data)) * 3 // 4096} KB]"
