"""The commands, each loaded when it is asked for: `palaver --help` needs none of them."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, cast

import click

from palaver import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTIONS: Final = {
    "Take in": {
        "up": ("archive", "Archive this user's agents, and say what to do next."),
        "archive": ("archive", "Archive files or folders of transcripts."),
        "watch": ("watch", "Archive what agents write as they write it."),
        "setup": ("setup", "Have Palaver started by itself."),
        "index": ("documents", "Make documents and code searchable."),
        "documents": ("documents", "List and forget indexed documents."),
    },
    "Find again": {
        "search": ("layers", "Layer 1: find, about 30 tokens a hit."),
        "show": ("layers", "Layer 2: everything known about a hit."),
        "read": ("layers", "Layer 3: the conversation itself."),
        "timeline": ("layers", "What stands just before and after a hit."),
    },
    "Hold to be true": {
        "remember": ("remember", "Hold something to be true."),
        "recall": ("memories", "Find what is held about something."),
        "memories": ("memories", "List, show, edit and undo memories."),
        "context": ("context", "What a new session should know."),
        "observe": ("observe", "Learn from what was archived, by rules or a model."),
    },
    "Give to agents": {
        "mcp": ("mcp", "Serve tools to an agent."),
        "toolsets": ("mcp", "List what `mcp --toolset` can serve."),
    },
    "Look after": {
        "status": ("status", "What is archived, and how far the index is."),
        "stats": ("observe", "What was spent on models, and what layers save."),
        "doctor": ("doctor", "Whether everything is well, and what to do."),
        "fsck": ("fsck", "Compare all that is kept, and repair it."),
        "rebuild": ("rebuild", "Make the index anew, or read every copy again."),
        "model": ("model", "Which embedding model gives meaning."),
        "export": ("export", "Get the agents' own files back, byte for byte."),
        "redact": ("redact", "Which kinds of secrets were taken out, and where."),
        "forget": ("forget", "Forget what was said or held; --erase leaves no byte."),
    },
}
"""Every command under the heading it is listed by: the module here that has a function of its name, and what it is for.

What it is for stands here and not beside the function, so that no module is loaded to list them.
"""

COMMANDS: Final = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}


class Commands(click.Group):
    """Loads a command when it is called, and has every failure told by `failures`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name]}", __package__)
        if not gc.isenabled():
            gc.freeze()  # what was loaded stays to the end
            gc.enable()
        return cast(click.Command, getattr(module, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for heading, section in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), told) for name, (_, told) in section.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        _open_closed()
        try:
            done = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort as stopped:  # by Ctrl-C before or after what `invoke` hears
            from .failures import tell

            done = tell(stopped, sys.argv[1:] if args is None else args)
        return sys.exit(done) if standalone_mode else done

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        typed = list(args)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except (click.UsageError, OSError) as error:  # the latter where help cannot be printed
            from .failures import tell

            sys.exit(tell(error, typed))
        context.meta[__name__] = typed
        return context

    def invoke(self, ctx: click.Context) -> Any:
        os.umask(0o077)  # whatever is made, here and by what is started from here, is nobody else's to read
        # What was archived can hold any character; a terminal that knows fewer shows `?` for the others.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        from .failures import FAILURES, tell

        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except FAILURES as error:
            ctx.exit(tell(error, ctx.meta[__name__]))
        return result


def _open_closed() -> None:
    """Have a stream that was closed beforehand (`>&-`) lead nowhere, or a file would get its number and its words."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


@click.group(cls=Commands)
@click.version_option(__version__, package_name="palaver")
def main() -> None:
    """Find again what you and your coding agents said.

    Start with `palaver up`. Then three layers, each paid for only when needed: `search` finds, `show` tells, `read`
    quotes. `palaver COMMAND --help` says more.

    Everything lies in the folder PALAVER_HOME and nothing leaves this machine. Nothing uses the network but
    `palaver model use`, which may download the model it is given, and once you gave it a key and a budget what asks a
    language model: `palaver observe`, and with `llm_judge = true` in config.toml also `palaver remember` and those
    tools of `palaver mcp` that compare memories.

    With --json a command prints JSON, when it fails, too: {"error": {"kind", "message", "hint"}}. It ends with 0 when
    all went well, with 1 when something did not, and with 2 when the call has to be corrected: an option, a value, a
    path that is not there, or an id that nothing has.
    """
