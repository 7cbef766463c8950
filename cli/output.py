"""Output of commands: pages, JSON, error messages, progress bars, line breaks, and shared options.

Error messages, as text or JSON, contain the problem and the next step. At a terminal, lines break between words,
because the terminal itself breaks long lines within words.
"""

import codecs
import io
import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TextIO, TypeVar, cast

import click
import orjson

from ..core.command_socket import need_own_process
from ..core.errors import InvalidDate, InvalidInput, PalaverError
from ..core.home import Home
from ..core.results import BUDGET
from ..core.time_expressions import end_of, start_of
from ..templates.json_output import to_json
from ..templates.quote import clean, line
from ..templates.render import Renderer
from .common_options import is_plain

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.progress import Progress, TaskID

STYLE: Final = re.compile(r"\x1b\[[\d;]*m")
_CONTROL: Final = re.compile(r"\r|\x1b(?!\[[\d;]*m)")
"""Pattern for text that moves the cursor, such as that of progress bars."""
_COMMAND: Final = re.compile(r"\s*(?:[A-Z_]+=\S+ )*\S*palaver ")
"""Pattern for a row that is a command. A line break in it would remain when the user copies the command."""
_PIECE: Final = re.compile(r"\s+|(?:`[^`]*`|[^\s`]|`)+")
"""Pattern for whitespace, or for a word. Text between backquotes counts as one word, because it can be a command."""
_LEAD: Final = re.compile(r"\s*(?:[-*>] |\d+[.)] )?")
_COLUMN: Final = re.compile(r"\w[\w ]{,20}?  +(?=\S)")
"""Pattern for the first column of a table."""
_ID_LEAD: Final = re.compile(r"(?:(?:obs|ex|chunk)-|(?:mem|chunk|cand)_)\w+ |[\w…/-]{4,} \d{4}-\d\d-\d\d ")
"""Pattern for the beginning of a row of a list: the ID of an entry, or a session and its date."""
_LIST_INDENT: Final = 4
_EVERY: Final = 10.0
"""Seconds between two lines of progress without a terminal."""
_MARKER: Final = re.compile(r"</?recalled[\w-]*>\n?")
_HEADING: Final = re.compile(r"#{1,6} (.+)")
_FIELD: Final = re.compile(r"# ([A-Z][a-z]+: )(.+)")
_GROUP: Final = re.compile(r"\[[^]\n]+\]")
_COST: Final = re.compile(r"~[\d,]+ tokens\b.*")
_ID: Final = re.compile(r"(?:obs|ex|chunk)-\d+|(?:mem|chunk)_\d+")
_SESSION: Final = re.compile(r"(?!- )\S+(?= \d{4}-\d\d-\d\d )")
_STRONG: Final = re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)")
_ESCAPED: Final = re.compile(r"\\(?=[#=\-*_\[])")
_BOLD, _DIM, _CYAN, _END = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
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
_SIMILAR: Final = 0.7
"""Minimum similarity of a suggested option, from 0 to 1."""
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the output and errors as JSON.")
_CALENDAR: Final = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_Paths = TypeVar("_Paths", str, Sequence[str])


def wrapped(text: str, width: int) -> str:
    """Return the text with line breaks between words, so that rows have at most `width` columns if possible.

    Further lines of a row are indented as far as its text. Words that are longer than a line stay whole.
    """
    return "\n".join(part for row in text.split("\n") for part in _wrapped_row(row, width))


