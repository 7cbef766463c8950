"""`palaver open`: open items and next steps of past sessions."""

from collections.abc import Sequence

import click

from palaver.core.query import Filters

from .options import as_json, date_option
from .output import print_json, print_page, renderer
from .project_option import only_projects, places_of
from .search import open_layers


@click.command()
@only_projects
@date_option("--after", "--since", "after", help="First date, inclusive.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True, metavar="N", help="Maximum items."
)
@as_json
def open(*, projects: Sequence[str], after: str | None, before: str | None, limit: int, as_json: bool) -> None:  # noqa: A001 - the name of the command
    """List open items and next steps of past sessions, the newest first, with session ID and date.

    They come from the cards of the sessions, which quote what the agent left undone or proposed as next step. Later
    sessions may have done them.
    """
    places = [place for project in projects for place in places_of(project)]
    with open_layers() as layers:
        items = layers.open_items(Filters.parse(after=after, before=before, projects=places), limit)
    if as_json:
        print_json({"items": items})
    elif items:
        print_page(renderer().render("open_items", items=items))
    else:
        click.echo("No session has open items or next steps. To list sessions: palaver sessions")
