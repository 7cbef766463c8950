"""`palaver rebuild`: the index, or everything, made anew from what is kept."""

import sys

import click

from palaver.archiver.ingest.transcripts import of_this_user
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.upkeep.rebuilding import rebuild_from_archive, rebuild_index

from .options import as_json
from .output import print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--from-archive", is_flag=True, help="Read every archived copy again, also without a database.")
@as_json
def rebuild(*, from_archive: bool, as_json: bool) -> None:
    """Make the index anew from the database. Needs no network and no model, and search answers meanwhile.

    With --from-archive every copy is read again before that, and nothing that has no copy yet is taken up. So a lost
    database comes back: what was said, and what rules learned from it, but neither memories nor what a language model
    learned. What was forgotten stays so: its marks stand in a file beside the copies as well. It can be stopped at any
    time.
    """
    home = Home.find()
    config = Config.read(home.config)
    with progress_bars() as report:
        if from_archive:
            made = rebuild_from_archive(home, of_this_user(), config.model, report, config.exclude)
        else:
            made = rebuild_index(home, config.model, report)
    if as_json:
        print_json(made)
    else:
        print_page(renderer().render("rebuilt", rebuilt=made))
    if made.problems:
        sys.exit(1)
