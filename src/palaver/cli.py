"""The command line: `palaver <command>`. Imports of anything slow stand in the command that needs them."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from palaver import __version__
from palaver.core.errors import PalaverError
from palaver.core.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from palaver.archiver.transcripts import Transcript
    from palaver.search.layers import Layers
    from palaver.templates.render import Renderer

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class Commands(click.Group):
    """Words our own errors for a person: what happened, and what to do next."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PalaverError as error:
            click.echo(f"palaver: {error}", err=True)
            if error.hint:
                click.echo(error.hint, err=True)
            ctx.exit(1)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(0)
        except KeyboardInterrupt:
            click.echo("\npalaver: stopped. Nothing is lost; run the same command to go on.", err=True)
            ctx.exit(130)


@click.group(cls=Commands)
@click.version_option(__version__, package_name="palaver")
def main() -> None:
    """Find again what you and your coding agents said."""


@main.command()
@as_json
def up(*, as_json: bool) -> None:
    """Find this user's agents, archive their history, make it searchable, and say what to do next."""
    from palaver.archiver.transcripts import DEMO, in_paths, of_this_user

    home, found = Home.find(), of_this_user()
    demo = not found and not home.database.exists()
    if demo:
        home, found = Home(home.root / "demo"), in_paths([DEMO])
        click.echo("No agent's history was found for this user. Here is a small made-up one instead:", err=True)
    complete = _archive(home, found, as_json=as_json)
    if not as_json:
        click.echo(_renderer().next_steps(f"PALAVER_HOME={home.root} " if demo else ""), nl=False)
    if not complete:
        sys.exit(1)


@main.command()
@click.argument("paths", nargs=-1)
@as_json
def archive(paths: Sequence[str], *, as_json: bool) -> None:
    """Archive files or folders of transcripts, or every known agent's when none is named."""
    from pathlib import Path

    from palaver.archiver.transcripts import in_paths, of_this_user

    found = in_paths([Path(path) for path in paths]) if paths else of_this_user()
    if not _archive(Home.find(), found, as_json=as_json):
        sys.exit(1)


@main.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice(["both", "text", "vector"]), default="both", show_default=True)
@click.option("--limit", "-n", type=int, default=10, show_default=True, help="1 to 50 results.")
@click.option("--after", metavar="YYYY-MM-DD", help="Not before this day.")
@click.option("--before", metavar="YYYY-MM-DD", help="Not after this day.")
@click.option("--project", "projects", multiple=True, help="Only these projects: name or folder.")
@click.option("--type", "types", multiple=True, help="Only these observation types.")
@click.option("--concept", "concepts", multiple=True, help="Only what is tagged with one of these.")
@click.option("--file", "files", multiple=True, help="Only what read or changed one of these files.")
@click.option("--all-of", is_flag=True, help="Take each argument as a concept that must be present (2 to 5).")
@click.option("--facts", is_flag=True, help="Show the facts of every hit.")
@as_json
def search(query: Sequence[str], *, all_of: bool, facts: bool, as_json: bool, **options: Any) -> None:
    """Layer 1: find observations and exchanges, about 30 tokens a hit."""
    from palaver.core.disclosure import Query

    wanted = Query.parse(list(query) if all_of else " ".join(query), **options)
    with _layers() as layers:
        results = layers.search(wanted)
    if as_json:
        from palaver.templates.shapes import results_json

        _print_json(results_json(results))
    else:
        click.echo(_renderer().search(results, facts=facts), nl=False)


@main.command()
@click.argument("ids", nargs=-1, required=True)
@as_json
def show(ids: Sequence[str], *, as_json: bool) -> None:
    """Layer 2: everything known about some hits, by id."""
    with _layers() as layers:
        details = layers.get_observations(ids)
    if as_json:
        from palaver.templates.shapes import details_json

        _print_json(details_json(details))
    else:
        click.echo(_renderer().observations(details), nl=False)


@main.command()
@click.argument("path")
@click.argument("lines", default="1-", metavar="[LINES]")
@click.option("--raw", is_flag=True, help="Print the archived lines as the agent wrote them.")
@as_json
def read(path: str, lines: str, *, raw: bool, as_json: bool) -> None:
    """Layer 3: the conversation itself. LINES is `12`, `12-40` or `12-`."""
    start, end = _line_range(lines)
    with _layers() as layers:
        if raw:
            for line in layers.read_raw(path, start, end):
                click.get_binary_stream("stdout").write(line)
            return
        transcript = layers.read(path, start, end)
    if as_json:
        from palaver.templates.shapes import transcript_json

        _print_json(transcript_json(transcript))
    else:
        click.echo(_renderer().read(transcript), nl=False)


@main.command()
@as_json
def status(*, as_json: bool) -> None:
    """Say what is archived, what became of every line, and how far the index is."""
    from palaver.observe.status import status_of

    found = status_of(Home.find())
    if as_json:
        from palaver.templates.shapes import status_json

        _print_json(status_json(found))
    else:
        click.echo(_renderer().status(found), nl=False)


@main.command()
def mcp() -> None:
    """Serve the three layers to an agent over MCP, on standard input and output."""
    from palaver.agents.conversation import CONVERSATION
    from palaver.agents.server import serve

    serve(CONVERSATION, _layers, _renderer(), __version__)


def _archive(home: Home, found: Sequence[Transcript], *, as_json: bool) -> bool:
    """Run all stages and say what they did; whether every file could be read and every stage ran."""
    from palaver.observe.pipeline import Pipeline

    with Pipeline(home) as pipeline, _progress() as reporter:
        report = pipeline.run(found, reporter)
    if as_json:
        from palaver.templates.shapes import report_json

        _print_json(report_json(report))
    else:
        click.echo(_renderer().report(report), nl=False)
    return not report.ingested.problems and report.model is None


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage on standard error; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def _layers() -> Layers:
    from palaver.search.layers import Layers

    return Layers(Home.find())


def _renderer() -> Renderer:
    from palaver.templates.render import Renderer

    return Renderer(Home.find().templates)


def _line_range(text: str) -> tuple[int, int | None]:
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        return first, (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"{text} is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None


def _print_json(value: Mapping[str, object]) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))
