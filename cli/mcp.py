"""`palaver mcp` and `palaver toolsets`: serve tools to agents."""

import os
import signal
import sys
from functools import partial
from types import FrameType

import click
from msgspec.structs import replace

from palaver import __version__

from ..agents.toolset import TOOLSETS, ServedTools, ServerConfig, find_toolset
from ..archiver.documents.document_folders import usual_roots
from ..core.home import Home
from ..observe.archive import Archive
from ..templates.render import Renderer
from .command_server import keep_answering
from .language_model import judge_factory
from .output import INTERRUPTED, as_json, print_json
from .program import program_words

DEFAULT_PORT = 8346
"""Port of `palaver mcp --http` without a number."""


@click.command()
@click.option(
    "--toolset",
    default="conversation",
    show_default=True,
    metavar="NAME[,NAME...]",
    help="Toolsets to serve. `palaver toolsets` lists all toolsets.",
)
@click.option("--prefix", is_flag=True, help="Prefix each tool name with its toolset, as in theo_search.")
@click.option("--underscores", is_flag=True, help="Replace dots in tool names, as in context_store.")
@click.option(
    "--read-only",
    is_flag=True,
    help="Change no byte of Palaver's data. Tools that write return an error. Also with PALAVER_READ_ONLY=1.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65_535),
    is_flag=False,
    flag_value=DEFAULT_PORT,
    metavar="[PORT]",
    help=f"Serve HTTP to clients on this machine, on PORT (default: {DEFAULT_PORT}, 0: any free port).",
)
def mcp(*, toolset: str, prefix: bool, underscores: bool, read_only: bool, port: int | None) -> None:
    """Serve search or other toolsets to an agent over MCP on standard input and output.

    Agents start this command themselves, after `palaver install` added it to their configuration. With --http, one
    server serves several clients. Each sends the token that is printed at the start.
    """
    # The SDK takes seconds to load, and the thread that waits for stdin cannot be interrupted. So Ctrl-C ends the
    # process immediately. No data is lost, because all data is stored in transactions.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    names = dict.fromkeys(name.strip() for name in toolset.split(","))
    served = ServedTools.of([find_toolset(name) for name in names], prefix=prefix, underscores=underscores)
    config = _server_config(read_only=read_only)
    keep_answering(config.home)
    # These imports are slow, because they load the SDK.
    if port is not None:
        from ..agents.http_server import serve_http
        from ..viewer.server import viewer_at

        viewer = partial(viewer_at, Archive(config.home), __version__, announce=_announce_viewer)
        serve_http(served, config, __version__, port, partial(_announce, config.home), viewer)
        return
    from ..agents.server import serve

    if sys.stdin.isatty():
        click.echo(
            "Waiting for an MCP client on standard input. Agents start this command themselves. Press Ctrl-C to stop.",
            err=True,
        )
    serve(served, config, __version__)


def _server_config(*, read_only: bool) -> ServerConfig:
    home = Home.find()
    home = replace(home, read_only=read_only or home.read_only)
    archive = Archive(home)
    if not home.read_only:
        archive.make_judge = judge_factory(archive)
    return ServerConfig(
        archive,
        Renderer(home.templates),
        usual_roots(archive.config.document_roots),
        background=not home.read_only,
        program=tuple(program_words()),
    )


def _announce(home: Home, address: str, token: str) -> None:
    saved = (
        f" It is stored in {home.http_token}." if home.http_token.exists() else " It is valid until the server ends."
    )
    click.echo(f"Serving MCP at {address}. Press Ctrl-C to stop.", err=True)
    click.echo(f"Clients need this header: Authorization: Bearer {token}", err=True)
    click.echo(f"Keep the token secret.{saved}", err=True)


def _announce_viewer(link: str) -> None:
    click.echo(f"To see the archive in a browser, open this link, which works once: {link}", err=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\npalaver: stopped.\n")
    os._exit(INTERRUPTED)


@click.command()
@as_json
def toolsets(*, as_json: bool) -> None:
    """List the toolsets of `palaver mcp --toolset`, with their tools and their token cost per session."""
    found = [find_toolset(name) for name in TOOLSETS]
    if as_json:
        named = ((each, [tool.name for tool in each.tools]) for each in found)
        print_json({"toolsets": [{"name": each.name, "tokens": each.tokens, "tools": names} for each, names in named]})
        return
    for each in found:
        names = ", ".join(tool.name for tool in each.tools)
        purpose, _, _ = each.instructions.partition(". ")
        click.echo(f"{each.name}: {purpose} ({len(each.tools)} tools, {each.tokens:,} tokens)")
        click.echo(f"  {names}")
    click.echo("To serve toolsets to an agent, run: palaver mcp --toolset NAME[,NAME...]")
