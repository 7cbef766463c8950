"""Session commands: `palaver sessions` and `projects` list the archive, `session` labels and `open` shows open items.

`palaver open` also shows the next steps of past sessions.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import click
from msgspec.structs import replace

from ..archiver.deletion.deletions import explain_deletions
from ..archiver.store.session_label_table import SessionLabel, SessionLabelTable, tag_of
from ..core.conversation import show_day
from ..core.errors import InvalidInput
from ..core.query import LIMIT_MAX, Filters, HitKind, Query
from ..core.results import SessionOutline
from ..observe.archive import Archive
from ..observe.upkeep.archive_status import projects_of
from ..search.present.details import SessionNames
from ..templates.json_output import to_json, with_tokens
from ..templates.quote import line
from .demo import refuse_demo_only
from .output import as_json, date_option, is_interactive, print_json, print_page, renderer
from .project_option import archived_as, only_projects, only_tags, places_of
from .search import open_layers, print_list

_PICKED_MAX: Final = 300
"""Maximum number of sessions to choose from."""
_ACTIONS: Final = {
    "show": "Show what was done",
    "read": "Read the conversation",
    "view": "Open it in the browser",
    "resume": "Start the agent again in it",
    "handoff": "Write a brief for another agent",
    "share": "Write a page to give to others",
}
"""Commands for a chosen session."""


@click.command()
@only_projects
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent: claude-code, codex, ...")
@click.option("--branch", "branches", multiple=True, metavar="NAME", help="Only this git branch.")
@only_tags
@click.option("--file", "files", multiple=True, metavar="FILE", help="Only sessions that read or modified FILE.")
@date_option("--after", "--since", "after", help="First date, inclusive: 2026-03-01, yesterday, 3 weeks ago, march.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option("-n", "--limit", type=int, default=20, show_default=True, metavar="N", help="Maximum sessions, 1 to 50.")
@click.option(
    "--cursor", default="", metavar="CURSOR", help="Show the next page; CURSOR is printed at the end of a page."
)
@click.option("--pick", is_flag=True, help="Choose a session with the arrow keys or by typing, and what to do with it.")
@as_json
@click.pass_context
def sessions(context: click.Context, /, *, pick: bool, as_json: bool, **options: Any) -> None:
    """List sessions, the latest first: short ID, date, project, title, agent, number of exchanges and branch.

    Filters can be repeated; a session must match one of the values. `palaver search WORDS --by session` lists the
    sessions that contain the words.
    """
    options["projects"] = [*map(archived_as, options["projects"])]
    if pick and as_json:
        raise click.UsageError("--pick and --json cannot be combined.")
    if pick:
        if command := _picked(_choices(options)):
            group = cast("click.Group", context.find_root().command)
            context.exit(group.main(command, "palaver", standalone_mode=False) or 0)
        return
    with open_layers() as layers:
        page = layers.sessions(Query.newest(by="session", **options))
        deleted = "" if page.sessions else explain_deletions(layers.store, options["projects"])
    if as_json:
        print_json(with_tokens({"sessions": to_json(page.sessions), "next": page.cursor or None}))
    elif page.sessions:
        print_page(renderer().sessions(page))
    else:
        hint = "Remove a filter, or run `palaver projects` to see all projects."
        click.echo(f"No session matches. {deleted or hint}")


@click.command()
@as_json
def projects(*, as_json: bool) -> None:
    """List all projects with their sessions, memories and indexed files, the one with the latest session first."""
    archive = Archive.find()
    refuse_demo_only(archive.home, "projects")
    with archive.store as store:
        found = projects_of(store)
        deleted = "" if found else explain_deletions(store)
    if as_json:
        print_json({"projects": found})
    else:
        print_page(renderer().render("projects", projects=found, deleted=deleted))


@click.command()
@only_projects
@only_tags
@date_option("--after", "--since", "after", help="First date, inclusive.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True, metavar="N", help="Maximum items."
)
@as_json
def open(  # noqa: A001 - the name of the command
    *,
    projects: Sequence[str],
    tags: Sequence[str],
    after: str | None,
    before: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List open items and next steps of past sessions, the newest first, with session ID and date.

    They come from the cards of the sessions, which quote what the agent left undone or proposed as next step. Items
    that a later session worked on, by its title or result, are left out.
    """
    places = [place for project in projects for place in places_of(project)]
    filters = Filters.parse(after=after, before=before, projects=places, tags=tags)
    print_list(HitKind.OPEN, Query((), limit=limit, filters=filters), as_json=as_json)


