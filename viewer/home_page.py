"""Home page: open items, recent sessions, activity, projects and the state of the archive."""

from itertools import groupby
from operator import attrgetter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import ARCHIVER, WATCHER, Store
from ..archiver.store.session_list import SessionFilter
from ..core.observation import NEXT
from ..search.present.details import items_of
from .activity import calendar_of
from .pages import archive_of, render, route
from .session_rows import columns_of, outlines_of, rows_of

_RECENT: Final = 8
_PROJECTS: Final = 12
_ITEMS: Final = 8
"""Maximum number of open items and next steps."""
_READ: Final = 150
"""Number of latest sessions whose cards are searched for open items."""


def home(request: Request) -> Response:
    """Show the home page."""
    store = archive_of(request).store
    latest = store.session_list.page(SessionFilter(), _READ)
    if not latest:
        return render(request, "empty.html.j2")
    items = items_of(outlines_of(store, latest))[:_ITEMS]
    rows = rows_of(store, latest[:_RECENT])
    counts = store.session_list.count_by_project()
    projects = [project for project in store.sessions.totals_by_project() if project.name and project.name in counts]
    return render(
        request,
        "home.html.j2",
        items=[(session, list(group)) for session, group in groupby(items, key=attrgetter("session_id"))],
        next=NEXT,
        rows=rows,
        columns=columns_of(rows),
        calendar=calendar_of(store),
        projects=projects[:_PROJECTS],
        project_count=len(projects),
        counts=counts,
        sessions=store.session_list.count(SessionFilter()),
        subagents=store.sessions.count_indexed() - store.session_list.count(SessionFilter()),
        exchanges=store.exchanges.count(),
        observations=sum(store.observations.count_by_type().values()),
        problems=_problems(store),
        is_running=store.leases.holder(ARCHIVER) is not None,
        is_watched=store.leases.holder(WATCHER) is not None,
    )


def _problems(store: Store) -> int:
    """Return the number of problems that the database shows. The page of the archive runs all checks."""
    stages = sum(stage.fails for stage in store.stages.all())
    return len(store.sources.problems()) + len(store.sources.damaged()) + stages


routes: Final[list[BaseRoute]] = [route("/", home)]
