"""`palaver search`, `timeline`, `show` and `read`: the three layers."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.errors import InvalidLineRange
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.json_output import details_json, results_json, timeline_json, transcript_json

from .demo import refuse_demo_only
from .options import as_json, date_option
from .output import complain, print_json, print_page, raw_output, renderer
from .project_option import archived_as


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    """What a search can be narrowed by."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


_FILTERS = (
    date_option(
        "--after", "--since", "after", help="Not before: 2026-03-01, yesterday, last tuesday, 3 weeks ago, march."
    ),
    date_option("--before", "--until", "before", last=True, help="Not after; that day or month included."),
    click.option(
        "--project", "projects", multiple=True, metavar="NAME", help="This project: its name or folder, or `.`."
    ),
    click.option("--type", "types", multiple=True, metavar="TYPE", help="This type: decision, bug-fix, config, ..."),
    click.option("--concept", "concepts", multiple=True, metavar="WORD", help="What is tagged with this."),
    click.option("--file", "files", multiple=True, metavar="FILE", help="What touched this file, folder/ or pattern."),
    click.option("--session", "sessions", multiple=True, metavar="ID", help="This session; its id may be cut short."),
    click.option("--branch", "branches", multiple=True, metavar="NAME", help="What was said on this branch."),
    click.option(
        "--agent", "agents", multiple=True, metavar="NAME", help="Said to this agent: claude-code, codex, ..."
    ),
    click.option(
        "--kind", "kinds", multiple=True, metavar="KIND", help="observation, exchange, memory, document, code."
    ),
    click.option(
        "--origin", "origins", multiple=True, metavar="WHO", help="Whose word it is: human, assistant, tool, ..."
    ),
    click.option("--role", "roles", multiple=True, metavar="WHO", help="Only what these said: human, assistant, tool."),
)
_budget = click.option(
    "--budget", type=click.IntRange(500), default=10_000, show_default=True, metavar="N", help="Tokens at most."
)


