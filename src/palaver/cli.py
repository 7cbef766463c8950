"""The command line: `palaver <command>`. Imports of anything slow stand in the command that needs them."""

from __future__ import annotations

import gc
import json
import os
import shlex
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palaver import __version__
from palaver.core.config import Config
from palaver.core.errors import PalaverError
from palaver.core.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from palaver.archiver.transcripts import Transcript
    from palaver.search.layers import Layers
    from palaver.templates.render import Renderer

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class Commands(click.Group):
    """Words our own errors for a person: what happened, and what to do next."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """In the order in which they are needed, which is the order of this file."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        # What was archived can hold any character; a terminal that knows fewer shows `?` for the others.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except PalaverError as error:
            _complain(f"palaver: {error}", error.hint)
            ctx.exit(1)
        except BrokenPipeError:
            # The reader has seen enough. What is still buffered must not fail again when Python closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except OSError as error:
            # A full disk, a folder whose rights were taken away: the person can help, a stack dump cannot.
            _complain(f"palaver: {error.filename or 'error'}: {error.strerror or error}")
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("\npalaver: stopped. Nothing is lost; run the same command to go on.", err=True)
            ctx.exit(130)
        return result


def _complain(*rows: str) -> None:
    """Say what went wrong, a row each. Names of files stand in it, which can hold what steers a terminal."""
    from palaver.templates.quote import line

    for row in filter(None, map(line, rows)):
        click.echo(row, err=True)


@click.group(cls=Commands)
@click.version_option(__version__, package_name="palaver")
def main() -> None:
    """Find again what you and your coding agents said.

    Start with `palaver up`. Then three layers, each paid for only when needed: `search` finds, `show` tells, `read`
    quotes. Everything lies in the folder PALAVER_HOME and nothing leaves this machine. Nothing uses the network but
    `palaver model use`, which may download the model it is given.
    """


@main.command(short_help="Archive this user's agents, and say what to do next.")
@as_json
def up(*, as_json: bool) -> None:
    """Find this user's agents, archive their history, make it searchable, and say what to do next.

    Running it again takes up what is new. Where no history is found, a small made-up one is archived instead, in a
    home of its own.
    """
    from palaver.archiver.transcripts import DEMO, in_paths, of_this_user

    home, found = Home.find(), of_this_user()
    demo = not found and not home.database.exists()
    own = _command(home) if demo else ""
    if demo:
        home, found = Home(home.root / "demo"), in_paths([DEMO])
        if not as_json:
            click.echo("No agent's history was found for this user. Here is a small made-up one:")
    complete = _archive(home, found, as_json=as_json)
    if not as_json:
        click.echo()
        click.echo(_renderer().next_steps(_command(home), _server(home), own), nl=False)
    if not complete:
        sys.exit(1)


@main.command(short_help="Archive files or folders of transcripts.")
@click.argument("paths", nargs=-1)
@as_json
def archive(paths: Sequence[str], *, as_json: bool) -> None:
    """Archive files or folders of transcripts, or every known agent's when none is named.

    Only what changed is read again. It can be stopped at any time.
    """
    from palaver.archiver.transcripts import in_paths, of_this_user

    home = Home.find()
    found = in_paths([Path(path) for path in paths]) if paths else of_this_user()
    if not found and not home.database.exists():
        hint = "Name a folder of transcripts, or try a made-up history with `palaver up`."
        raise PalaverError("no agent's history was found for this user", hint=hint)
    if not _archive(home, found, as_json=as_json):
        sys.exit(1)


