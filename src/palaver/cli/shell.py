"""`palaver help` and `palaver completion`: help texts and shell completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

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
