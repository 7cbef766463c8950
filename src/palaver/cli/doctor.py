"""`palaver doctor`: one screen that says whether everything is well, and the command that helps where it is not."""

import sys

import click

from palaver import __version__
from palaver.archiver.ingest.transcripts import of_this_user
from palaver.core.home import Home
from palaver.observe.upkeep.doctor import diagnose
from palaver.observe.upkeep.patient import Patient

from .demo import is_demo, refuse_demo_only
from .options import as_json
from .output import print_json, print_page, renderer
from .provider import why_off


@click.command()
@as_json
def doctor(*, as_json: bool) -> None:
    """Say on one screen whether everything is well: what is behind, what failed, and the command that repairs it.

    Only looks, and works on a home that is broken. Ends with 0 when all is well, and with 1 when there is something
    to do. `palaver fsck` compares every byte, which takes longer.
    """
    home = Home.find()
    refuse_demo_only(home, "doctor")
    none = is_demo(home)
    found = diagnose(Patient(home, __version__, lambda skipped: [] if none else of_this_user(skipped), why_off))
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("doctor", diagnosis=found))
    if not found.healthy:
        sys.exit(1)
