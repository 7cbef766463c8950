"""`palaver status`: what is archived, and how far the index is."""

from __future__ import annotations

import click

from palaver.core.config import Config
from palaver.core.home import Home

from .made_up import refuse_only_made_up
from .output import as_json, print_json, print_page, renderer


@click.command()
@as_json
def status(*, as_json: bool) -> None:
    """Say what is archived, what became of every line, and how far the index is."""
    from palaver.observe.upkeep.status import status_of

    home = Home.find()
    refuse_only_made_up(home, "status")
    found = status_of(home, Config.read(home.config).model)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("status", status=found))
