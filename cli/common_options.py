"""Options that many commands share and no command handles itself: `--utc` and `--plain`."""

from __future__ import annotations

from typing import Final

import click

_UTC: Final = f"{__name__}.utc"
_PLAIN: Final = f"{__name__}.plain"
"""Keys in the metadata of a click context, set if the option was given."""


def _select_utc(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from .time_zone import use_utc  # `palaver --help` loads no other module.

        context.meta[_UTC] = True
        use_utc()


in_utc = click.option(
    "--utc",
    is_flag=True,
    expose_value=False,
    is_eager=True,  # Dates in other options are parsed in this zone.
    callback=_select_utc,
    help="Show and read dates in UTC instead of the local time zone.",
)


def _select_plain(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[_PLAIN] = True


_plain = click.option(
    "--plain",
    is_flag=True,
    expose_value=False,
    callback=_select_plain,
    help="For people: remove the marks that show agents which text is quoted.",
)


def is_utc(context: click.Context) -> bool:
    """Return whether the command line has the option `--utc`."""
    return bool(context.meta.get(_UTC))


def is_plain() -> bool:
    """Return whether the current command has the option `--plain`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_PLAIN))


def add_common_options(command: click.Command, *, quotes: bool) -> None:
    """Add `--utc`, and `--plain` if the command prints quoted text, to a command and its sub-commands."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_common_options(each, quotes=quotes)
    elif all("--utc" not in parameter.opts for parameter in command.params):
        in_utc(command)
        if quotes:
            _plain(command)