def is_interactive() -> bool:
    """Return whether a user can be asked: standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def screen_width() -> int:
    """Return the number of columns of the terminal."""
    return max(shutil.get_terminal_size().columns, 20)


def wrapping(stream: TextIO) -> TextIO:
    """Return a stream that wraps text at the width of the terminal, or the stream itself if it is no terminal."""
    return cast("TextIO", _WrappedStream(stream)) if stream.isatty() else stream


def unwrapped(stream: TextIO) -> TextIO:
    """Return the stream below a wrapping stream, for text whose lines must stay whole."""
    return stream.unwrapped if isinstance(stream, _WrappedStream) else stream


class _WrappedStream(io.TextIOBase):
    """Text stream to a terminal. Bytes, such as JSON, are written to `buffer` and not wrapped."""

    def __init__(self, stream: TextIO) -> None:
        self.unwrapped = stream

    @property
    def buffer(self) -> BinaryIO:
        return self.unwrapped.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override] # typeshed declares an attribute
        return self.unwrapped.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.unwrapped.errors

    def write(self, text: str, /) -> int:
        self.unwrapped.write(text if _CONTROL.search(text) else wrapped(text, screen_width()))
        return len(text)

    def flush(self) -> None:
        self.unwrapped.flush()

    def isatty(self) -> bool:
        return self.unwrapped.isatty()

    def fileno(self) -> int:
        return self.unwrapped.fileno()


def _wrapped_row(row: str, width: int) -> Iterator[str]:
    if (len(row) <= width and row.isascii()) or _columns(row) <= width or _COMMAND.match(row):
        yield row
        return
    indent = " " * min(_indent(STYLE.sub("", row)), width // 3)
    line = ""
    for piece in _pieces(row, width - len(indent)):
        if not (_LEAD.fullmatch(line) or piece.isspace()) and _columns(line + piece) > width:
            yield line.rstrip()
            line = indent
        if not (piece.isspace() and line == indent and indent):
            line += piece
    yield line.rstrip()


def _pieces(row: str, longest: int) -> Iterator[str]:
    """Yield the words and the spaces of a row. Text between backquotes is split if it is longer than a line."""
    for piece in _PIECE.findall(row):
        yield from [piece] if _columns(piece) <= longest else re.findall(r"\s+|\S+", piece)


def _indent(row: str) -> int:
    if _ID_LEAD.match(row):
        return _LIST_INDENT
    lead = _COLUMN.match(row) or _LEAD.match(row)
    return lead.end() if lead else 0


def _columns(text: str) -> int:
    """Return the number of columns of a text at a terminal."""
    plain = STYLE.sub("", text)
    return len(plain) if plain.isascii() else sum(map(_column, plain))


def _column(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def print_message(*rows: str) -> None:
    """Print a message to standard error, without control characters."""
    for row in filter(None, map(line, rows)):
        click.echo(row, err=True)


def renderer(budget: int = BUDGET) -> Renderer:
    """Return a renderer for users. Its pages refer to commands instead of tools, and have full titles at a terminal."""
    return Renderer(Home.find().templates, at_shell=True, full_titles=sys.stdout.isatty(), budget=budget)


def print_json(value: object) -> None:
    """Print one line of JSON: an object of `core`, or a mapping that contains such objects."""
    click.echo(orjson.dumps(to_json(value)))


def print_page(page: str) -> None:
    """Print a rendered page: with styles at a terminal, as Markdown in a pipe, or without both for `--plain`.

    At a terminal, a page that is longer than the screen opens in a pager (`PAGER`, by default `less`).
    """
    if is_plain():
        click.echo(STYLE.sub("", styled(page)), nl=False)
    elif not sys.stdout.isatty():
        click.echo(page, nl=False)
    else:
        size = shutil.get_terminal_size()
        screen = wrapped(styled(page), screen_width())
        if screen.count("\n") < size.lines:
            click.echo(screen, nl=False)
        else:
            need_own_process()  # The pager reads the keyboard.
            os.environ.setdefault("LESS", "-FRX")  # as git does: the text stays on the screen
            click.echo_via_pager(screen)


def without_marks(page: str) -> str:
    """Return a page without the markers and escapes that tell an agent which text is archived."""
    return _MARKER.sub("", page).replace("&lt;", "<").replace("&#91;", "[")


def styled(page: str) -> str:
    """Return a page with terminal styles instead of Markdown. If NO_COLOR is set, omit all styles (no-color.org)."""
    rows = "\n".join(map(_styled_row, without_marks(page).split("\n")))
    return STYLE.sub("", rows) if os.environ.get("NO_COLOR") else rows


def _styled_row(row: str) -> str:
    """Return one row of a page with its styles. The first matching rule applies."""
    if field := _FIELD.fullmatch(row):
        return f"{_DIM}{field[1]}{_END}{field[2]}"
    if heading := _HEADING.fullmatch(row):
        return f"{_BOLD}{heading[1]}{_END}"
    if _GROUP.fullmatch(row):
        return f"{_BOLD}{row}{_END}"
    if row == "---" or _COST.fullmatch(row):
        return f"{_DIM}{row}{_END}"
    if lead := _ID.match(row) or _SESSION.match(row):
        return f"{_CYAN}{lead[0]}{_END}{row[lead.end() :]}"
    return _STRONG.sub(rf"{_BOLD}\1{_END}", _ESCAPED.sub("", row, count=1) if row.startswith("\\") else row)


def raw_output() -> BinaryIO:
    """Return a binary stream that writes to standard output. At a terminal, it removes control characters."""
    return cast("BinaryIO", _TerminalOutput()) if sys.stdout.isatty() else sys.stdout.buffer


class _TerminalOutput(io.RawIOBase):
    """Stream that decodes bytes and writes text without control characters to the terminal.

    `io.BytesIO` is no base for it, because its `writelines` does not call an overridden `write`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: "ReadableBuffer", /) -> int:
        unwrapped(sys.stdout).write(clean(self._decoder.decode(bytes(data))))
        return memoryview(data).nbytes


