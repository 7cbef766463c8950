"""Desks: what a surface's tools work with, each part opened when the first tool asks for it."""

from collections.abc import Callable
from typing import TypeVar

from ..core.errors import InvalidInput, PalaverError, ServerNotReady

Part = TypeVar("Part")


def opened(part: Callable[[], Part]) -> Part:
    """A part of a desk; raises `ServerNotReady` where it cannot be opened, and the next call tries again."""
    try:
        return part()
    except InvalidInput:
        raise
    except PalaverError as error:
        raise ServerNotReady(error) from error
