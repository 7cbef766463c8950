"""`palaver digest`: what was done, decided, learned and left open in a period, and what it cost."""

import shutil
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from ..core.query import Filters
from ..observe.archive import Archive
from .demo import refuse_demo_only
from .output import as_json, date_option, print_json, print_page, progress_bars, renderer
from .project_option import only_projects, only_tags, places_of

_WEEK: Final = "6 days ago"
_SCREEN: Final = 40, 120
"""Maximum rows of a digest without a terminal, and the width at which they are counted."""
_FRAME: Final = 5
"""Rows of a digest besides its projects: heading, marks, the last line and the prompt of the shell."""


@click.command()
@click.option("--week", is_flag=True, help="The last seven days, with today. This is the default.")
@date_option("--since", "--after", "since", help="First date, inclusive: 2026-03-01, yesterday, last week, march.")
@date_option("--until", "--before", "until", last=True, help="Last date, inclusive. Needs --since.")
@only_projects
@only_tags
@click.option("--markdown", is_flag=True, help="Print a Markdown report without a limit, and without marks for agents.")
@as_json
def digest(
    *,
    week: bool,
    since: str | None,
    until: str | None,
    projects: Sequence[str],
    tags: Sequence[str],
    markdown: bool,
    as_json: bool,
) -> None:
    """Report what was done, decided, learned and left open, and what it cost.

    The statements come from the cards of the sessions, grouped by project, the newest first. A digest fits on one
    screen: the longest lists lose their oldest statements. Open items that a later session worked on are left out.

    The cost is the list price of all tokens in the period, which is not your bill: see `palaver usage --help`.
    """
    if until and not since:
        raise click.UsageError("--until needs --since.")
    if week and since:
        raise click.UsageError("--week and --since exclude each other.")
    archive = Archive.find()
    refuse_demo_only(archive.home, "digest")
    names = [name for project in projects for name in places_of(project)]
    filters = Filters.parse(after=since or _WEEK, before=until, projects=names, tags=tags)
    with archive, progress_bars() as report_progress:
        report = archive.digest(filters, partial(report_progress, "Counting"))
    if as_json:
        print_json(report)
    elif not report.sessions:
        click.echo("No session in this period. Give an earlier date with --since, or list sessions: palaver sessions")
    elif markdown:
        click.echo(renderer().fill("digest_report", digest=report), nl=False)
    else:
        columns, lines = shutil.get_terminal_size()
        rows, width = (lines, columns) if sys.stdout.isatty() else _SCREEN
        print_page(renderer().fill("digest", digest=report.fitted(rows - _FRAME, width)))
