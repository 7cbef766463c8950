"""`palaver fsck`: whether everything that is kept is whole and agrees, and its repair."""

import sys

import click

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.upkeep.fsck import fsck as check

from .options import as_json
from .output import print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--repair", is_flag=True, help="Mend what is derived, and copy anew what an agent still has.")
@as_json
def fsck(*, repair: bool, as_json: bool) -> None:
    """Compare all that is kept, by content: the database, the copies with the agents' files, the index with both.

    Takes as long as reading everything once. Nothing is changed without --repair, and nothing that was said is ever
    deleted. Ends with 0 when all is well, and with 1 when something is left to do.
    """
    home = Home.find()
    config = Config.read(home.config)
    with progress_bars() as report:
        found = check(home, config.model, config.exclude, repair=repair, report=report)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("checkup", checkup=found))
    if not found.sound:
        sys.exit(1)
