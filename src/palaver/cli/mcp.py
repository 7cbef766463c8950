"""`palaver mcp`: the layers for an agent."""

from __future__ import annotations

import sys

import click

from palaver import __version__
from palaver.core.home import Home

from .layers import open_layers


@click.command(short_help="Serve the three layers to an agent.")
def mcp() -> None:
    """Serve the three layers to an agent over MCP, on standard input and output.

    Agents start this themselves once they were told to; `palaver up` prints the command for Claude Code.
    """
    from palaver.agents.conversation import CONVERSATION
    from palaver.agents.server import serve
    from palaver.templates.render import Renderer

    if sys.stdin.isatty():
        click.echo("This talks to agents, not to people: it waits for MCP on standard input. Ctrl-C ends it.", err=True)
    serve(CONVERSATION, open_layers, Renderer(Home.find().templates), __version__)
