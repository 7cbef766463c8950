"""`palaver search`, `timeline`, `show` and `read`: the three layers of detail."""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.errors import InvalidLineRange
from palaver.core.home import Home
from palaver.core.query import CONTEXT_MAX, PER_SESSION, Query
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present.page_cursor import unpacked
from palaver.templates.json_output import details_json, results_json, timeline_json, transcript_json
from palaver.templates.truncation import MIN_BUDGET

from .demo import refuse_demo_only
from .options import as_json, date_option
from .output import print_json, print_message, print_page, raw_output, renderer
from .project_option import only_projects, places_of


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add the filter options to a command."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


_FILTERS = (
    date_option(
        "--after",
        "--since",
        "after",
        help="First date, inclusive: 2026-03-01, yesterday, last tuesday, 3 weeks ago, march.",
    ),
    date_option("--before", "--until", "before", last=True, help="Last date, inclusive."),
    only_projects,
    click.option(
        "--type", "types", multiple=True, metavar="TYPE", help="Only observations of this type: decision, bug-fix, ..."
    ),
    click.option("--concept", "concepts", multiple=True, metavar="WORD", help="Only entries with this tag."),
    click.option(
        "--file",
        "files",
        multiple=True,
        metavar="FILE",
        help="Only entries that read or modified FILE (also folder/ and globs).",
    ),
    click.option(
        "--session",
        "sessions",
        multiple=True,
        metavar="ID",
        help="Only this session (its ID or the first characters).",
    ),
    click.option("--branch", "branches", multiple=True, metavar="NAME", help="Only this git branch."),
    click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent: claude-code, codex, ..."),
    click.option(
        "--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind: observation, exchange, memory, ..."
    ),
    click.option(
        "--origin", "origins", multiple=True, metavar="WHO", help="Only this source: human, assistant, tool, ..."
    ),
    click.option("--role", "roles", multiple=True, metavar="WHO", help="Only texts by human, assistant or tool."),
    click.option(
        "--language", "languages", multiple=True, metavar="NAME", help="Only files in this language: python, go, ..."
    ),
    click.option(
        "--unit", "units", multiple=True, metavar="KIND", help="Only code units of this kind: function, class, ..."
    ),
)
_budget = click.option(
    "--budget",
    type=click.IntRange(MIN_BUDGET),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Maximum tokens in the output.",
)


