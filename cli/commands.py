"""Table of commands.

A command is imported only when it is called, so that `palaver --help` imports no command.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, cast

import click

from palaver import __version__

from ..core.text import similar_names
from .common_options import add_common_options, in_utc, is_utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

SECTIONS: Final = {
    "Ingest": {
        "up": ("archive", "Archive and index all your agents' history."),
        "archive": ("archive", "Archive files or folders of transcripts."),
        "watch": ("watch", "Archive transcripts as agents write them."),
        "sync": ("sync", "Share the archive with your other machines."),
        "index": ("documents", "Index documents and code for search."),
        "documents": ("documents", "Add, list and remove documents."),
        "observe": ("observe", "Extract observations by rules or by a model."),
    },
    "Search": {
        "ask": ("ask", "Answer a question with sources."),
        "search": ("search", "Search, with 30 to 35 tokens per hit."),
        "view": ("view", "Show the archive in a browser."),
        "sessions": ("sessions", "List sessions, the latest first."),
        "open": ("sessions", "List open items and next steps, the newest first."),
        "projects": ("sessions", "List projects with their number of sessions."),
        "show": ("search", "Show all details of hits or sessions."),
        "read": ("search", "Read the conversation of a hit."),
        "timeline": ("search", "Show the entries around a hit or of a session."),
        "fix": ("search", "Show what repaired an error before."),
        "how": ("search", "Show the commands that a project uses for a task."),
        "blame": ("blame", "Show which session and prompt wrote the lines of a file."),
    },
    "Reports": {
        "digest": ("digest", "Report what was done, decided, learned and left open."),
        "usage": ("usage", "Show your agents' tokens and their list price."),
    },
    "Continue": {
        "session": ("sessions", "Rename, tag and pin sessions."),
        "resume": ("resume", "Start the agent again in a session, even a deleted one."),
        "handoff": ("resume", "Write a brief with which another agent continues."),
        "share": ("share", "Write a session to a page, or notes to a vault."),
    },
    "Memories": {
        "remember": ("memories", "Store a memory."),
        "recall": ("memories", "Search memories."),
        "memories": ("memories", "List, show, edit and review memories."),
        "mnemonics": ("documents", "Choose which memory files to trust."),
        "context": ("memories", "Print memories and past results for a new session."),
    },
    "Agent integration": {
        "install": ("install", "Connect MCP clients and archive in the background."),
        "hooks": ("hooks", "Show and switch the hooks that inject text into sessions."),
        "mcp": ("mcp", "Serve tools to an agent."),
        "toolsets": ("mcp", "List the toolsets of `palaver mcp`."),
    },
    "Team": {
        "team": ("team", "Share with a team, on a server of your own."),
    },
    "Maintenance": {
        "status": ("status", "Show what is archived and indexed."),
        "formats": ("formats", "Report changes of transcript formats."),
        "stats": ("observe", "Show what Palaver's own model calls and texts cost."),
        "doctor": ("doctor", "Check for problems and suggest fixes."),
        "fsck": ("doctor", "Verify all stored data and repair damage."),
        "rebuild": ("doctor", "Rebuild the index, or re-parse the archive."),
        "migrate": ("doctor", "Convert the database of an earlier version."),
        "model": ("model", "Show or change the embedding model."),
        "export": ("export", "Export the agents' original files."),
        "redact": ("export", "List redacted secrets by kind and location."),
        "forget": ("forget", "Delete conversations or memories."),
    },
    "Help": {
        "help": ("program", "Show help for a command."),
        "completion": ("program", "Print the completion script for a shell."),
    },
}
"""Commands by heading: name, module, and summary. The module has a function with the name of the command."""

READING: Final = frozenset({
    "ask", "blame", "completion", "context", "digest", "doctor", "documents list", "export", "fix", "forget --list",
    "formats report",
    "fsck", "handoff", "help", "hooks run", "hooks status", "how", "install --print", "mcp", "memories graph",
    "memories history", "memories list", "memories review", "memories show", "mnemonics list", "model",
    "observe --estimate", "observe --preferences", "open", "projects", "read", "recall", "redact", "resume", "search",
    "sessions", "share", "show", "stats", "status", "sync --status", "team clean", "team create", "team invite",
    "team metrics", "team migrate", "team people", "team push --dry-run", "team remove", "team revoke", "team serve",
    "team share --dry-run", "team status", "team token", "timeline", "toolsets",
    "usage", "view",
})  # fmt: skip
"""Commands that run in read-only mode: they write nothing to the home. With an option, only that use of a command."""
WRITING: Final = frozenset({
    "archive", "documents add", "documents remove", "forget", "fsck --repair", "hooks off", "hooks on", "index",
    "install", "memories edit", "memories review --approve", "memories review --decline", "memories undo", "migrate",
    "mnemonics allow", "mnemonics disallow", "model use", "observe", "rebuild", "remember", "resume --undo",
    "session pin", "session rename", "session tag", "sync", "team join", "team leave", "team push", "team share",
    "team unshare", "up", "watch",
})  # fmt: skip
"""Commands that read-only mode refuses before they start."""

COMMANDS: Final = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}

_QUOTING: Final = SECTIONS["Search"].keys() | SECTIONS["Reports"].keys() | SECTIONS["Memories"].keys() | {"handoff"}
"""Commands that print archived text."""
_SYNONYMS: Final = {
    "search": "find grep query",
    "sessions": "history list log ls recent",
    "show": "info",
    "view": "browse gui ui web",
    "open": "next pending task tasks todo todos",
    "blame": "annotate attribution who",
    "read": "cat print transcript",
    "resume": "continue reopen restore",
    "handoff": "brief handover transfer",
    "share": "obsidian publish",
    "remember": "add note save",
    "memories": "memory",
    "forget": "delete remove rm",
    "archive": "import ingest sync",
    "export": "backup",
    "usage": "bill blocks cost costs daily monthly price prices spend tokens weekly",
    "digest": "report standup summary",
    "up": "init start",
    "install": "connect setup",
    "mcp": "serve",
    "rebuild": "reindex",
    "migrate": "convert upgrade",
}
"""Names that similar tools use, by the Palaver command that does the same."""


_WITHOUT_ARCHIVE: Final = frozenset({"up", "help", "completion", "toolsets"})
"""Commands that need no archive, or load it themselves."""


class _GuardedContext(click.Context):
    """Context that refuses a command that writes, if PALAVER_READ_ONLY is set."""

    def invoke(self, callback: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a command. See `click.Context.invoke`.

        Raises:
            StoreReadOnly: The command writes, and this process must not.
        """
        from ..core.errors import StoreReadOnly
        from ..core.home import Home, is_read_only_mode

        if is_read_only_mode() and (use := _writing_use(self)):
            hint = "Unset PALAVER_READ_ONLY to run it."
            raise StoreReadOnly(Home.find().root, f"`palaver {use}` has to write", hint=hint)
        return super().invoke(callback, *args, **kwargs)


