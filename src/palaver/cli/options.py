"""Options shared by several commands, and checks of their values."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from palaver.core.errors import InvalidDate
from palaver.core.time_expressions import end_of, start_of

as_json = click.option("--json", "as_json", is_flag=True, help="Print the output and errors as JSON.")

_CALENDAR: Final = re.compile(r"\d{4}-\d{2}(-\d{2})?")
Typed = TypeVar("Typed", str, Sequence[str])


def date_option(*names: str, last: bool = False, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 - click's name
    """Return an option for a time expression. The value means its first day, or its last day with `last`."""
    return click.option(*names, metavar="DATE", callback=_check_last if last else _check_first, help=help)


def _check_first(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(option, value, start_of)


def _check_last(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _checked(option, value, end_of)


def _checked(option: click.Parameter, value: str, parse: Callable[[str], int]) -> str:
    """Return the value unchanged.

    Raises:
        InvalidDate: The value is not a date; the message contains the name of the option.
    """
    try:
        parse(value)
    except InvalidDate as error:
        impossible = _CALENDAR.fullmatch(value)
        problem = f"no such {'day' if impossible[1] else 'month'}: {value}" if impossible else f"invalid date '{value}'"
        raise InvalidDate(error.text, hint=error.hint, message=f"{option.opts[0]}: {problem}") from None
    return value


def not_empty(_context: click.Context, _parameter: click.Parameter, value: Typed) -> Typed:
    """Return the paths unchanged.

    Raises:
        click.BadParameter: A path is empty, for example because of an unset shell variable.
    """
    if "" in ([value] if isinstance(value, str) else value):
        raise click.BadParameter("the path is empty; give a file or folder, or `.` for the current folder")
    return value
