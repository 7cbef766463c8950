"""`palaver doctor`: check for problems and suggest fixes."""

import sys

import click

from palaver import __version__
from palaver.archiver.ingest.transcripts import of_this_user
from palaver.core.home import Home
from palaver.observe.llm.configured_model import why_off
from palaver.observe.upkeep.health_check import diagnose
from palaver.observe.upkeep.health_context import HealthContext

from .demo import is_demo, refuse_demo_only
from .options import as_json
from .output import print_json, print_page, progress_bars, renderer


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