def _choices(options: dict[str, Any]) -> list[SessionOutline]:
    """Return the latest sessions that match the options of `palaver sessions`."""
    options["limit"] = LIMIT_MAX
    query, choices = Query.newest(by="session", **options), list[SessionOutline]()
    with open_layers() as layers:
        while len(choices) < _PICKED_MAX:
            page = layers.sessions(query)
            choices += page.sessions
            if not page.cursor:
                break
            query = replace(query, cursor=page.cursor)
    return choices


def _picked(sessions: Sequence[SessionOutline]) -> list[str]:
    """Let the user choose a session and an action. Return the words of the command, or an empty list after Ctrl-C.

    Raises:
        InvalidInput: There is no terminal, or no session.
    """
    if not is_interactive():
        raise InvalidInput("--pick needs a terminal", hint="Leave out --pick to print the list.")
    if not sessions:
        raise InvalidInput("No session matches", hint="Remove a filter, or run `palaver projects`.")
    from questionary import Choice, select

    rows = [
        Choice(f"{show_day(row.ended or row.started)}  {line(row.title)}  [{row.project}]", row.id) for row in sessions
    ]
    keys = "arrow keys, or type to filter; Ctrl-C to leave"
    chosen = select("Session", rows, instruction=keys, use_search_filter=True, use_jk_keys=False).ask()
    if chosen is None:
        return []
    action = select("Then", [Choice(about, command) for command, about in _ACTIONS.items()]).ask()
    return [] if action is None else [action, chosen]


@click.group()
def session() -> None:
    """Rename, tag and pin sessions. Labels survive every new extraction."""


@session.command()
@click.argument("session", metavar="SESSION")
@click.argument("title", default="", metavar="[TITLE]")
@as_json
def rename(*, session: str, title: str, as_json: bool) -> None:
    """Give SESSION a title, or without TITLE its extracted title again."""
    with _changing(session) as (labels, number):
        labels.rename(number, title)
    _print_label(session, as_json=as_json)


@session.command()
@click.argument("session", metavar="SESSION")
@click.argument("tags", nargs=-1, metavar="[TAG...]")
@click.option("--remove", multiple=True, metavar="TAG", help="Remove this tag.")
@as_json
def tag(*, session: str, tags: Sequence[str], remove: Sequence[str], as_json: bool) -> None:
    """Add tags to SESSION, or remove some. A tag is one word in lower case."""
    with _changing(session) as (labels, number):
        labels.tag(number, [*map(tag_of, tags)], [*map(tag_of, remove)])
    _print_label(session, as_json=as_json)


@session.command()
@click.argument("session", metavar="SESSION")
@click.option("--undo", is_flag=True, help="Unpin the session.")
@as_json
def pin(*, session: str, undo: bool, as_json: bool) -> None:
    """Pin SESSION to the top of the lists of `palaver view`."""
    with _changing(session) as (labels, number):
        labels.pin(number, pinned=not undo)
    _print_label(session, as_json=as_json)


@contextmanager
def _changing(session: str) -> Generator[tuple[SessionLabelTable, int]]:
    """Open a transaction for the labels of the session whose ID begins with `session`."""
    with open_layers() as layers:
        number = layers.session_number(session)
        with layers.store.transaction():
            yield layers.store.session_labels, number


def _print_label(session: str, *, as_json: bool) -> None:
    """Print the title and the labels that a session now has."""
    with open_layers() as layers:
        number = layers.session_number(session)
        [(short_id, title)] = SessionNames(layers.store).of_all([number]).values()
        label = layers.store.session_labels.of([number]).get(number, SessionLabel())
    if as_json:
        print_json({"id": short_id, "title": title, "pinned": label.pinned, "tags": [*label.tags]})
        return
    tags = f"tags: {', '.join(label.tags)}" if label.tags else ""
    click.echo("; ".join(filter(None, (f"{short_id} {line(title)}", "pinned" if label.pinned else "", tags))))