@main.command(short_help="Layer 1: find, about 30 tokens a hit.")
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@click.option("--mode", type=click.Choice(["both", "text", "vector"]), default="both", show_default=True)
@click.option("-n", "--limit", type=int, default=10, show_default=True, metavar="N", help="1 to 50 results.")
@click.option("--after", metavar="YYYY-MM-DD", help="Not before this day.")
@click.option("--before", metavar="YYYY-MM-DD", help="Not after this day.")
@click.option("--project", "projects", multiple=True, metavar="NAME", help="Only this project: its name or folder.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type: decision, bug-fix, config, ...")
@click.option("--concept", "concepts", multiple=True, metavar="WORD", help="Only what is tagged with this.")
@click.option("--file", "files", multiple=True, metavar="FILE", help="Only what read or changed this file.")
@click.option("--all-of", is_flag=True, help="Each argument is a concept; find conversations that have all (2 to 5).")
@click.option("--facts", is_flag=True, help="Show the facts of every hit.")
@as_json
def search(query: Sequence[str], *, all_of: bool, facts: bool, as_json: bool, **options: Any) -> None:
    """Layer 1: find what was decided, fixed or learned. One line for each hit.

    WORDS are a question or keywords. --project, --type, --concept and --file can be repeated: any of them will do.
    """
    from palaver.core.disclosure import Query

    # The process ends before there is garbage worth collecting; looking for it, at the end too, is slow.
    gc.disable()
    if all_of and not 2 <= len(query) <= 5:
        raise click.UsageError("--all-of takes 2 to 5 concepts, each an argument of its own.")
    wanted = Query.parse(list(query) if all_of else " ".join(query), **options)
    with _layers() as layers:
        results = layers.search(wanted)
    if as_json:
        from palaver.templates.shapes import results_json

        _print_json(results_json(results))
    else:
        click.echo(_renderer().search(results, facts=facts), nl=False)
    gc.freeze()


@main.command(short_help="Layer 2: everything known about a hit.")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@as_json
def show(ids: Sequence[str], *, as_json: bool) -> None:
    """Layer 2: everything known about some hits, by the IDs that `search` gave. Up to 20 at once."""
    with _layers() as layers:
        details = layers.get_observations(ids)
    if as_json:
        from palaver.templates.shapes import details_json

        _print_json(details_json(details))
    else:
        click.echo(_renderer().observations(details), nl=False)