@click.command()
@click.argument("query", nargs=-1, metavar="[WORDS...]")
@click.option(
    "--mode",
    type=click.Choice(["both", "text", "vector"]),
    default="both",
    show_default=True,
    help="Search text, vectors (semantic), or both.",
)
@click.option("-n", "--limit", type=int, default=10, show_default=True, metavar="N", help="Maximum results, 1 to 50.")
@_filters
@click.option(
    "--also",
    multiple=True,
    metavar="TEXT",
    help="Another wording of WORDS, searched as part of the same query (up to 4 times).",
)
@click.option("--all-of", is_flag=True, help="Find conversations that contain each of the given texts (2 to 5).")
@click.option(
    "--by",
    type=click.Choice(["event", "session"]),
    default="event",
    show_default=True,
    help="List single entries (event) or whole sessions.",
)
@click.option(
    "--per-session",
    type=click.IntRange(0),
    default=PER_SESSION,
    show_default=True,
    metavar="N",
    help="Maximum results per session (0: no limit).",
)
@click.option("--anywhere", is_flag=True, help="Do not rank entries of the current folder's project higher.")
@click.option("--weak", is_flag=True, help="Include hits below the relevance threshold.")
@click.option(
    "--cursor", default="", metavar="CURSOR", help="Show the next page. CURSOR is printed at the end of a page."
)
@click.option(
    "--in",
    "place",
    type=click.Choice(["conversations", "output", "code"]),
    default="conversations",
    show_default=True,
    help="Where to search. In tool output and indexed code, WORDS match literally.",
)
@click.option(
    "--context",
    type=click.IntRange(0, CONTEXT_MAX),
    default=2,
    show_default=True,
    metavar="N",
    help="With --in output or code: lines to show before and after a match.",
)
@click.option("--symbol", metavar="NAME", help="Find functions, classes and other code units with this name.")
@click.option("--fix", is_flag=True, help="Show what fixed the error message WORDS, as `palaver fix` does.")
@click.option("--how", is_flag=True, help="Show the commands for the task in WORDS, as `palaver how` does.")
@click.option("--facts", is_flag=True, help="Show the facts extracted for each hit.")
@click.option("--snippets", is_flag=True, help="Show the matching text of each hit.")
@click.option("--explain", is_flag=True, help="Show how each score is calculated.")
@_budget
@as_json
def search(
    query: Sequence[str],
    *,
    all_of: bool,
    fix: bool,
    how: bool,
    facts: bool,
    snippets: bool,
    explain: bool,
    anywhere: bool,
    budget: int,
    as_json: bool,
    place: str,
    context: int,
    symbol: str | None,
    **options: Any,
) -> None:
    """Search conversations, memories, documents and code, one line per hit.

    WORDS are a question or keywords. Phrases in quotes must match exactly, except for word endings. `instal*` matches
    every word that begins with `instal`. Without words, the newest entries that match the filters are listed. Filters
    can be repeated. An entry must match one of the values.

    Output of successful tool calls is not indexed. `--in output` searches the archived transcripts for output that
    contains exactly WORDS, newest first, for at most 10 seconds.

    To search indexed code, use --kind code for words, `--in code` for exact text, and --symbol for names.

    On a terminal, titles are shown in full. In a pipe, a hit is truncated to about 30 tokens. --json always has full
    titles. In JSON, `found` is the number of results on this page. `total` is the number of results that fit into
    --budget. `next` is the cursor of the next page.
    """
    # NumPy would start a thread per core, which takes time and does not speed up small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if fix or how:
        _print_known_commands(query, fix=fix, how=how, limit=options["limit"], projects=options["projects"])
        return
    if symbol is not None or place != "conversations":
        _print_exact(place, symbol, " ".join(query), options, context=context, budget=budget, as_json=as_json)
        return
    if all_of and not 2 <= len(query) <= 5:
        raise click.UsageError("--all-of takes 2 to 5 concepts, one per argument.")
    wanted = _parse_query(list(query) if all_of else _query_text(query), options)
    with open_layers() as layers:
        page = None if as_json else renderer(budget)
        if not anywhere and wanted.prefers_project:
            wanted = replace(wanted, here=layers.project_at(Path.cwd()))
        results = layers.find(wanted, snippets=as_json or snippets or all_of or sys.stdout.isatty())
        from palaver.agents.ask.reversals import newest_first  # loads tantivy

        results = newest_first(results)
    if page is None:
        print_json(results_json(results, explain=explain, budget=budget))
    elif not results.hits and _is_empty():
        click.echo("Nothing is archived yet. Run `palaver up`, then search again.")
    else:
        print_page(page.search(results, facts=facts, snippets=snippets, explain=explain))


def _print_exact(
    place: str, symbol: str | None, text: str, options: dict[str, Any], *, context: int, budget: int, as_json: bool
) -> None:
    """Print the code units named `symbol`, or the matches of an exact text in `output` or `code`."""
    from .code import print_code_lines, print_symbols
    from .tool_output import print_output

    if symbol is not None:
        print_symbols(symbol, options, budget=budget, as_json=as_json)
    else:
        answer = print_code_lines if place == "code" else print_output
        answer(text, options, context=context, budget=budget, as_json=as_json)


def _print_known_commands(query: Sequence[str], *, fix: bool, how: bool, limit: int, projects: Sequence[str]) -> None:
    """Print the results of `--fix` or `--how`.

    Raises:
        UsageError: Words are missing, or another option was given that does not apply to these results.
    """
    from .known_commands import print_commands, print_fixes

    context, usable = click.get_current_context(), {"query", "fix", "how", "limit", "projects", "as_json"}
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if not query or (fix and how) or not usable.issuperset(given):
        raise click.UsageError(
            "--fix and --how need WORDS. Of the other options, only --project, --limit and --json apply to them."
        )
    answer = print_fixes if fix else print_commands
    answer(" ".join(query), projects, limit, as_json=bool(context.params["as_json"]))


def _is_empty() -> bool:
    """Return whether the archive is empty, for example after a first run on a full disk."""
    with Store.of(Home.find()) as store:
        return not (store.changes.last() or store.sources.totals()[0])


