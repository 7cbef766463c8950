"""Output of commands: pages, JSON, error messages and progress bars."""

import codecs
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import orjson

from palaver.core.home import Home
from palaver.core.results import BUDGET
from palaver.templates.json_output import to_json
from palaver.templates.quote import clean, line
from palaver.templates.render import Renderer

from .common_options import is_plain
from .word_wrap import STYLE, screen_width, unwrapped, wrapped

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.progress import Progress, TaskID

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
        shown = wrapped(styled(page), screen_width())
        if shown.count("\n") < size.lines:
            click.echo(shown, nl=False)
        else:
            os.environ.setdefault("LESS", "-FRX")  # as git does: the text stays on the screen
            click.echo_via_pager(shown)


def styled(page: str) -> str:
    """Return a page with terminal styles instead of Markdown. If NO_COLOR is set, omit all styles (no-color.org)."""
    rows = "\n".join(map(_styled_row, _MARKER.sub("", page).replace("&lt;", "<").replace("&#91;", "[").split("\n")))
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
    if found := _ID.match(row) or _SESSION.match(row):
        return f"{_CYAN}{found[0]}{_END}{row[found.end() :]}"
    return _STRONG.sub(rf"{_BOLD}\1{_END}", _ESCAPED.sub("", row, count=1) if row.startswith("\\") else row)


def raw_output() -> BinaryIO:
    """Return a binary stream that writes to standard output. At a terminal, it removes control characters."""
    return _TerminalOutput() if sys.stdout.isatty() else sys.stdout.buffer


class _TerminalOutput(io.BytesIO):
    """Stream that decodes bytes and writes text without control characters to the terminal."""

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