@main.command(short_help="Layer 3: the conversation itself.")
@click.argument("path")
@click.argument("lines", default="1-", metavar="[LINES]")
@click.option("--raw", is_flag=True, help="Print the archived lines byte for byte, as the agent wrote them.")
@as_json
def read(path: str, lines: str, *, raw: bool, as_json: bool) -> None:
    """Layer 3: the conversation itself.

    PATH is what `show` gave. LINES is 12, 12-40 or 12-; without it all are read. What is too long for one answer is
    cut, and the answer says where to go on.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json exclude each other.")
    start, end = _line_range(lines)
    with _layers() as layers:
        if raw:
            for line in layers.read_raw(path, start, end):
                sys.stdout.buffer.write(line)
            return
        transcript = layers.read(path, start, end)
    if as_json:
        from palaver.templates.shapes import transcript_json

        _print_json(transcript_json(transcript))
    else:
        click.echo(_renderer().read(transcript), nl=False)


@main.command(short_help="What is archived, and how far the index is.")
@as_json
def status(*, as_json: bool) -> None:
    """Say what is archived, what became of every line, and how far the index is."""
    from palaver.observe.status import status_of

    home = Home.find()
    found = status_of(home, Config.read(home.config).model)
    if as_json:
        from palaver.templates.shapes import status_json

        _print_json(status_json(found))
    else:
        click.echo(_renderer().status(found), nl=False)


@main.group(short_help="Which embedding model gives meaning.", invoke_without_command=True)
@as_json
@click.pass_context
def model(ctx: click.Context, *, as_json: bool) -> None:
    """Say which embedding model gives meaning to what is searched, or `use` another."""
    from palaver.search.embedder import DEFAULT_MODEL

    if ctx.invoked_subcommand is not None:
        return
    chosen = Config.read(Home.find().config).model
    if as_json:
        _print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None})
    else:
        click.echo(chosen or f"{DEFAULT_MODEL} (packaged)")


@model.command("use")
@click.argument("name")
@as_json
def use_model(name: str, *, as_json: bool) -> None:
    """Take another model from now on.

    NAME is one that sentence-transformers knows and may download, the whole path of a folder, or `packaged`. The old
    vectors answer until `palaver archive` has made all new ones.
    """
    from palaver.search.embedder import DEFAULT_MODEL, load

    home = Home.find()
    chosen = None if name in {"packaged", DEFAULT_MODEL} else name
    dimension = load(chosen or DEFAULT_MODEL, download=True).dimension
    home.make()
    replace(Config.read(home.config), model=chosen).write(home.config)
    if as_json:
        _print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None, "dimension": dimension})
    else:
        click.echo(f"Using {chosen or DEFAULT_MODEL}, {dimension} numbers per text. Run `palaver archive` to embed.")


@main.command(short_help="Serve the three layers to an agent.")
def mcp() -> None:
    """Serve the three layers to an agent over MCP, on standard input and output.

    Agents start this themselves once they were told to; `palaver up` prints the command for Claude Code.
    """
    from palaver.agents.conversation import CONVERSATION
    from palaver.agents.server import serve
    from palaver.templates.render import Renderer

    if sys.stdin.isatty():
        click.echo("This talks to agents, not to people: it waits for MCP on standard input. Ctrl-C ends it.", err=True)
    serve(CONVERSATION, _layers, Renderer(Home.find().templates), __version__)


def _archive(home: Home, found: Sequence[Transcript], *, as_json: bool) -> bool:
    """Run all stages and say what they did; whether every file could be read and every stage ran."""
    from palaver.observe.pipeline import Pipeline

    with Pipeline(home, Config.read(home.config).model) as pipeline, _progress() as reporter:
        report = pipeline.run(found, reporter)
    if as_json:
        from palaver.templates.shapes import report_json

        _print_json({**report_json(report), "home": str(home.root)})
    else:
        click.echo(_renderer().report(report), nl=False)
    return not report.ingested.problems and report.model is None


@contextmanager
def _progress() -> Generator[Callable[[str, int, int], None]]:
    """A bar for each stage that has work, on standard error; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if not total:
                return
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def _layers() -> Layers:
    from palaver.search.layers import Layers

    home = Home.find()
    demo = Home(home.root / "demo")
    if demo.database.exists() and not home.database.exists():
        hint = f"Search it with: {_command(demo)} search WORDS"
        raise PalaverError(f"only the made-up history is there, in {demo.root}", hint=hint)
    return Layers(home, Config.read(home.config).model)


def _renderer() -> Renderer:
    """Words for a person: commands instead of tools, and at a terminal whole titles."""
    from palaver.templates.render import Renderer

    return Renderer(Home.find().templates, at_shell=True, roomy=sys.stdout.isatty())


def _command(home: Home) -> str:
    """What to type into this shell to run this very program on that home."""
    called = Path(sys.argv[0])
    found = shutil.which(called.name)
    if called.name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m palaver"
    elif found is not None and Path(found).samefile(called):
        program = called.name
    else:
        program = shlex.quote(str(called))
    return " ".join((*_setting(home), program))


def _server(home: Home) -> str:
    """What to add to `claude mcp add NAME`, which runs it from anywhere and without this shell's settings.

    Options stand after the name: `-e` takes every word up to the `--` for a setting.
    """
    called = Path(sys.argv[0]).absolute()
    program = [sys.executable, "-m", "palaver"] if called.name == "__main__.py" else [str(called)]
    option = ["-e", *_setting(home)] if _setting(home) else []
    return " ".join((*option, "--", shlex.join([*program, "mcp"])))


def _setting(home: Home) -> list[str]:
    """The variable that leads to that home, where nothing else does."""
    usual = not os.environ.get("PALAVER_HOME") and home == Home.find()
    return [] if usual else [f"PALAVER_HOME={shlex.quote(str(home.root))}"]


def _line_range(text: str) -> tuple[int, int | None]:
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        return first, (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"{text} is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None


def _print_json(value: Mapping[str, object]) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))
