"""What a command says when it fails: what happened and what to do next, in words or, where asked for, as JSON."""

import os
import re
import sys
from collections.abc import Sequence
from io import UnsupportedOperation
from typing import Final, NamedTuple

import click

from palaver.core.errors import InvalidInput, PalaverError
from palaver.templates.quote import line

from .output import complain, print_json

INTERRUPTED: Final = 130
FAILURES: Final = (PalaverError, click.ClickException, click.Abort, OSError, KeyboardInterrupt)
"""What a command may end with. Anything else is a fault of ours and shows where."""

_GOING_ON: Final = {"up", "archive", "index", "observe", "rebuild"}
"""The commands that go on where they were stopped."""
_STOPPED: Final = "Nothing is lost; run the same command to go on."
_IRREVERSIBLE: Final = {"--erase", "--erase-now", "--force"}
"""No typing error is guessed to be one of these."""
_INSTEAD: Final = {
    "forget": "Memories are forgotten at once by id; anything else shows a preview, which --confirm TOKEN confirms",
    "search": "To search for it: palaver search '\"{}\"'",
}
"""What an option that there is not may have been meant as, where no other is spelled like it."""
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Failure(NamedTuple):
    """What went wrong. `kind` is the error's name in `core/errors.py` as words (`store_missing`), or `failed`,
    `system`, `usage` or `interrupted`; `code` is what the command ends with.
    """

    kind: str
    message: str
    hint: str
    code: int


def tell(error: BaseException, typed: Sequence[str]) -> int:
    """Say what went wrong to whoever typed these words, and give back what to end with.

    JSON goes to standard output, where its reader waits; words go to standard error. A reader who has seen enough, as
    `head` has, is no failure.
    """
    if isinstance(error, BrokenPipeError):
        _drop_output()
        return 0
    unwritable = False
    if isinstance(error, OSError) and not error.filename and _is_unwritable():
        error, unwritable = OSError(error.errno, error.strerror, "standard output"), True
    failure = failure_of(error)
    if failure.code == INTERRUPTED and _GOING_ON.intersection(typed[:1]):
        failure = failure._replace(hint=_STOPPED)
    if _asks_for_json(typed) and not unwritable:
        told = {"kind": failure.kind, "message": line(failure.message), "hint": line(failure.hint)}
        try:
            print_json({"error": told})
        except OSError:  # as where the output is a full disk, which may be what failed
            _drop_output()
            complain(f"palaver: {failure.message}", failure.hint)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # nothing is wrong: who types no more than a group asks what it has
    elif isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo(f"\npalaver: stopped. {failure.hint}".rstrip(), err=True)
    else:
        complain(f"palaver: {failure.message}", failure.hint)
    return failure.code


def failure_of(error: BaseException) -> Failure:
    """What an error means to the person or program that called."""
    match error:
        case PalaverError():
            kind = "failed" if type(error) is PalaverError else _HUMPS.sub("_", type(error).__name__).lower()
            # A value is wrong in the same way whether click refuses it or the core does.
            return Failure(kind, str(error), error.hint, 2 if isinstance(error, InvalidInput) else 1)
        case click.NoSuchOption():
            return Failure("usage", _no_option(error), _usage(error.ctx), error.exit_code)
        case click.UsageError():
            return Failure("usage", error.format_message().removesuffix("."), _usage(error.ctx), error.exit_code)
        case click.ClickException():
            return Failure("failed", error.format_message(), "", error.exit_code)
        case KeyboardInterrupt() | click.Abort():  # click makes the latter of Ctrl-C or no more input at a prompt
            return Failure("interrupted", "stopped", "", INTERRUPTED)
        case OSError():
            # A full disk, a folder whose rights were taken away: the person can help, a stack dump cannot.
            told = error.strerror or str(error)
            return Failure("system", f"{error.filename}: {told}" if error.filename else told, "", 1)
        case _:
            raise error


def _is_unwritable() -> bool:
    """Whether standard output takes nothing more. What is left of what it was given goes nowhere then."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")  # what is longer than the buffer was lost when it was written
    except UnsupportedOperation:  # it is no file
        return False
    except OSError:
        _drop_output()
        return True
    return False


def _drop_output() -> None:
    """Have what is still buffered go nowhere: it must not fail again when Python closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _no_option(error: click.NoSuchOption) -> str:
    """That there is no such option, and what may have been meant."""
    safe = [option for option in error.possibilities or () if option not in _IRREVERSIBLE]
    guessed = click.NoSuchOption(error.option_name, error.message, safe).format_message()
    context = error.ctx
    if safe or context is None or context.parent is None or context.parent.parent is not None:
        return guessed.removesuffix(".")
    instead = _INSTEAD.get(str(context.info_name), "").format(error.option_name)
    return f"{guessed} {instead}".strip().removesuffix(".")


def _usage(context: click.Context | None) -> str:
    """How a command is called."""
    asked = f"`{context.command_path if context else 'palaver'} --help`"
    if context is None or isinstance(context.command, click.Group):
        return f"{asked} says how to call it."
    return f"{' '.join(context.get_usage().split())} ({asked} says more)"


def _asks_for_json(typed: Sequence[str]) -> bool:
    """Whether --json is among the options; what follows a bare `--` is none."""
    words = list(typed)
    return "--json" in (words[: words.index("--")] if "--" in words else words)
