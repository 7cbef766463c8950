"""`palaver fsck`: verify checksums of all stored data and repair damage."""

import sys

import click

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.upkeep.consistency import check_consistency

from .options import as_json
from .output import print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--repair", is_flag=True, help="Repair derived data, and copy existing transcripts again.")
@as_json
def fsck(*, repair: bool, as_json: bool) -> None:
    """Verify that the database, the raw copies and the index are intact and consistent.

    The command reads all data once. It changes nothing without --repair, and never deletes conversations.

    Exit status: 0 no problems left, 1 problems left, 2 usage error.
    """
    home = Home.find()
    config = Config.read(home.config)
    with progress_bars() as report:
        found = check_consistency(home, config.model, config.exclude, repair=repair, report=report)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("consistency", result=found))
    if not found.ok:
        sys.exit(1)
