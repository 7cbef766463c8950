"""Paths that users type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

Typed = TypeVar("Typed", str, "Sequence[str]")


def not_empty(_context: click.Context, _parameter: click.Parameter, value: Typed) -> Typed:
    """Return the paths. Raises `click.BadParameter` for an empty one, which an unset shell variable gives."""
    if "" in ([value] if isinstance(value, str) else value):
        raise click.BadParameter("an empty path; name a file or folder, or `.` for this one")
    return value
