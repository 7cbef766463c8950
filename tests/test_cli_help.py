"""Tests for cli/program.py and the names of commands: help, completion, suggestions."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main

from .cases import for_each
from .commands import EVERY


def palaver(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="palaver")


@for_each("words", [(), *EVERY], label=lambda words: " ".join(words) or "palaver")
def test_help_can_be_asked_for_in_three_ways(words: tuple[str, ...]) -> None:
    """`-h`, `--help` and `palaver help COMMAND` print the same help."""
    long, short, asked = palaver(*words, "--help"), palaver(*words, "-h"), palaver("help", *words)

    assert long.exit_code == short.exit_code == asked.exit_code == 0
    assert long.stdout == short.stdout == asked.stdout
    assert "-h, --help" in long.stdout


def test_help_on_an_unknown_command_is_a_usage_error() -> None:
    """Help on an unknown command is a usage error that suggests the nearest command."""
    result = palaver("help", "serach")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "No such command 'serach'. Did you mean `palaver search`?" in result.stderr


@for_each(
    "typed, suggested",
    [
        ("serach", ". Did you mean `palaver search`?"),
        ("continue", ". Did you mean `palaver resume`?"),
        ("publish", ". Did you mean `palaver share`?"),
        ("browse", ". Did you mean `palaver view`?"),
        ("spend", ". Did you mean `palaver usage`?"),
        ("cost", ". Did you mean `palaver usage`?"),
        ("log", ". Did you mean `palaver sessions`?"),
        ("todo", ". Did you mean `palaver open`?"),
        ("recent", ". Did you mean `palaver sessions`?"),
        ("find", ". Did you mean `palaver search`?"),
        ("redct", ". Did you mean `palaver redact`?"),
        ("xylophone", ""),
    ],
)
def test_a_suggestion_is_close_or_a_known_synonym(typed: str, suggested: str) -> None:
    """A word that only shares letters with a command gets no suggestion."""
    assert palaver(typed).stderr.splitlines()[0] == f"palaver: No such command '{typed}'{suggested}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str) -> None:
    """The completion script of each shell calls `palaver` to get completions."""
    script = palaver("completion", shell)

    assert script.exit_code == 0
    assert "_PALAVER_COMPLETE" in script.stdout


def completed(words: str, position: int) -> list[str]:
    """Return the completions that bash offers, from a separate process that runs the shell script."""
    start = "from palaver.cli import main; main(prog_name='palaver')"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(position), "_PALAVER_COMPLETE": "bash_complete"}
    found = subprocess.run(
        [sys.executable, "-c", start], env=os.environ | asked, check=True, capture_output=True, text=True
    )
    return [row.partition(",")[2] for row in found.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    """Completion offers the names of commands, sub-commands and options."""
    assert completed("palaver re", 1) == ["read", "resume", "remember", "recall", "rebuild", "redact"]
    assert completed("palaver memories e", 2) == ["edit"]
    assert "--agent" in completed("palaver search --a", 2)
