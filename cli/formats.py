"""`palaver formats`: reports of unknown records, for bug reports."""

import click

from palaver import __version__

from ..core.agent_names import agent_named
from ..observe.archive import Archive
from ..observe.upkeep.archive_status import status_of
from ..observe.upkeep.format_drift import shown_file
from ..search.query.tokenizer import check_agents
from .demo import refuse_demo_only
from .output import as_json, print_json, print_page, renderer


@click.group()
def formats() -> None:
    """Report changes of transcript formats."""


@formats.command()
@click.option(
    "--agent", metavar="NAME", help="Only this agent: claude-code, codex, ... Unreadable files are always listed."
)
@as_json
def report(*, agent: str | None, as_json: bool) -> None:
    """Print what was not read, with the shapes of records, for a bug report.

    A shape has the names and types of fields. Names that look like data are replaced by …. Read the report before you
    publish it.
    """
    archive = Archive.find()
    refuse_demo_only(archive.home, "formats report")
    status = status_of(archive.home, archive.config.model)
    name = agent_named(agent) if agent else ""
    if agent:
        check_agents([name], (archived.agent for archived in status.agents))
    agents = [each for each in status.agents if not name or each.agent == name]
    drift = [each for each in status.drift if not name or each.agent == name]
    problems = [(shown_file(path), reason) for path, reason in status.problems]
    if as_json:
        print_json({"version": __version__, "agents": agents, "drift": drift, "problems": problems})
    else:
        print_page(
            renderer().render("formats", version=__version__, agent=name, agents=agents, drift=drift, problems=problems)
        )