@click.command()
@click.argument("query", nargs=-1, metavar="[WORDS...]")
@click.option(
    "--mode",
    type=click.Choice(["both", "text", "vector"]),
    default="both",
    show_default=True,
    help="By words (text), by meaning (vector), or by both.",
)
@click.option("-n", "--limit", type=int, default=10, show_default=True, metavar="N", help="1 to 50 results.")
@_filters
@click.option("--all-of", is_flag=True, help="Each argument is a concept; find conversations that have all (2 to 5).")
@click.option(
    "--by",
    type=click.Choice(["event", "session"]),
    default="event",
    show_default=True,
    help="One result for each of these.",
)
@click.option("--weak", is_flag=True, help="Show what is not clearly relevant too.")
@click.option("--cursor", default="", metavar="CURSOR", help="Go on where the page before ended.")
@click.option("--facts", is_flag=True, help="Show the facts of every hit.")
@click.option("--snippets", is_flag=True, help="Show where each hit was found, with the words marked.")
@click.option("--explain", is_flag=True, help="Show what every score is made of.")
@_budget
@as_json
def search(
    query: Sequence[str],
    *,
    all_of: bool,
    facts: bool,
    snippets: bool,
    explain: bool,
    budget: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Layer 1: find what was decided, fixed or learned. One line for each hit.

    WORDS are a question or keywords; "words in quotes" must stand so, whatever their endings (in a sentence, if
    they stand anywhere), and instal* is every word that begins so. What tools printed without failing is archived, but
    not searched. Without words the newest is shown of what the filters leave. Filters can be
    repeated: any of the values will do.

    At a terminal titles are whole. In a pipe, where agents read, they are cut to about 30 tokens a hit; --json has them
    whole there, too. What --budget has no room for is left out: of `found` results --json then gives `total`, and
    `next` is the cursor of the others.
    """
    # Starting a thread for each processor is slow; NumPy does so for large matrices, of which there are none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if all_of and not 2 <= len(query) <= 5:
        raise click.UsageError("--all-of takes 2 to 5 concepts, each an argument of its own.")
    wanted = _wanted(list(query) if all_of else _typed(query), options)
    with _open_layers() as layers:
        page = None if as_json else renderer(budget)
        results = layers.search(wanted, snippets=as_json or snippets or all_of)
    if page is None:
        print_json(results_json(results, explain=explain, budget=budget))
    elif not results.hits and _holds_nothing():
        click.echo("Nothing is archived yet: run `palaver up`, then search again.")
    else:
        print_page(page.search(results, facts=facts, snippets=snippets, explain=explain))


def _holds_nothing() -> bool:
    """Return whether nothing was ever stored, as after a first pass on a full disk; files without exchanges count."""

    with Store.open(Home.find().database) as store:
        return not (store.changes.last() or store.sources.totals()[0])


def _typed(words: Sequence[str]) -> str:
    """The words as one question. What the shell took quotes from was meant as a phrase among others."""
    return " ".join(f'"{word}"' if len(words) > 1 and " " in word and '"' not in word else word for word in words)


def _wanted(query: str | list[str], options: dict[str, Any]) -> Query:
    """The query; raises `InvalidInput`, or a usage error where there is nothing to search for."""

    options["projects"] = list(map(archived_as, options["projects"]))
    if query:
        return Query.parse(query, **options)
    del options["mode"], options["weak"]
    wanted = Query.newest(**options)
    if not wanted.filters:
        raise click.UsageError("Missing argument 'WORDS...'. Say what to search for, or give a filter.")
    return wanted


@click.command()
@click.argument("id", metavar="ID")
@click.option("-n", "--around", type=click.IntRange(0, 25), default=3, show_default=True, metavar="N", help="Each way.")
@_budget
@as_json
def timeline(*, id: str, around: int, budget: int, as_json: bool) -> None:  # noqa: A002 - click's name for the argument
    """What was said and learned just before and after a hit, by the ID that `search` gave. One line for each."""
    with _open_layers() as layers:
        found = layers.timeline(id, around)
    if as_json:
        print_json(timeline_json(found, budget=budget))
    else:
        print_page(renderer(budget).timeline(found))


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_budget
@as_json
def show(ids: Sequence[str], *, budget: int, as_json: bool) -> None:
    """Layer 2: everything known about some hits, by the IDs that `search` gave. Up to 20 at once.

    Of IDs that nothing has it is said so; the others are shown all the same.
    """
    with _open_layers() as layers:
        details, unknown = layers.look_up(ids)
        details = renderer(budget).with_read_costs(details, layers.read)
    if unknown and not details:
        raise unknown
    if as_json:
        shape = details_json(details, budget=budget)
        print_json({**shape, "unknown": list(unknown.ids)} if unknown else shape)
    else:
        print_page(renderer(budget).observations(details))
    if unknown:
        if not as_json:
            complain(f"palaver: {unknown}", unknown.hint)
        sys.exit(1)


@click.command()
@click.argument("path")
@click.argument("lines", default="", metavar="[LINES]")
@click.option(
    "--raw", is_flag=True, help="Print the archived lines byte for byte; at a terminal without control characters."
)
@_budget
@as_json
def read(path: str, lines: str, *, raw: bool, budget: int, as_json: bool) -> None:
    """Layer 3: the conversation itself.

    PATH is what `show` gave, the path that the agent had, or the id of a session, of which the first 6 characters will
    do. The ID of a hit stands for its conversation, from the line on that it begins with. LINES is 12, 12-40 or 12-;
    without it all are read. What is too long for one answer is cut, and the answer says where to go on.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json exclude each other.")
    start, end = _line_range(lines or "1-")
    with _open_layers() as layers:
        path, first = layers.place(path)
        start = start if lines else first
        if raw:
            output = raw_output()
            for line in layers.read_raw(path, start, end):
                output.write(line)
            return
        transcript = layers.read(path, start, end)
    if as_json:
        print_json(transcript_json(transcript, budget=budget))
    else:
        print_page(renderer(budget).read(transcript))


def _open_layers() -> ArchiveSearch:
    """The three layers over this home; raises `OnlyMadeUp` where nothing but the made-up history is there."""

    home = Home.find()
    refuse_demo_only(home, "search WORDS")
    return ArchiveSearch(home, Config.read(home.config).model)


def _line_range(text: str) -> tuple[int, int | None]:
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        last = (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"{text} is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None
    if first < 1 or (last is not None and last < first):
        raise InvalidLineRange(f"{text}: lines count from 1, and the first comes first")
    return first, last
