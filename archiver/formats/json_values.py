"""Typed access to fields of JSON records. Values of an unexpected type become an empty value."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import orjson

from ...core.clock import parse_instant
from ...core.conversation import Milliseconds
from ..files.lines import Record

_MEDIA_LABEL = re.compile(r"\[(?:image|document|application|text)(?:/[\w.+-]+)?(?:, \d+ KB)?\]")
_FILE_MAX = 4 << 20
_COUNT_MAX = 10**12
"""Maximum count that is accepted. The sum of a million such counts fits into a database column."""


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def json_file(path: Path) -> Record:
    """Return the object in a small JSON file. The result is empty if the file is missing, damaged or too large."""
    try:
        with path.open("rb") as file:
            return mapping(orjson.loads(file.read(_FILE_MAX)))
    except (OSError, orjson.JSONDecodeError):
        return {}


def listing(value: object) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def mappings(value: object) -> list[Record]:
    """Return the elements of a list as objects. Elements of other types become empty objects."""
    return [mapping(each) for each in listing(value)]


def content_blocks(content: object) -> list[Record]:
    """Return the blocks of a message. Plain text becomes one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)


def string(value: object) -> str:
    """Return the value if it is text, otherwise empty text."""
    return value if isinstance(value, str) else ""


def first_string(record: Record, *names: str) -> str:
    """Return the first non-empty text in these fields of a record, or an empty text."""
    return next((value for name in names if (value := string(record.get(name)))), "")


def count_of(value: object) -> int:
    """Return the value if it is an integer from 0 to 10^12, otherwise 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX else 0


def total(record: Record, *names: str) -> int:
    """Return the sum of the counts in these fields of a record."""
    return sum(count_of(record.get(name)) for name in names)


def instant(value: object) -> Milliseconds | None:
    """Return a time in milliseconds since 1970.

    The value is RFC 3339 text, or a number of seconds, milliseconds or microseconds since 1970.
    """
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e17:
        return None
    return round(value / 1000 if value > 1e14 else value if value > 1e11 else value * 1000)


def joined_text(content: object, text_of: Callable[[Record], str]) -> str:
    """Return the text of a message's content: a string, one block or a list of blocks.

    `text_of` returns the text of one block. The texts of a list are joined by line breaks.
    """
    if isinstance(content, str):
        return content
    blocks = listing(content) or [content]
    return "\n".join(filter(None, (block if isinstance(block, str) else text_of(mapping(block)) for block in blocks)))


def media_label(kind: str, data: object) -> str:
    """Return a label with type and size that replaces a base64-encoded picture or file."""
    return f"[{kind}, {len(string(data)) * 3 // 4096} KB]"


def is_media_label(line: str) -> bool:
    """Return whether a line is a label of a picture or a file, such as `[image/png, 12 KB]`."""
    return _MEDIA_LABEL.fullmatch(line.strip()) is not None
