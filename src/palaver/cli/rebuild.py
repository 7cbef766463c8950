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
@click.option("--from-archive", is_flag=True, help="Parse all raw copies again. No database is needed.")
@as_json
def rebuild(*, from_archive: bool, as_json: bool) -> None:
    """Rebuild the index from the database, without network or model. You can search in the meantime.

    With --from-archive, all raw copies are parsed again first. New files are not ingested. This restores all
    conversations of a lost database, and the observations that rules extract. It does not restore memories and
    observations of a language model. Deleted items stay deleted. You can interrupt the command at any time.

    Exit status: 0 success, 1 some copies could not be read, 2 usage error.
    """
    home = Home.find()
    config = Config.read(home.config)
    with progress_bars() as report:
        if from_archive:
            result = rebuild_from_archive(home, of_this_user(), config.model, report, config.exclude)
        else:
            result = rebuild_index(home, config.model, report)
    if as_json:
        print_json(result)
    else:
        print_page(renderer().render("rebuilt", rebuilt=result))
    if result.problems:
        sys.exit(1)
