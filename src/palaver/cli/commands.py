"""The commands, each loaded when it is asked for, and how their errors are worded for a person."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, cast

import click

from palaver import __version__
from palaver.core.errors import PalaverError

from .output import complain

COMMANDS: Final = {
    "up": "archive",
    "archive": "archive",
    "search": "layers",
    "show": "layers",
    "read": "layers",
    "timeline": "layers",
    "index": "documents",
    "documents": "documents",
    "remember": "memories",
    "recall": "memories",
    "memories": "memories",
    "forget": "forget",
    "context": "memories",
    "observe": "observe",
    "redact": "redact",
    "export": "export",
    "watch": "watch",
    "status": "status",
    "doctor": "doctor",
    "fsck": "fsck",
    "rebuild": "rebuild",
    "stats": "observe",
    "model": "model",
    "mcp": "mcp",
    "toolsets": "mcp",
    "setup": "setup",
}
"""Each command, in the order in which people need them, and the module here that has a function of its name."""


class Commands(click.Group):
    """Words our own errors for a person: what happened, and what to do next."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name]}", __package__)
        return cast(click.Command, getattr(module, cmd_name))

    def invoke(self, ctx: click.Context) -> Any:
        os.umask(0o077)  # whatever is made, here and by what is started from here, is nobody else's to read
        # What was archived can hold any character; a terminal that knows fewer shows `?` for the others.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except PalaverError as error:
            complain(f"palaver: {error}", error.hint)
            ctx.exit(1)
        except BrokenPipeError:
            # The reader has seen enough. What is still buffered must not fail again when Python closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except OSError as error:
            # A full disk, a folder whose rights were taken away: the person can help, a stack dump cannot.
            complain(f"palaver: {error.filename or 'error'}: {error.strerror or error}")
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("\npalaver: stopped. Nothing is lost; run the same command to go on.", err=True)
            ctx.exit(130)
        return result


@click.group(cls=Commands)
@click.version_option(__version__, package_name="palaver")
def main() -> None:
    """Find again what you and your coding agents said.

    Start with `palaver up`. Then three layers, each paid for only when needed: `search` finds, `show` tells, `read`
    quotes. Everything lies in the folder PALAVER_HOME and nothing leaves this machine. Nothing uses the network but
    `palaver model use`, which may download the model it is given, and `palaver observe` once you gave it a key and a
    budget.
    """