class ProgressBars:
    """Progress bars, one for each stage that has work. Without a terminal, a line is printed every `_EVERY` seconds."""

    def __init__(self, progress: "Progress | None" = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock, self._shown = progress, clock, clock()
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Update the bar of a stage to `done` of `total` steps."""
        if self._progress is None:
            if total and self._clock() - self._shown >= _EVERY:
                self._shown = self._clock()
                click.echo(f"{stage}: {done:,} of {total:,}", err=True)
            return
        if not total:
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Hide the bars while other output is printed."""
        if self._progress is None:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


@contextmanager
def progress_bars() -> Generator[ProgressBars]:
    """Show progress bars while the block runs, and remove them at its end."""
    if not sys.stderr.isatty():
        yield ProgressBars()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield ProgressBars(progress)


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
        fields = {"kind": failure.kind, "message": line(failure.message), "hint": line(failure.hint)}
        try:
            print_json({"error": fields})
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
    """Return the error message for an unknown option, with the most similar option.

    No option is suggested if the most similar one is irreversible, because the user probably meant that one.
    """
    similar = get_close_matches(error.option_name, error.possibilities or [], cutoff=_SIMILAR)  # best first
    safe = [option for option in similar if not _IRREVERSIBLE.intersection([*similar[:1], option])]
    guessed = click.NoSuchOption(error.option_name, error.message, safe[:1]).format_message()
    context = error.ctx
    if error.option_name == "--json" and context is not None and context.parent is None:
        return "The option --json follows the command: palaver search WORDS --json"
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


def date_option(*names: str, last: bool = False, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 - click's name
    """Return an option for a date. A time expression means its first day or, with `last`, its last day."""
    parse = end_of if last else start_of

    def check(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
        """Return the value unchanged. Raise `InvalidDate`, with the name of the option, for an invalid date."""
        if value is None:
            return None
        try:
            parse(value)
        except InvalidDate as error:
            day = _CALENDAR.fullmatch(value)
            problem = f"no such {'day' if day[1] else 'month'}: {value}" if day else f"invalid date '{value}'"
            raise InvalidDate(error.text, hint=error.hint, message=f"{'/'.join(option.opts)}: {problem}") from None
        return value

    return click.option(*names, metavar="DATE", callback=check, help=help)


def not_empty(_context: click.Context, _parameter: click.Parameter, value: _Paths) -> _Paths:
    """Return the paths unchanged.

    Raises:
        click.BadParameter: A path is empty, for example because of an unset shell variable.
    """
    if "" in ([value] if isinstance(value, str) else value):
        raise click.BadParameter("the path is empty. Give a file, a folder, or `.` for the current folder")
    return value
