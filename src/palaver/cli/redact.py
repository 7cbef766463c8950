"""`palaver redact`: which secrets were taken out of what is archived."""

import click

from palaver.archiver.reading.secrets_report import secrets_in
from palaver.archiver.store import Store
from palaver.core.home import Home

from .options import as_json
from .output import print_json, print_page, renderer


@click.command()
@click.option("--report", is_flag=True, help="Say what was taken out; this is what the command does anyway.")
@as_json
def redact(*, report: bool, as_json: bool) -> None:  # noqa: ARG001 - spelled out in scripts
    """Say which kinds of secrets stood where, never the secrets themselves.

    Every text is redacted before it is stored; equal secrets have equal placeholders. When newer rules come with an
    update, `palaver archive` reads everything again by them.
    """

    with Store.open(Home.find().database) as store:
        found = secrets_in(store)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("secrets", found=found))
