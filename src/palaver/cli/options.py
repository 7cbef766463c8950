"""Options shared by several commands, and checks of their values."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from palaver.core.errors import InvalidDate
from palaver.core.time_expressions import end_of, start_of

as_json = click.option("--json", "as_json", is_flag=True, help="Print the output and errors as JSON.")

_CALENDAR: Final = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_Paths = TypeVar("_Paths", str, Sequence[str])


def date_option(*names: str, last: bool = False, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 - click's name
    """Return an option for a date. A time expression means its first day or, with `last`, its last day."""
    parse = end_of if last else start_of

    def check(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
        """Return the value unchanged. Raise `InvalidDate`, with the name of the option, for an invalid date."""
        if value is None:
            return None
        try:
            parse(value)
        except InvalidDate as error:
            day = _CALENDAR.fullmatch(value)
            problem = f"no such {'day' if day[1] else 'month'}: {value}" if day else f"invalid date '{value}'"
            raise InvalidDate(error.text, hint=error.hint, message=f"{'/'.join(option.opts)}: {problem}") from None
        return value

    return click.option(*names, metavar="DATE", callback=check, help=help)


def not_empty(_context: click.Context, _parameter: click.Parameter, value: _Paths) -> _Paths:
    """Return the paths unchanged.

    Raises:
        click.BadParameter: A path is empty, for example because of an unset shell variable.
    """
    if "" in ([value] if isinstance(value, str) else value):
        raise click.BadParameter("the path is empty. Give a file, a folder, or `.` for the current folder")
    return value