def _writing_use(context: click.Context) -> str:
    """Return the use of a command that writes, such as `fsck --repair`, or an empty text if it only reads."""
    names: list[str] = []
    scope = context
    while scope.parent is not None:  # The first context is `palaver`, or `python -m palaver`.
        names.insert(0, scope.info_name or "")
        scope = scope.parent
    path = " ".join(names)
    used = [parameter for parameter in context.command.params if context.params.get(parameter.name or "")]
    uses = [f"{path} {option}" for parameter in used for option in parameter.opts]
    writing = next(filter(WRITING.__contains__, uses), "")
    return writing or (path if path in WRITING and READING.isdisjoint(uses) else "")


def _guard(command: click.Command) -> None:
    """Make a command and its subcommands refuse to write in read-only mode."""
    command.context_class = _GuardedContext
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _guard(each)


class Commands(click.Group):
    """Click group that imports a command when it is called, and reports all failures with `failures`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names of all commands in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, or return None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name]}", __package__)
        command = cast("click.Command", getattr(module, cmd_name))
        add_common_options(command, quotes=cmd_name in _QUOTING)
        _guard(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command for the arguments. For an unknown command, raise an error that suggests a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.UsageError(_unknown(error.command_name), ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing the command."""
        from click.shell_completion import CompletionItem

        about = {name: text for section in SECTIONS.values() for name, (_, text) in section.items()}
        found = [CompletionItem(name, help=text) for name, text in about.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, grouped under headings."""
        width = max(map(len, COMMANDS))
        for heading, section in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in section.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line. See `click.BaseCommand.main`."""
        _open_closed_streams()
        try:
            done = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort as stopped:  # Ctrl-C was pressed outside of `invoke`.
            from .output import report_failure

            done = report_failure(stopped, sys.argv[1:] if args is None else args)
        return sys.exit(done) if standalone_mode else done

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, and report usage errors."""
        arguments = list(args)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except (click.UsageError, OSError) as error:  # An OSError means that help cannot be printed.
            from .output import report_failure

            sys.exit(report_failure(error, arguments))
        context.meta[__name__] = arguments
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and report its failure."""
        os.umask(0o077)  # Files of this process and its child processes are readable only by the user.
        # Archived text can have any character; the terminal shows `?` for those it cannot encode.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        from .output import FAILURES, report_failure, wrapping
        from .time_zone import use_configured_zone

        with redirect_stdout(wrapping(sys.stdout)), redirect_stderr(wrapping(sys.stderr)):
            try:
                if not is_utc(ctx):
                    use_configured_zone()
                result = super().invoke(ctx)
                sys.stdout.flush()
            except FAILURES as error:
                ctx.exit(report_failure(error, ctx.meta[__name__]))
        return result


def _unknown(name: str) -> str:
    """Return the error message for an unknown command, with the most similar command."""
    close = [command for command, names in _SYNONYMS.items() if name in names.split()] or similar_names(name, COMMANDS)
    guess = f" Did you mean {' or '.join(f'`palaver {each}`' for each in close)}?" if close else ""
    return f"No such command '{name}'.{guess}"


def _open_closed_streams() -> None:
    """Open /dev/null in place of closed streams (`>&-`), so that other files cannot reuse their descriptors."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("--demo", is_flag=True, help="Use the sample archive instead of your own. The first use loads it.")
@in_utc
@click.pass_context
def main(ctx: click.Context, *, demo: bool) -> None:
    """Search and reuse your coding agents' conversations.

    Start with `palaver up`. Results come at three levels of detail: `search` lists hits, `show` prints their details,
    `read` prints the conversation.

    All data is stored in PALAVER_HOME. Palaver uses no network until you choose another model, a bucket or a team.

    Exit status: 0 success, 1 failure, 2 usage error, 130 interrupted. With --json, errors are JSON objects:
    {"error": {"kind", "message", "hint"}}.
    """
    if demo:
        from .demo import use_demo

        use_demo(load=ctx.invoked_subcommand not in _WITHOUT_ARCHIVE)
