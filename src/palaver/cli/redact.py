"""`palaver redact`: list redacted secrets."""

import click

from palaver.archiver.reading.secrets_report import secrets_in
from palaver.archiver.store import Store
from palaver.core.home import Home

from .options import as_json
from .output import print_json, print_page, renderer


@click.command()
@click.option("--report", is_flag=True, help="List redacted secrets (the default).")
@as_json
def redact(*, report: bool, as_json: bool) -> None:  # noqa: ARG001 - spelled out in scripts
    """List redacted secrets by kind and location, without printing the secrets.

    Every text is redacted before it is stored. Equal secrets have equal placeholders. After an update of the rules,
    `palaver archive` parses all transcripts again.
    """
    with Store.of(Home.find()) as store:
        found = secrets_in(store)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("secrets", found=found))
