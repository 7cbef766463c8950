"""Home page: open items, recent sessions, activity, projects and the state of the archive."""

from itertools import groupby
from operator import attrgetter
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import ARCHIVER, WATCHER, Store
from ..archiver.store.session_list import SessionFilter
from ..core.observation import NEXT
from ..search.present.details import Sessions, items_of
from .activity import calendar_of
from .pages import archive_of, form_of, redirect, render, route
from .session_rows import columns_of, rows_of

_RECENT: Final = 8
_PINNED: Final = 20
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
    items = items_of(Sessions(store).outlines_of(latest).values())[:_ITEMS]
    pinned = min(len(store.session_labels.pinned()), _PINNED)
    rows = rows_of(store, store.session_list.page(SessionFilter(), _RECENT + pinned, pinned_first=True))
    counts = store.session_list.count_by_project()
    projects = [project for project in store.sessions.totals_by_project() if project.name and project.name in counts]
    return render(
        request,
        "home.html.j2",
        items=[
            (session if "/" in session else group[0].session_id, group)
            for session, same in groupby(items, key=attrgetter("session"))
            for group in (list(same),)
        ],
        dismissed=request.query_params.get("dismissed", ""),
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


def dismiss(request: Request) -> Response:
    """Leave an open item out of lists, also where earlier sessions state the same, or undo this."""
    form, store = form_of(request), archive_of(request).store
    item, is_undone = form.get("item", ""), "undo" in form
    cards = store.summaries.of_sessions(store.session_list.page(SessionFilter(), _READ))
    stating = [number for number, card in cards.items() if item in card.observation.facts]
    with store.transaction():
        store.session_labels.dismiss(stating, item, undo=is_undone)
    return redirect("/" if is_undone else f"/?{urlencode({'dismissed': item})}")


def _problems(store: Store) -> int:
    """Return the number of problems that the database shows. The page of the archive runs all checks."""
    stages = sum(stage.fails for stage in store.stages.all())
    return len(store.sources.problems()) + len(store.sources.damaged()) + stages


routes: Final[list[BaseRoute]] = [route("/", home), route("/dismiss", dismiss, post=True)]
