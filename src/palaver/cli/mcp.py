"""`palaver mcp` and `palaver toolsets`: serve tools to agents."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from palaver import __version__
from palaver.core.config import Config
from palaver.core.home import Home

from .failures import INTERRUPTED
from .judging import judging
from .options import as_json
from .output import print_json

if TYPE_CHECKING:
    from types import FrameType


@click.command()
@click.option(
    "--toolset",
    default="conversation",
    show_default=True,
    metavar="NAME[,NAME...]",
    help="Toolsets to serve; see `palaver toolsets`.",
)
@click.option("--prefix", is_flag=True, help="Prefix the names of tools with their toolset, as in theo_search.")
def mcp(*, toolset: str, prefix: bool) -> None:
    """Serve search, or other toolsets, to an agent over MCP on standard input and output.

    Agents start this command themselves; `palaver up` prints how to add it to Claude Code.
    """
    # The SDK loads for seconds, and the thread that waits for stdin cannot be interrupted, so Ctrl-C ends the process
    # outright. That loses nothing: whatever was stored was stored in a transaction.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    from palaver.agents.surface import Surface, toolset_of

    names = dict.fromkeys(name.strip() for name in toolset.split(","))
    surface = Surface.of([toolset_of(name) for name in names], prefix=prefix)
    from palaver.agents.desk import Place
    from palaver.agents.server import serve
    from palaver.search.document_library import usual_roots
    from palaver.templates.render import Renderer

    if sys.stdin.isatty():
        click.echo(
            "Waiting for an MCP client on standard input; agents start this command themselves. Ctrl-C ends it.",
            err=True,
        )
    home = Home.find()
    config = Config.read(home.config)
    roots = usual_roots(config.document_roots)
    place = Place(home, config.model, Renderer(home.templates), roots, judging=judging(home, config), background=True)
    serve(surface, place, __version__)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\npalaver: stopped.\n")
    os._exit(INTERRUPTED)


@click.command()
@as_json
def toolsets(*, as_json: bool) -> None:
    """List the toolsets of `palaver mcp --toolset`: their tools, and their token cost per session."""
    from palaver.agents.surface import TOOLSETS, toolset_of

    found = [toolset_of(name) for name in TOOLSETS]
    if as_json:
        named = ((each, [tool.name for tool in each.tools]) for each in found)
        print_json({"toolsets": [{"name": each.name, "tokens": each.tokens, "tools": names} for each, names in named]})
        return
    for each in found:
        names = ", ".join(tool.name for tool in each.tools)
        click.echo(f"{each.name}: {len(each.tools)} tools, {each.tokens:,} tokens")
        click.echo(textwrap.fill(names, 100, initial_indent="  ", subsequent_indent="  "))
    click.echo("Serve one or more to an agent: palaver mcp --toolset NAME[,NAME...]")
