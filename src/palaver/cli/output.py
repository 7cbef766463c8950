"""What every command prints: JSON, a person's words, complaints."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING

import click
import orjson

from palaver.templates.json_output import to_json

if TYPE_CHECKING:
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

    from palaver.templates.render import Renderer

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text; errors too.")


def complain(*rows: str) -> None:
    """Say what went wrong, a row each. Names of files stand in it, which can hold what steers a terminal."""
    from palaver.templates.quote import line

    for row in filter(None, map(line, rows)):
        click.echo(row, err=True)


def renderer(budget: int = 10_000) -> Renderer:
    """Words for a person: commands instead of tools, and at a terminal whole titles. `budget` is in tokens."""
    from palaver.core.home import Home
    from palaver.templates.render import Renderer

    return Renderer(Home.find().templates, at_shell=True, roomy=sys.stdout.isatty(), budget=budget)


def print_json(value: object) -> None:
    """Print a value of core, or a mapping with such values, as one line of JSON."""
    click.echo(orjson.dumps(to_json(value)))


def raw_output() -> BinaryIO:
    """Return standard output for bytes as they were archived; a terminal gets their text without control characters."""
    return _TerminalOutput() if sys.stdout.isatty() else sys.stdout.buffer


class _TerminalOutput(io.BytesIO):
    """Write bytes to the terminal as UTF-8 text without control characters."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: ReadableBuffer, /) -> int:
        from palaver.templates.quote import clean

        sys.stdout.write(clean(self._decoder.decode(bytes(data))))
        return memoryview(data).nbytes


def print_page(page: str) -> None:
    """Print a rendered page: with styles at a terminal, as Markdown in a pipe."""
    if sys.stdout.isatty():
        from .terminal import styled

        page = styled(page)
    click.echo(page, nl=False)
