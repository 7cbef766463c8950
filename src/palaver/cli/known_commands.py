"""`palaver fix` and `palaver how`: search in the commands that agents ran."""

from collections.abc import Sequence

import click

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.core.text import similar_names
from palaver.observe.commands.known_fixes import known_fixes
from palaver.observe.commands.project_commands import known_tasks, project_commands
from palaver.search.archive_search import ArchiveSearch
from palaver.search.query.project_names import check_projects

from .demo import refuse_demo_only
from .options import as_json
from .output import print_json, print_page, renderer
from .project_option import archived_as, in_project

_limit = click.option(
    "-n", "--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="Maximum results."
)


@click.command()
@click.argument("error", nargs=-1, required=True, metavar="ERROR...")
@in_project
@_limit
@as_json
def fix(error: Sequence[str], *, project: str | None, limit: int, as_json: bool) -> None:
    """Show what was run or edited after a command failed with ERROR.

    ERROR is text from the output of the failed command. The fix of most sessions comes first, then the newest. Pass
    the IDs to `palaver show` or `palaver read`.
    """
    print_fixes(" ".join(error), [project] if project else [], limit, as_json=as_json)


@click.command()
@click.argument("task", nargs=-1, required=True, metavar="TASK...")
@in_project
@_limit
@as_json
def how(task: Sequence[str], *, project: str | None, limit: int, as_json: bool) -> None:
    """Show which commands a project uses for TASK, with the number of runs and the last use.

    TASK is test, lint, format, type check, build, install, run, release, check, or words of the command. Only commands
    that succeeded at least once are listed. Pass the IDs to `palaver show` or `palaver read`.
    """
    print_commands(" ".join(task), [project] if project else [], limit, as_json=as_json)


def print_fixes(error: str, projects: Sequence[str], limit: int, *, as_json: bool) -> None:
    """Print the known fixes of an error.

    Raises:
        DemoOnly: Only demo data is archived.
        UnknownProject: A project is unknown.
    """
    home = Home.find()
    refuse_demo_only(home, "fix ERROR")
    with Store.of(home) as store, ArchiveSearch(home, Config.read(home.config).model) as layers:
        names = _known(store, projects)
        fixes = known_fixes(layers, store, error, names)
    shown = fixes[:limit]
    if as_json:
        print_json({"fixes": shown, "total": len(fixes)})
    else:
        print_page(renderer().render("fix", fixes=shown, total=len(fixes), scope=_scope(projects)))


def print_commands(task: str, projects: Sequence[str], limit: int, *, as_json: bool) -> None:
    """Print the commands for a task.

    Raises:
        DemoOnly: Only demo data is archived.
        UnknownProject: A project is unknown.
    """
    home = Home.find()
    refuse_demo_only(home, "how TASK")
    with Store.of(home) as store:
        names = _known(store, projects)
        commands = project_commands(store, task, names)
        tasks = [] if commands else known_tasks(store, names)
    shown = commands[:limit]
    if as_json:
        print_json({"commands": shown, "total": len(commands), "tasks": tasks})
    else:
        total, scope = len(commands), _scope(projects)
        near = next((name for word in task.split() for name in similar_names(word.lower(), tasks)), "")
        page = renderer().render("how", task=task, commands=shown, total=total, tasks=tasks, near=near, scope=scope)
        print_page(page)


def _known(store: Store, projects: Sequence[str]) -> list[str]:
    """Return the names under which projects are archived.

    Raises:
        UnknownProject: A project is unknown.
    """
    names = list(map(archived_as, projects))
    check_projects(store, names)
    return names


def _scope(projects: Sequence[str]) -> str:
    return " for this project" if projects else ""
