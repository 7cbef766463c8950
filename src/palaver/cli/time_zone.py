"""Time zone of all commands: the setting `timezone`, the option `--utc`, or else the zone of the system."""

from __future__ import annotations

from datetime import UTC
from typing import Final

import click

_CHOSEN: Final = f"{__name__}.utc"
"""Key in the metadata of a click context, set if `--utc` was given before or after the name of the command."""


def _select_utc(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from palaver.core.clock import use_time_zone

        context.meta[_CHOSEN] = True
        use_time_zone(UTC)


in_utc = click.option(
    "--utc",
    is_flag=True,
    expose_value=False,
    is_eager=True,  # Dates in other options are parsed in this zone.
    callback=_select_utc,
    help="Show and read dates in UTC instead of the local time zone.",
)


def add_utc_option(command: click.Command) -> None:
    """Add the option `--utc` to a command and its sub-commands, unless they have it."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_utc_option(each)
    elif all("--utc" not in parameter.opts for parameter in command.params):
        in_utc(command)


def use_configured_zone(context: click.Context) -> None:
    """Select the time zone of the settings for this process, unless `--utc` was given.

    Invalid settings are ignored here, because the command reports them.
    """
    if context.meta.get(_CHOSEN):
        return
    from palaver.core.clock import use_time_zone
    from palaver.core.config import Config
    from palaver.core.errors import ConfigInvalid
    from palaver.core.home import Home

    try:
        use_time_zone(Config.read(Home.find().config).display_zone)
    except ConfigInvalid:
        use_time_zone(None)
