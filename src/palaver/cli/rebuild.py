"""`palaver rebuild`: rebuild the index, or parse all raw copies again."""

import sys

import click

from palaver.archiver.ingest.transcripts import of_this_user
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.upkeep.rebuilding import rebuild_from_archive, rebuild_index

from .options import as_json
from .output import print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--from-archive", is_flag=True, help="Parse all raw copies again; works without a database.")
@as_json
def rebuild(*, from_archive: bool, as_json: bool) -> None:
    """Rebuild the index from the database, without network or model. Search works meanwhile.

    With --from-archive, all raw copies are parsed again first, and no new file is ingested. This restores a lost
    database: conversations and what rules learned from them, but not memories, nor what a language model learned.
    Deleted items stay deleted. You can interrupt it at any time.

    Exit status: 0 success, 1 some copies could not be read, 2 usage error.
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
