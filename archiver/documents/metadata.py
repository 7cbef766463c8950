"""Metadata of documents: named values, such as `title`, from front matter and similar parts of other formats."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import ValidationError, convert

from ..files.clipping import one_line

_NAME: Final = 60
_VALUE: Final = 500
_COUNT: Final = 32
"""Maximum characters of names and values, and maximum number of values of a document."""


def flat(found: object) -> dict[str, str]:
    """Return a mapping with its values as texts. Return an empty dictionary if `found` is not a mapping.

    A list becomes its texts, joined by commas. Any other value becomes an empty text.
    """
    try:
        entries = convert(found, dict[str, Any])
    except ValidationError:
        return {}
    return {name: _text(value) for name, value in entries.items()}


def limited(metadata: Mapping[str, str], redact: Callable[[str], str]) -> dict[str, str]:
    """Return the first 32 entries that have a name and a value, with names in lower case.

    Names and values are redacted, put on one line and shortened.
    """
    kept: dict[str, str] = {}
    for name, value in metadata.items():
        # A value is redacted before it is shortened, so that no secret is cut.
        short = one_line(redact(value), _VALUE)
        if short and name.strip() and len(kept) < _COUNT:
            kept.setdefault(one_line(redact(name).lower(), _NAME), short)
    return kept


def _text(value: object) -> str:
    try:
        found = convert(value, str | list[Any])
    except ValidationError:
        return ""
    return found if isinstance(found, str) else ", ".join(item for item in found if isinstance(item, str))
