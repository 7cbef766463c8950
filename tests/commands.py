"""List of all commands, including grouped ones, for parametrised tests."""

import re
from collections.abc import Iterator

import click

from palaver.cli import main


def every_command(
    group: click.Group = main, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words of each command and the command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*before, name))


EVERY = dict(every_command())
"""All commands and groups by their words."""
LEAVES = {
    words: command for words, command in EVERY.items() if not isinstance(command, click.Group) or words == ("model",)
}
"""Commands that can run: all except groups, plus `model`, a group that also runs."""
PLAIN = {("mcp",), ("view",), ("help",), ("completion",), ("hooks", "run"), ("team", "serve")}
"""Commands without `--json`: they print a protocol, a link, help or a script."""


def unmarked(page: str) -> str:
    """Return a page with the random number of its marker replaced, so that two pages can be compared."""
    return re.sub(r"(?<=recalled-)\d+", "N", page)
