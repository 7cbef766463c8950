"""The options that take a date, and what is said of a value that is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from palaver.core.errors import InvalidDate

if TYPE_CHECKING:
    from collections.abc import Callable

_CALENDAR: Final = re.compile(r"\d{4}-\d{2}(-\d{2})?")


def dated(*names: str, last: bool = False, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 - click's name
    """An option for the first day of a time, or for its `last`; raises `InvalidDate` that names it and its value."""
    return click.option(*names, metavar="DATE", callback=_last if last else _first, help=help)


def _first(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from palaver.core.periods import start_of  # its patterns take 2 ms to compile, and few commands have a date

    return _checked(option, value, start_of)


def _last(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from palaver.core.periods import end_of

    return _checked(option, value, end_of)


def _checked(option: click.Parameter, value: str, read: Callable[[str], int]) -> str:
    """The value as it is: which day it means is for whoever uses it."""
    try:
        read(value)
    except InvalidDate as error:
        impossible = _CALENDAR.fullmatch(value)
        wrong = f"there is no {'day' if impossible[1] else 'month'} {value}" if impossible else f"{value} is no date"
        raise InvalidDate(error.text, hint=error.hint, told=f"{option.opts[0]}: {wrong}") from None
    return value
