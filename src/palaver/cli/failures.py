"""Error messages of commands, as text or JSON, with the problem and the next step."""

import os
import re
import sys
from collections.abc import Sequence
from io import UnsupportedOperation
from typing import Final, NamedTuple

import click

from palaver.core.errors import InvalidInput, PalaverError
from palaver.templates.quote import line

from .output import print_json, print_message

INTERRUPTED: Final = 130
FAILURES: Final = (PalaverError, click.ClickException, click.Abort, OSError, KeyboardInterrupt)
"""Expected errors. All other errors are bugs and show a traceback."""

_RESUMABLE: Final = {"up", "archive", "index", "observe", "rebuild"}
"""Commands that can resume after an interrupt."""
_RESUME_HINT: Final = "No data is lost. Run the same command again to resume."
_IRREVERSIBLE: Final = {"--erase", "--erase-now", "--force"}
"""Options that are never suggested as the correction of a typo."""
_ALTERNATIVES: Final = {
    "forget": "To confirm a preview: --confirm TOKEN",
    "search": "To search for this text: palaver search '\"{}\"'",
}
"""Advice for an unknown option of a command, if no similar option exists."""
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Failure(NamedTuple):
    """Failure of a command.

    `kind` is the class in `core/errors.py` in snake case (`store_missing`), or `failed`, `system`, `usage` or
    `interrupted`. `code` is the exit status.
    """

    kind: str
    message: str
    hint: str
    code: int


def report_failure(error: BaseException, arguments: Sequence[str]) -> int:
    """Print the error message and return the exit status. `arguments` are the command-line arguments.

    JSON is printed to standard output, and text to standard error. A closed pipe, as with `head`, is not a failure.
    """
    if isinstance(error, BrokenPipeError):
        _drop_output()
        return 0
    unwritable = False
    if isinstance(error, OSError) and not error.filename and _is_unwritable():
        error, unwritable = OSError(error.errno, error.strerror, "standard output"), True
    failure = failure_of(error)
    if failure.code == INTERRUPTED and _RESUMABLE.intersection(arguments[:1]):
        failure = failure._replace(hint=_RESUME_HINT)
    if _asks_for_json(arguments) and not unwritable:
        shown = {"kind": failure.kind, "message": line(failure.message), "hint": line(failure.hint)}
        try:
            print_json({"error": shown})
        except OSError:  # The cause may be a full disk, which may also be the cause of the failure.
            _drop_output()
            print_message(f"palaver: {failure.message}", failure.hint)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # A group without a command shows its help.
    elif isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo(f"\npalaver: stopped. {failure.hint}".rstrip(), err=True)
    else:
        print_message(f"palaver: {failure.message}", failure.hint)
    return failure.code


def failure_of(error: BaseException) -> Failure:
    """Return the kind, message, hint and exit status to report for an error."""
    match error:
        case PalaverError():
            kind = "failed" if type(error) is PalaverError else _WORD_START.sub("_", type(error).__name__).lower()
            # Invalid values have the same status, whether click or the core rejects them.
            return Failure(kind, str(error), error.hint, 2 if isinstance(error, InvalidInput) else 1)
        case click.NoSuchOption():
            return Failure("usage", _no_option(error), _usage(error.ctx), error.exit_code)
        case click.UsageError():
            return Failure("usage", error.format_message().removesuffix("."), _usage(error.ctx), error.exit_code)
        case click.ClickException():
            return Failure("failed", error.format_message(), "", error.exit_code)
        case KeyboardInterrupt() | click.Abort():  # click raises Abort for Ctrl-C, or at the end of input.
            return Failure("interrupted", "stopped", "", INTERRUPTED)
        case OSError():
            reason = error.strerror or str(error)
            return Failure("system", f"{error.filename}: {reason}" if error.filename else reason, "", 1)
        case _:
            raise error


def _is_unwritable() -> bool:
    """Return whether writing to standard output fails. In that case, discard the buffered output."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")  # raises if the buffer was written before
    except UnsupportedOperation:  # not a file
        return False
    except OSError:
        _drop_output()
        return True
    return False


def _drop_output() -> None:
    """Discard buffered output, so that Python does not fail again when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _no_option(error: click.NoSuchOption) -> str:
    """Return the error message for an unknown option, with similar options.

    No option is suggested if the most similar one is irreversible, because the user probably meant that one.
    """
    similar = error.possibilities or []  # the most similar option is first
    safe = [option for option in similar if not _IRREVERSIBLE.intersection([*similar[:1], option])]
    guessed = click.NoSuchOption(error.option_name, error.message, safe).format_message()
    context = error.ctx
    if safe or context is None or context.parent is None or context.parent.parent is not None:
        return guessed.removesuffix(".")
    alternative = _ALTERNATIVES.get(str(context.info_name), "").format(error.option_name)
    return f"{guessed} {alternative}".strip().removesuffix(".")


def _usage(context: click.Context | None) -> str:
    """Return the hint that shows how to get help for a command."""
    help_command = f"`{context.command_path if context else 'palaver'} --help`"
    if context is None or isinstance(context.command, click.Group):
        return f"Try {help_command}."
    return f"{' '.join(context.get_usage().split())} (see {help_command})"


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether --json occurs before a bare `--`."""
    words = list(arguments)
    return "--json" in (words[: words.index("--")] if "--" in words else words)