def _query_text(words: Sequence[str]) -> str:
    """Return the words as one query. An argument with spaces becomes a phrase, because the shell removed its quotes."""
    return " ".join(f'"{word}"' if len(words) > 1 and " " in word and '"' not in word else word for word in words)


def _parse_query(query: str | list[str], options: dict[str, Any]) -> Query:
    """Return the query.

    Raises:
        InvalidInput: A value is invalid.
        UsageError: Neither words nor filters were given, or `--also` without words.
    """
    if options["cursor"]:
        unpacked(options["cursor"])  # else a query that is also invalid would hide the invalid cursor
    options["projects"] = [place for project in options["projects"] for place in places_of(project)]
    if query:
        return Query.parse(query, **options)
    if options["also"]:
        raise click.UsageError("--also needs WORDS.")
    del options["mode"], options["weak"], options["per_session"], options["also"]
    wanted = Query.newest(**options)
    if not wanted.filters:
        raise click.UsageError("Give WORDS or a filter option.")
    return wanted


@click.command()
@click.argument("id", metavar="ID|SESSION")
@click.option(
    "-n",
    "--around",
    type=click.IntRange(0, 25),
    default=3,
    show_default=True,
    metavar="N",
    help="With ID: number of entries to show before and after the selected entry.",
)
@_budget
@as_json
def timeline(*, id: str, around: int, budget: int, as_json: bool) -> None:  # noqa: A002 - click's name for the argument
    """Show the entries before and after a search hit, or all entries of a session, one line each.

    `palaver search` prints the ID of a hit. For SESSION, the first characters of a session ID are enough.
    """
    with open_layers() as layers:
        found = layers.timeline(id, around)
    if as_json:
        print_json(timeline_json(found, budget=budget))
    else:
        print_page(renderer(budget).timeline(found))


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID|SESSION...")
@_budget
@as_json
def show(ids: Sequence[str], *, budget: int, as_json: bool) -> None:
    """Show all details of hits and sessions. Pass up to 20 IDs as printed by `palaver search` or `palaver sessions`.

    The command reports unknown IDs and shows the other hits.
    """
    with open_layers() as layers:
        details, unknown = layers.look_up(ids)
    if unknown and not details:
        raise unknown
    if as_json:
        reply = details_json(details, budget=budget)
        print_json({**reply, "unknown": list(unknown.ids)} if unknown else reply)
    else:
        print_page(renderer(budget).observations(details))
    if unknown:
        if not as_json:
            print_message(f"palaver: {unknown}", unknown.hint)
        sys.exit(1)


@click.command()
@click.argument("path")
@click.argument("lines", default="", metavar="[LINES]")
@click.option(
    "--raw", is_flag=True, help="Print the archived lines byte for byte (on a terminal, without control characters)."
)
@_budget
@as_json
def read(path: str, lines: str, *, raw: bool, budget: int, as_json: bool) -> None:
    """Read the conversation of a hit, or any archived transcript.

    PATH is the path of an archived transcript, the agent's own path, a session ID (or at least its first 4 characters),
    or the ID of a hit. LINES is 12, 12-40 or 12-. The default is all lines, or all lines from the hit on. Truncated
    output ends with the number of the next line.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json cannot be combined.")
    with open_layers() as layers:
        parts = [(layers.locate(path)[0], *_line_range(lines))] if lines else layers.parts(path)
        if raw:
            output = raw_output()
            for part in parts:
                output.writelines(layers.read_raw(*part))
            return
        excerpts = layers.read_parts(parts[:1] if as_json else parts, budget=budget)
    if as_json:
        print_json(transcript_json(excerpts[0], budget=budget))
        return
    print_page("\n".join(renderer(budget).read(each) for each in excerpts))
    for name, first, last in parts[len(excerpts) :]:
        click.echo(f"Next part: palaver read {shlex.quote(name)} {first}-{last or ''}")


def open_layers(home: Home | None = None) -> ArchiveSearch:
    """Open an archive for search, by default the archive of `Home.find()`.

    Raises:
        DemoOnly: Only demo data is archived.
    """
    home = home or Home.find()
    refuse_demo_only(home, "search WORDS")
    return ArchiveSearch(home, Config.read(home.config).model)


def _line_range(text: str) -> tuple[int, int | None]:
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        last = (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None
    if first < 1 or (last is not None and last < first):
        raise InvalidLineRange(f"{text}: the first line must be at least 1 and not after the last line")
    return first, last
