"""Shapes: what a field holds when it holds what was expected, and something harmless when it does not."""

from typing import Any, cast

from ...core.clock import parse_instant
from ...core.conversation import Milliseconds

_COUNT_MAX = 10**12
"""No agent ever counted so far; billions of such counts still add up to what a database column holds."""


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def string(value: object) -> str:
    """The value if it is text, else empty text."""
    return value if isinstance(value, str) else ""


def whole(value: object) -> int:
    """The value if it is a whole number that something can have been counted to, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX else 0


def instant(value: object) -> Milliseconds | None:
    """RFC 3339 text, or a number of seconds, milliseconds or microseconds since 1970, told apart by its size."""
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e17:
        return None
    return round(value / 1000 if value > 1e14 else value if value > 1e11 else value * 1000)
