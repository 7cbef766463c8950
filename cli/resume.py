"""`palaver resume` and `palaver handoff`: continue a session with its agent, or with another one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from ..archiver.copies.restorer import SessionRestorer
from ..archiver.formats.resume_commands import COMMANDS, ResumeCommand, shell_line
from ..archiver.redaction import Redactor
from ..core.errors import InvalidInput, PalaverError
from ..core.home import Home
from ..core.reports import Handoff, many
from ..observe.session_handoff import HandoffWriter
from ..search.archive_search import ArchiveSearch
from ..templates.quote import line
from .output import as_json, is_interactive, print_json, print_message, print_page, renderer, unwrapped
from .search import open_layers

_CLIPBOARDS: Final = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--input", "--clipboard"),
    ("clip.exe",),
)
"""Programs that copy their input to the clipboard, in the order in which they are tried."""
_PROMPTED: Final = sorted(agent for agent, command in COMMANDS.items() if command.prompted)
"""Agents that can start with a prompt."""
_folder = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    metavar="DIR",
    help="Folder to start the agent in, if the project has moved.",
)


@click.command()
@click.argument("session", metavar="SESSION")
@_folder
@click.option("--print", "printed", is_flag=True, help="Print the shell command instead of running it.")
@click.option("--yes", is_flag=True, help="Restore deleted files without asking.")
@click.option("--undo", is_flag=True, help="Remove the files that an earlier resume restored, unless they changed.")
@as_json
def resume(*, session: str, folder: Path | None, printed: bool, yes: bool, undo: bool, as_json: bool) -> None:
    """Start the agent again in a session, with its own option to resume.

    SESSION is a session ID or its first characters. The agent is started in the folder of the session. If the agent has
    deleted the session, the command offers to restore its files from the archive first, byte for byte. Files that exist
    are never changed. If the agent cannot resume the session, the command prints a brief for another agent.

    --print and --json only show the command. They restore nothing.
    """
    home = Home.find()
    with open_layers(home) as layers:
        restorer = SessionRestorer(home, layers.store, layers.session_number(session))
        if undo:
            _print_removed(restorer.undo(), as_json=as_json)
            return
        command, path = _command_of(restorer), restorer.source().path
        missing = restorer.missing()
        if missing and command is not None and not command.one_file:
            command = None
        if command is None:
            _print_brief_instead(home, layers, restorer, printed=printed or as_json)
            return
        if missing:
            restorer.check()
        start = _folder_for(restorer.session.cwd, folder, may_ask=not (printed or as_json))
        arguments = command.arguments(restorer.session, path, start)
        if not arguments:
            raise InvalidInput(
                f"{restorer.session.agent} cannot resume this session in another folder than {restorer.session.cwd}",
                hint=f"Start a new session from a summary: palaver handoff {session} --to AGENT",
            )
        if printed or as_json:
            _print_command(arguments, start, len(missing), as_json=as_json)
            return
        _check_program(arguments)
        if missing:
            _restore(restorer, len(missing) + len(restorer.missing_results()), path, yes=yes)
    _start(arguments, start)


def _command_of(restorer: SessionRestorer) -> ResumeCommand | None:
    """Return the command of the session's agent, or None if it cannot resume the session.

    Raises:
        InvalidInput: The session belongs to a sub-agent, which agents resume only with the session that started it.
    """
    session = restorer.session
    if session.kind != "main":
        parent = session.parent_id or "SESSION"
        raise InvalidInput(
            "This is the session of a sub-agent", hint=f"Resume the session that started it: palaver resume {parent}"
        )
    command = COMMANDS.get(session.agent)
    return command if command is not None and command.can_resume(session, restorer.source().path) else None


def _print_brief_instead(home: Home, layers: ArchiveSearch, restorer: SessionRestorer, *, printed: bool) -> None:
    """Print the brief of a session that cannot be resumed, or fail if the caller expects a command."""
    reason = f"{restorer.session.agent} cannot resume this session"
    command = f"palaver handoff {restorer.session.native_id} --to AGENT"
    if restorer.missing():
        reason = f"{restorer.session.agent} has deleted this session, and it is not stored in one file"
    if printed:
        raise InvalidInput(reason, hint=f"Start a new session from a summary: {command}")
    print_message(f"{reason}. Here is a brief for another agent. To start one with it: {command}")
    print_page(renderer().handoff(_brief(home, layers, restorer.number)))


def _folder_for(session_folder: str, option: Path | None, *, may_ask: bool) -> Path:
    """Return the folder to start an agent in: `option`, or else the folder of the session, or else ask for it.

    Raises:
        InvalidInput: The folder of the session does not exist, and nobody can be asked.
    """
    if option is not None:
        return option
    if session_folder and Path(session_folder).is_dir():
        return Path(session_folder)
    problem = "The folder of the session is unknown"
    if session_folder:
        problem = f"The folder of the session does not exist: {session_folder}"
    if not (may_ask and is_interactive()):
        raise InvalidInput(problem, hint="If the project has moved, name its folder with --folder DIR.")
    existing = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
    return Path(click.prompt(f"{line(problem)}\nFolder of the project now", type=existing))


def _restore(restorer: SessionRestorer, files: int, path: Path, *, yes: bool) -> None:
    """Restore the files of a session if the user agrees.

    Raises:
        InvalidInput: The user cannot be asked, because no terminal is connected.
        Abort: The user does not agree.
    """
    agent = restorer.session.agent
    if not yes:
        if not is_interactive():
            raise InvalidInput(
                f"{agent} has deleted this session, and there is no terminal to ask whether to restore it",
                hint="Add --yes to restore it without a question.",
            )
        click.echo(f"{agent} has deleted this session. The archive has {many(files, 'file')} of it:\n{line(str(path))}")
        if not click.confirm("Restore?"):
            raise click.Abort
    restored = restorer.restore()
    undo = f"palaver resume {restorer.session.native_id} --undo"
    print_message(f"Restored {many(len(restored), 'file')} in the folder of {agent}. To remove: {undo}")


def _check_program(arguments: list[str]) -> None:
    """Raise `InvalidInput` if the program is not installed."""
    if shutil.which(arguments[0]) is None:
        raise InvalidInput(f"{arguments[0]} is not installed, or not on PATH", hint="Install it, then run this again.")


def _start(arguments: list[str], folder: Path) -> None:
    """Replace this process by a program in a folder. No shell is involved."""
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(arguments[0], arguments)  # noqa: S606 - the ID is checked, and each argument stays one argument


def _print_command(arguments: list[str], folder: Path, missing: int, *, as_json: bool) -> None:
    if as_json:
        print_json({
            "command": arguments, "folder": folder, "line": shell_line(arguments, folder), "missing_files": missing,
        })  # fmt: skip
        return
    if missing:
        print_message("The agent has deleted this session. To restore it first, run this without --print.")
    click.echo(shell_line(arguments, folder), file=unwrapped(sys.stdout))  # A line break would end the command.


def _print_removed(paths: list[Path], *, as_json: bool) -> None:
    if as_json:
        print_json({"removed": paths})
        return
    for path in paths:
        click.echo(f"Removed: {line(str(path))}")


@click.command()
@click.argument("session", metavar="SESSION")
@click.option("--to", "agent", type=click.Choice(_PROMPTED), help="Start this agent with the brief as prompt.")
@_folder
@click.option("--print", "printed", is_flag=True, help="Print the brief (default without --to).")
@click.option("--copy", "copied", is_flag=True, help="Copy the brief to the clipboard.")
@as_json
def handoff(
    *, session: str, agent: str | None, folder: Path | None, printed: bool, copied: bool, as_json: bool
) -> None:
    """Write a brief about a session, so that another agent can continue it.

    SESSION is a session ID or its first characters. The brief has at most 2,000 tokens: goal, state, decisions, what
    failed, open items, and the changed files with their hashes. Each line names its source. Secrets are redacted, and
    text that neither you nor the agent wrote is marked as quoted.

    With --to, the agent is started in the folder of the session, with the brief as its first prompt.
    """
    if printed + copied + as_json > 1:
        raise click.UsageError("--print, --copy and --json cannot be combined.")
    home = Home.find()
    with open_layers(home) as layers:
        number = layers.session_number(session)
        brief, session_folder = _brief(home, layers, number, folder), layers.store.sessions.load(number).cwd
    if as_json:
        print_json(brief)
        return
    page = renderer().handoff(brief)
    if copied:
        _copy(page)
    elif agent is None or printed:
        print_page(page)
    else:
        arguments = COMMANDS[agent].arguments_with(page)
        _check_program(arguments)
        _start(arguments, _folder_for(session_folder, folder, may_ask=True))


def _brief(home: Home, layers: ArchiveSearch, number: int, folder: Path | None = None) -> Handoff:
    return HandoffWriter(layers.store, Redactor(home.key())).brief(number, folder)


def _copy(page: str) -> None:
    """Copy a page to the clipboard. Raises `PalaverError` if no program does this."""
    command = next((command for command in _CLIPBOARDS if shutil.which(command[0])), None)
    if command is None:
        raise PalaverError(
            "No program for the clipboard was found", hint="Install wl-copy, xclip or xsel, or use --print."
        )
    try:
        subprocess.run(command, input=page.encode(), check=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        raise PalaverError(f"{command[0]} could not copy the brief: {error}", hint="Use --print instead.") from None
    print_message(f"Copied the brief with {command[0]}.")
