"""`palaver status`: contents of the archive and state of the index."""

import click

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.upkeep.archive_status import projects_of, status_of

from .demo import refuse_demo_only
from .options import as_json
from .output import print_json, print_page, renderer


@click.command()
@click.option("--projects", is_flag=True, help="List all projects with their sessions and memories.")
@as_json
def status(*, projects: bool, as_json: bool) -> None:
    """Show the contents of the archive, the state of the index, and the number of parsed and skipped lines."""
    home = Home.find()
    refuse_demo_only(home, "status")
    if projects:
        _print_projects(home, as_json=as_json)
        return
    found = status_of(home, Config.read(home.config).model)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("status", status=found))


def _print_projects(home: Home, *, as_json: bool) -> None:
    found = projects_of(home)
    if as_json:
        print_json({"projects": [each._asdict() for each in found]})
    else:
        print_page(renderer().render("projects", projects=found))
