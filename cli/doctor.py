"""Maintenance commands: `palaver doctor`, `fsck`, `rebuild` and `migrate`.

- `doctor` checks for problems and suggests fixes.
- `fsck` verifies checksums of all stored data and repairs damage.
- `rebuild` rebuilds the index, or parses all raw copies again.
- `migrate` converts the database of an earlier version.
"""

import sys

import click

from palaver import __version__

from ..archiver.ingest.transcripts import of_this_user
from ..archiver.store import migration
from ..core.home import Home
from ..observe.archive import Archive
from ..observe.llm.model_settings import why_off
from ..observe.upkeep.consistency import check_consistency, rebuild_from_archive, rebuild_index
from ..observe.upkeep.health_check import HealthContext, diagnose
from .demo import is_demo, refuse_demo_only
from .output import as_json, print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--deep", is_flag=True, help="Also verify checksums of all stored data.")
@as_json
def doctor(*, deep: bool, as_json: bool) -> None:
    """Check the archive, the index and background services, and suggest repairs.

    The command changes nothing, and also works on a damaged archive. With --deep, it reads all data once to verify
    the checksums of the database, the raw copies and the index, as `palaver fsck` does.

    Exit status: 0 no problems, 1 problems found, 2 usage error.
    """
    home = Home.find()
    refuse_demo_only(home, "doctor")
    demo = is_demo(home)
    context = HealthContext(home, __version__, lambda skipped: [] if demo else of_this_user(skipped), why_off)
    with progress_bars() as report:
        found = diagnose(context, report if deep else None)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("doctor", result=found))
    if not found.healthy:
        sys.exit(1)


@click.command()
@click.option("--repair", is_flag=True, help="Repair derived data, and copy existing transcripts again.")
@as_json
def fsck(*, repair: bool, as_json: bool) -> None:
    """Verify that the database, the raw copies and the index are intact and consistent.

    The command reads all data once. It changes nothing without --repair, and never deletes conversations.

    Exit status: 0 no problems left, 1 problems left, 2 usage error.
    """
    archive = Archive.find()
    home, config = archive.home, archive.config
    with progress_bars() as report:
        found = check_consistency(home, config.model, config.exclude, repair=repair, report=report)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("consistency", result=found))
    if not found.ok:
        sys.exit(1)


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
    archive = Archive.find()
    home, config = archive.home, archive.config
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


@click.command()
@click.option("--delete-old", is_flag=True, help="Delete the old databases that conversions kept.")
@as_json
def migrate(*, delete_old: bool, as_json: bool) -> None:
    """Convert the database of an earlier version of Palaver. Stop `palaver watch` and close all agents first.

    The new database is built beside the old one, compared with it, and then replaces it. All IDs stay the same. The old
    database is kept until you run the command with --delete-old. You can interrupt the command at any time.

    Exit status: 0 success, 1 failure, 2 usage error.
    """
    home = Home.find()
    if delete_old:
        result = migration.delete_old_databases(home)
    else:
        with progress_bars() as report:
            result = migration.migrate(home, report)
    if as_json:
        print_json(result)
    else:
        print_page(renderer().render("migrated", migration=result))
