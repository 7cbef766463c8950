"""`palaver search`, `show` and `read`: the three layers."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import click

from palaver.core.config import Config
from palaver.core.errors import PalaverError
from palaver.core.home import Home

from .output import as_json, print_json, renderer
from .program import command_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.search.layers import Layers


@click.command(short_help="Layer 1: find, about 30 tokens a hit.")
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
    from palaver.core.disclosure import Mode, Query

    # The process ends before there is garbage worth collecting; looking for it, at the end too, is slow.
    gc.disable()
    if all_of and not 2 <= len(query) <= 5:
        raise click.UsageError("--all-of takes 2 to 5 concepts, each an argument of its own.")
    wanted = Query.parse(list(query) if all_of else " ".join(query), **options)
    with open_layers(soon=wanted.mode is not Mode.TEXT) as layers:
        page = None if as_json else renderer()
        results = layers.search(wanted)
    if page is None:
        from palaver.templates.shapes import results_json

        print_json(results_json(results))
    else:
        click.echo(page.search(results, facts=facts), nl=False)
    gc.freeze()


@click.command(short_help="Layer 2: everything known about a hit.")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@as_json
def show(ids: Sequence[str], *, as_json: bool) -> None:
    """Layer 2: everything known about some hits, by the IDs that `search` gave. Up to 20 at once."""
    with open_layers() as layers:
        details = layers.get_observations(ids)
    if as_json:
        from palaver.templates.shapes import details_json

        print_json(details_json(details))
    else:
        click.echo(renderer().observations(details), nl=False)


@click.command(short_help="Layer 3: the conversation itself.")
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
    with open_layers() as layers:
        if raw:
            for line in layers.read_raw(path, start, end):
                sys.stdout.buffer.write(line)
            return
        transcript = layers.read(path, start, end)
    if as_json:
        from palaver.templates.shapes import transcript_json

        print_json(transcript_json(transcript))
    else:
        click.echo(renderer().read(transcript), nl=False)


def open_layers(*, soon: bool = False) -> Layers:
    from palaver.search.layers import Layers

    home = Home.find()
    demo = Home(home.root / "demo")
    if demo.database.exists() and not home.database.exists():
        hint = f"Search it with: {command_of(demo)} search WORDS"
        raise PalaverError(f"only the made-up history is there, in {demo.root}", hint=hint)
    return Layers(home, Config.read(home.config).model, soon=soon)


def _line_range(text: str) -> tuple[int, int | None]:
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        return first, (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"{text} is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None
