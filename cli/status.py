"""`palaver status`: contents of the archive and state of the index."""

import click

from ..observe.archive import Archive
from ..observe.upkeep.archive_status import status_of
from .demo import refuse_demo_only
from .output import as_json, print_json, print_page, renderer


@click.command()
@as_json
def status(*, as_json: bool) -> None:
    """Show the contents of the archive, the state of the index, and the number of parsed and skipped lines."""
    archive = Archive.find()
    refuse_demo_only(archive.home, "status")
    found = status_of(archive.home, archive.config.model)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("status", status=found))
