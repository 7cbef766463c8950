"""`palaver usage`: tokens of archived conversations and their list price."""

from collections.abc import Sequence
from functools import partial

import click

from ..core.agent_names import agent_named
from ..core.query import FIELDS
from ..core.time_expressions import between
from ..core.usage_report import UsageFilter, UsageGroup
from ..observe.archive import Archive
from ..templates.json_output import to_json
from .demo import refuse_demo_only
from .output import as_json, date_option, print_json, print_page, progress_bars, renderer
from .project_option import archived_as, only_projects, only_tags

_ROWS = 20
"""Maximum number of rows of a page, unless the option says otherwise."""


@click.command()
@click.option(
    "--by",
    type=click.Choice([group.value for group in UsageGroup]),
    default="day",
    show_default=True,
    help="How to group tokens.",
)
@only_projects
@only_tags
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent: claude-code, codex, ...")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only this model.")
@click.option("--branch", "branches", multiple=True, metavar="NAME", help="Only this git branch.")
@date_option("--after", "--since", "after", help="First date, inclusive: 2026-03-01, yesterday, last week, march.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Maximum rows (default: 20, all with --json).")
@as_json
def usage(
    *,
    by: str,
    projects: Sequence[str],
    tags: Sequence[str],
    agents: Sequence[str],
    models: Sequence[str],
    branches: Sequence[str],
    after: str | None,
    before: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the tokens of your agents and their list price, which is not your bill.

    Each reply of a model counts once, also if several transcripts contain it. Tokens that were read from the cache, and
    both kinds of cache writes, are counted apart from other input. A sub-agent counts for the session that started it.

    Periods are listed from the latest to the first, other groups from the most expensive to the cheapest. A block is
    five hours long and begins with the full hour (UTC) of its first reply.

    Prices are those of the installed list, or of the table `prices` in config.toml.
    """
    archive = Archive.find()
    refuse_demo_only(archive.home, "usage")
    first, end = between(after, before)
    places, named = tuple(map(archived_as, projects)), FIELDS["tags"].parsed(tags)
    filters = UsageFilter(first, end, places, tuple(map(agent_named, agents)), tuple(models), tuple(branches), named)
    with archive, progress_bars() as report_progress:
        report = archive.usage.report(UsageGroup(by), filters, partial(report_progress, "Counting"))
    rows = report.rows[:limit] if as_json else report.rows[: limit or _ROWS]
    if as_json:
        print_json(to_json(report) | {"rows": to_json(rows)})
    elif rows:
        print_page(renderer().fill("usage", report=report, rows=rows))
    else:
        print_page(renderer().fill("usage_none", report=report, filtered=filters != UsageFilter()))
