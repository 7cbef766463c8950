"""`palaver help` and `completion`, the shell command that runs this installation, and stop signals.

The command is for the user's shell and for agents. Stop signals are Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from shutil import which
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

import click

from ..core.home import DEMO_FOLDER, Home

if TYPE_CHECKING:
    from collections.abc import Sequence


def command_of(home: Home) -> str:
    """Return the shell command that runs Palaver with a given home."""
    called = Path(sys.argv[0])
    found = which(called.name)
    if called.name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m palaver"
    elif found is not None and Path(found).samefile(called):
        program = called.name
    else:
        program = shlex.quote(str(called))
    own, demo = (Home(home.root.parent), ["--demo"]) if home.root.name == DEMO_FOLDER else (home, [])
    return " ".join((*_home_setting(own), program, *demo))


def program_words() -> list[str]:
    """Return the words of the command that runs Palaver from any folder."""
    called = Path(sys.argv[0]).absolute()
    return [sys.executable, "-m", "palaver"] if called.name == "__main__.py" else [str(called)]


def _home_setting(home: Home) -> list[str]:
    """Return `PALAVER_HOME=…` in a list if the command needs it to select a home, or else an empty list."""
    return [] if home == Home.default() else [f"PALAVER_HOME={shlex.quote(str(home.root))}"]


_SHELLS: Final = ("bash", "zsh", "fish")


@click.command("help")
@click.argument("command", nargs=-1)
@click.pass_context
def help(context: click.Context, command: Sequence[str]) -> None:  # noqa: A001 - the name of the command
    """Show help for Palaver or a COMMAND, for example `palaver help memories edit`."""
    shown = context.find_root()
    for name in command:
        if not isinstance(shown.command, click.Group):
            break
        _, found, _ = shown.command.resolve_command(shown, [name])
        shown = click.Context(cast("click.Command", found), parent=shown, info_name=name)
    click.echo(shown.get_help())


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in bash, zsh or fish.

    bash: echo 'eval "$(palaver completion bash)"' >> ~/.bashrc

    zsh: echo 'eval "$(palaver completion zsh)"' >> ~/.zshrc

    fish: palaver completion fish > ~/.config/fish/completions/palaver.fish
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(context.find_root().command, {}, "palaver", "_PALAVER_COMPLETE").source().encode())


class StopSignal:
    """Handler that records a stop signal and raises KeyboardInterrupt.

    Python discards an exception that is raised in a callback of a C library or in a destructor. Long-running work
    therefore also calls `check`. A second signal ends the process at once.
    """

    def __init__(self) -> None:
        self._received = False

    def install(self) -> None:
        """Handle Ctrl-C and SIGTERM in this process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop signal was received."""
        if self._received:
            raise KeyboardInterrupt

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._received = True
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt
