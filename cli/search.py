"""Search commands: `palaver search`, `timeline`, `show`, `read`, `fix` and `how`.

- `search`, `timeline`, `show` and `read` are the three layers of detail.
- `search --in output` searches for a literal text in the output of tools.
- `search --symbol` and `--in code` search indexed code by name or by exact text.
- `fix` and `how` search the commands that agents ran.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from msgspec.structs import replace

from ..core.command_socket import need_own_process
from ..core.document import DocumentFilter
from ..core.errors import InvalidLineRange, UnknownProject
from ..core.home import Home
from ..core.memory import project_namespace
from ..core.query import (
    CONTEXT_MAX,
    FIELDS,
    LISTS,
    PER_SESSION,
    Comparison,
    FilterField,
    Filters,
    HitKind,
    Query,
)
from ..core.reports import many
from ..core.results import Results
from ..observe.archive import Archive
from ..observe.list_search import ListSearch
from ..search.archive_search import ArchiveSearch
from ..search.code_search import CodeSearch
from ..search.query.query_analysis import redacted, unpacked
from ..templates.json_output import (
    code_lines_json,
    details_json,
    output_json,
    results_json,
    symbols_json,
    timeline_json,
    transcript_json,
)
from ..templates.truncation import MIN_BUDGET
from .demo import refuse_demo_only
from .output import as_json, date_option, print_json, print_message, print_page, raw_output, renderer
from .project_option import archived_as, in_project, is_folder, places_of

if TYPE_CHECKING:
    from ..team.client.team_search import TeamSearch

_USAGES: Final = {HitKind.COMMAND: "how TASK", HitKind.FIX: "fix ERROR", HitKind.OPEN: "open"}
"""Command that prints each list, for messages."""


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add the filter options to a command."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _option(attribute: str, field: FilterField) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option of a filter."""
    if field.comparison is Comparison.DATE:
        return date_option(field.option, *field.aliases, attribute, last=attribute == "before", help=field.help)

    def complete(_context: click.Context, _option: click.Parameter, typed: str) -> list[str]:
        return [name for name in field.choices or () if name.startswith(typed)]

    names = (field.option, *field.aliases, attribute)
    return click.option(*names, multiple=True, metavar=field.metavar, help=field.help, shell_complete=complete)


_FILTERS = tuple(_option(attribute, field) for attribute, field in FIELDS.items())
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
@click.option("--fix", is_flag=True, help="Same as --kind fix.")
@click.option("--how", is_flag=True, help="Same as --kind command.")
@click.option("--no-team", is_flag=True, help="Do not ask the team that this machine joined.")
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
    no_team: bool,
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
    every word that begins with `instal`. Without words, the newest entries that match the filters are listed, or with
    --by session the newest sessions. Filters can be repeated. An entry must match one of the values.

    If this machine joined a team, hits of the team follow in a second block, or the reason why there are none after
    0.7 seconds. The words of the search are sent to the team's server.

    --kind command, fix and open list the same as `palaver how`, `fix` and `open`.

    Output of successful tool calls is not indexed. `--in output` searches the archived transcripts for output that
    contains exactly WORDS, newest first, for at most 10 seconds.

    To search indexed code, use --kind code for words, `--in code` for exact text, and --symbol for names.

    In a pipe, a hit has 30 to 35 tokens on average. In JSON, `found` is the number of results on this page, and `total`
    the number of those that fit into --budget. `next` is the cursor of the next page.
    """
    # NumPy would start a thread per core, which takes time and does not speed up small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if kind := _list_kind(options, fix=fix, how=how):
        print_list(kind, _parse_query(" ".join(query), options), as_json=as_json)
        return
    if symbol is not None or place != "conversations":
        _print_exact(place, symbol, " ".join(query), options, context=context, budget=budget, as_json=as_json)
        return
    if all_of and not 2 <= len(query) <= 5:
        raise click.UsageError("--all-of takes 2 to 5 concepts, one per argument.")
    parsed = _parse_query(list(query) if all_of else _query_text(query), options)
    team_search = None if no_team else _team_search(parsed)
    with open_layers() as layers:
        if not anywhere and parsed.prefers_project:
            parsed = replace(parsed, here=layers.project_at(Path.cwd()))
        needs_snippets = as_json or snippets or all_of or sys.stdout.isatty()
        results = _find(layers, parsed, team_search, snippets=needs_snippets)
    shown = {"facts": facts, "snippets": snippets, "explain": explain}
    _print_results(results, team_search, shown, budget=budget, as_json=as_json)


def _print_results(
    results: Results, team_search: TeamSearch | None, shown: dict[str, bool], *, budget: int, as_json: bool
) -> None:
    """Print the hits of this machine, then those of the team. `shown` says which details to show."""
    if as_json:
        from_team = {"team": team_search.result()} if team_search else {}
        print_json({**results_json(results, explain=shown["explain"], budget=budget), **from_team})
        return
    page = renderer(budget)
    if not results.hits and _is_empty():
        click.echo("Nothing is archived yet. Run `palaver up`, then search again.")
    elif results.hits or results.explanation:
        print_page(page.search(results, **shown))
    if team_search:
        sys.stdout.flush()  # The hits of this machine do not wait.
        print_page(f"\n{page.render('team_hits', result=team_search.result())}")


def _find(layers: ArchiveSearch, query: Query, team_search: TeamSearch | None, *, snippets: bool) -> Results:
    """Return the results of this machine, or no results for a project in which only the team has hits."""
    try:
        return layers.find(query, snippets=snippets)
    except UnknownProject as error:
        if team_search is None or not team_search.result().hits:
            raise
        problem = str(error)
    print_message(f"{problem}. Only the team has hits in it.")
    return Results(query, (), 0, 0, ())


def _team_search(query: Query) -> TeamSearch | None:
    """Begin to search the team that this machine joined. Without a team, the only cost is a look for its key."""
    home = Home.find()
    if not home.team_key.exists():
        return None
    from ..team.client.team_search import begin

    with Archive(home) as archive:
        return begin(archive, query, Path.cwd())


def _print_exact(
    place: str, symbol: str | None, text: str, options: dict[str, Any], *, context: int, budget: int, as_json: bool
) -> None:
    """Print the code units named `symbol`, or the matches of an exact text in `output` or `code`."""
    if symbol is not None:
        print_symbols(symbol, options, budget=budget, as_json=as_json)
    else:
        answer = print_code_lines if place == "code" else print_output
        answer(text, options, context=context, budget=budget, as_json=as_json)


def _list_kind(options: Mapping[str, Any], *, fix: bool, how: bool) -> HitKind | None:
    """Return the kind of list that `--kind`, `--fix` or `--how` requests, or None.

    Raises:
        UsageError: Several kinds are requested, or another option does not apply to this list.
    """
    kinds = {*map(HitKind, FIELDS["kinds"].parsed(options["kinds"]))}
    kinds |= {kind for kind, is_requested in ((HitKind.FIX, fix), (HitKind.COMMAND, how)) if is_requested}
    if kinds.isdisjoint(LISTS):
        return None
    if len(kinds) > 1:
        raise click.UsageError("Commands, fixes and open items cannot be combined with another kind.")
    [kind] = kinds
    filters = set(FIELDS) if kind is HitKind.OPEN else {"projects", "kinds"}
    refuse_others({"query", "also", "fix", "how", "limit", "as_json", *filters}, f"--kind {kind}")
    return kind


def _is_empty() -> bool:
    """Return whether the archive is empty, for example after a first run on a full disk."""
    with Archive.find().store as store:
        return not (store.changes.last() or store.sources.totals()[0])


def _query_text(words: Sequence[str]) -> str:
    """Return the words as one query. An argument with spaces becomes a phrase, because the shell removed its quotes."""
    return " ".join(f'"{word}"' if len(words) > 1 and " " in word and '"' not in word else word for word in words)


def _parse_query(query: str | list[str], options: dict[str, Any]) -> Query:
    """Return the query.

    Raises:
        InvalidInput: A value is invalid.
        UsageError: `--also` was given without words.
    """
    if options["cursor"]:
        unpacked(options["cursor"])  # else a query that is also invalid would hide the invalid cursor
    options["projects"] = [folder for project in options["projects"] for folder in places_of(project)]
    if query:
        return Query.parse(query, **options)
    if options["also"]:
        raise click.UsageError("--also needs WORDS.")
    del options["mode"], options["weak"], options["per_session"], options["also"]
    return Query.newest(**options)


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
        timeline = layers.timeline(id, around)
    if as_json:
        print_json(timeline_json(timeline, budget=budget))
    else:
        print_page(renderer(budget).timeline(timeline))


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
        parts = [(layers.locate(path)[0], *line_range(lines))] if lines else layers.parts(path)
        if raw:
            output = raw_output()
            for part in parts:
                output.writelines(layers.read_raw(*part))
            if secrets := layers.secrets_in(parts):
                print_message(secrets_sentence(secrets, "leave out --raw"))
            return
        excerpts = layers.read_parts(parts[:1] if as_json else parts, budget=budget)
    if as_json:
        print_json(transcript_json(excerpts[0], budget=budget))
        return
    print_page("\n".join(renderer(budget).read(excerpt) for excerpt in excerpts))
    for name, first, last in parts[len(excerpts) :]:
        click.echo(f"Next part: palaver read {shlex.quote(name)} {first}-{last or ''}")


def open_layers(home: Home | None = None, usage: str = "search WORDS") -> ArchiveSearch:
    """Open an archive for search, by default the archive of `Home.find()`. `usage` is the user's command, for messages.

    Raises:
        DemoOnly: Only demo data is archived.
    """
    archive = Archive(home or Home.find())
    refuse_demo_only(archive.home, usage)
    return archive.search


def secrets_sentence(secrets: dict[str, int], remedy: str) -> str:
    """Return a sentence about the secrets in original text. `remedy` is the change of the command that hides them."""
    if not secrets:
        return "No secret was recognised in the original text."
    counts = ", ".join(f"{kind} {count:,}" for kind, count in secrets.items())
    total = many(sum(secrets.values()), "secret")
    return f"The original text contains {total} that `palaver read` hides: {counts}. To hide them, {remedy}."


def line_range(text: str) -> tuple[int, int | None]:
    """Return the first and the last line of a range: 12, 12-40 or 12-. Raises `InvalidLineRange`."""
    start, dash, end = text.partition("-")
    try:
        first = int(start)
        last = (int(end) if end else None) if dash else first
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a line range; use 12, 12-40 or 12-", param_hint="LINES") from None
    if first < 1 or (last is not None and last < first):
        raise InvalidLineRange(f"{text}: the first line must be at least 1 and not after the last line")
    return first, last


_SECONDS = 10.0
"""Time limit of a search in seconds."""
_OUTPUT_FILTERS = tuple(attribute for attribute, field in FIELDS.items() if field.in_output)
_OUTPUT_USABLE = frozenset({"query", "place", "context", "limit", "budget", "as_json", *_OUTPUT_FILTERS})


def print_output(text: str, options: Mapping[str, Any], *, context: int, budget: int, as_json: bool) -> None:
    """Print the matches of a text in tool output.

    Raises:
        InvalidInput: The text or a filter is invalid.
        UsageError: The text is missing, or an option does not apply to tool output.
    """
    if not text:
        raise click.UsageError("--in output requires WORDS.")
    refuse_others(_OUTPUT_USABLE, "--in output")
    need_own_process()  # This search can take 10 seconds.
    named: dict[str, Any] = {name: options[name] for name in _OUTPUT_FILTERS}
    named["projects"] = [*map(archived_as, options["projects"])]
    filters = Filters.parse(**named)
    with open_layers() as layers:
        matches = layers.find_output(text, filters, limit=options["limit"], context=context, seconds=_SECONDS)
    if as_json:
        print_json(output_json(matches, budget=budget))
    else:
        print_page(renderer(budget).output(matches, filtered=bool(filters)))


def refuse_others(usable: Container[str], option: str) -> None:
    """Raise `UsageError` for an option outside `usable`, because it cannot be combined with `option`."""
    command = click.get_current_context()
    stated = {name for name in command.params if command.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    for parameter in command.command.params:
        if parameter.name in stated and parameter.name not in usable:
            name = parameter.opts[0] if isinstance(parameter, click.Option) else "WORDS"
            raise click.UsageError(f"{option} cannot be combined with {name}.")


_CODE_FILTERS = frozenset(attribute for attribute, field in FIELDS.items() if field.in_code)
_CODE_USABLE = _CODE_FILTERS | {"limit", "budget", "as_json"}


def print_symbols(name: str, options: Mapping[str, Any], *, budget: int, as_json: bool) -> None:
    """Print the code units with a name.

    Raises:
        InvalidInput: The name or a filter is invalid.
        UsageError: An option does not apply to symbols.
    """
    refuse_others(_CODE_USABLE | {"symbol"}, "--symbol")
    filters = _code_filter(options)
    home = Home.find()
    with Archive(home).store as store:
        code = CodeSearch.of_home(store, home)
        symbols = code.symbols(redacted(name, home), filters, limit=options["limit"])
    if as_json:
        print_json(symbols_json(symbols, budget=budget))
    else:
        print_page(renderer(budget).symbols(symbols, filtered=filters != DocumentFilter()))


def print_code_lines(text: str, options: Mapping[str, Any], *, context: int, budget: int, as_json: bool) -> None:
    """Print the lines of code that contain a text.

    Raises:
        InvalidInput: The text or a filter is invalid.
        UsageError: The text is missing, or an option does not apply to lines of code.
    """
    if not text:
        raise click.UsageError("--in code requires WORDS.")
    refuse_others(_CODE_USABLE | {"query", "place", "context"}, "--in code")
    filters = _code_filter(options)
    home = Home.find()
    with Archive(home).store as store:
        code = CodeSearch.of_home(store, home)
        matches = code.lines(redacted(text, home), filters, limit=options["limit"], context=context)
    if as_json:
        print_json(code_lines_json(matches, budget=budget))
    else:
        print_page(renderer(budget).code_lines(matches, filtered=filters != DocumentFilter()))


def _code_filter(options: Mapping[str, Any]) -> DocumentFilter:
    """Return the filter of the command line. `--project` names a folder with indexed files, or a namespace."""
    projects: Sequence[str] = options["projects"]
    folders = [Path(project).expanduser().resolve() for project in projects if is_folder(project)]
    names = [project for project in projects if not is_folder(project)]
    if len(options["files"]) > 1 or len(folders) + bool(names) > 1:
        raise click.UsageError("Code is searched with one --file, and with one folder or names as --project.")
    return DocumentFilter(
        namespaces=tuple(dict.fromkeys(space for name in names for space in (name, project_namespace(name)))),
        under=folders[0] if folders else None,
        pattern="".join(options["files"]),
        languages=tuple(options["languages"]),
        units=tuple(options["units"]),
    )


_limit = click.option(
    "-n", "--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="Maximum results."
)


@click.command()
@click.argument("error", nargs=-1, required=True, metavar="ERROR...")
@in_project
@_limit
@as_json
def fix(error: Sequence[str], *, project: str | None, limit: int, as_json: bool) -> None:
    """Show what was run or edited after a command failed with ERROR.

    ERROR is text from the output of the failed command, or a question about it. Exact matches come first, then the
    fixes of most sessions. Without a fix, the closest passages of the conversations are listed. Pass the IDs to
    `palaver show` or `palaver read`.
    """
    print_list(HitKind.FIX, _query_in(project, error, limit), as_json=as_json)


@click.command()
@click.argument("task", nargs=-1, required=True, metavar="TASK...")
@in_project
@_limit
@as_json
def how(task: Sequence[str], *, project: str | None, limit: int, as_json: bool) -> None:
    """Show which commands a project uses for TASK, with the number of runs and the last use.

    TASK is test, lint, format, type check, build, install, run, release, check, or words of the command. Only commands
    that succeeded at least once are listed. Pass the IDs to `palaver show` or `palaver read`.
    """
    print_list(HitKind.COMMAND, _query_in(project, task, limit), as_json=as_json)


def _query_in(project: str | None, words: Sequence[str], limit: int) -> Query:
    """Return a query with a filter for a project given by name or folder, or without it for None."""
    return Query.parse(" ".join(words), limit=limit, projects=[archived_as(project)] if project else [])


def print_list(kind: HitKind, query: Query, *, as_json: bool) -> None:
    """Print the commands for a task, the known fixes of an error, or open items.

    Raises:
        DemoOnly: Only demo data is archived.
        InvalidInput: A filter or the text is invalid.
        UnknownProject: A project is unknown.
    """
    if kind is HitKind.FIX:
        need_own_process()  # This search can take seconds.
    query = replace(query, filters=replace(query.filters, kinds=(kind,)))
    with open_layers(usage=_USAGES[kind]) as layers:
        rows = ListSearch(layers).find(query)
    if as_json:
        print_json(rows)
    else:
        print_page(renderer().computed_list(rows, in_project=bool(query.filters.projects)))
