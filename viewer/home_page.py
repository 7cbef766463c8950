"""Home page: open items, recent sessions, activity, projects and the state of the archive. Open and dismissed items."""

from collections.abc import Collection, Mapping, Sequence
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
from ..core.results import OpenItem, SessionOutline
from ..search.present.details import Sessions, items_of
from .activity import calendar_of
from .pages import archive_of, form_of, redirect, render, route
from .session_rows import columns_of, rows_of

_RECENT: Final = 8
_PINNED: Final = 20
_PROJECTS: Final = 12
_ITEMS: Final = 8
"""Maximum number of open items and next steps on the home page."""
_ALL_ITEMS: Final = 300
"""Maximum number of open items on their own page."""
_ALL_READ: Final = 1_000
"""Number of latest sessions, or of those of a project, whose cards the page of open items searches."""
_READ: Final = 150
"""Number of latest sessions whose cards the home page searches for open items."""
_CURRENT: Final = 14 * 86_400_000
"""Milliseconds before the latest session of a list within which an item is current. Older ones are folded."""


def home(request: Request) -> Response:
    """Show the home page."""
    store = archive_of(request).store
    latest = store.session_list.page(SessionFilter(), _READ)
    if not latest:
        return render(request, "empty.html.j2")
    sessions = Sessions(store).outlines_of(latest)
    current, older = _current_and_older(sessions.values())
    rows = rows_of(store, _pinned_and_recent(store))
    counts = store.session_list.count_by_project()
    projects = [project for project in store.sessions.totals_by_project() if project.name and project.name in counts]
    return render(
        request,
        "home.html.j2",
        items=_by_session(store, sessions, current[:_ITEMS]),
        has_items=bool(current or older),
        dismissed=request.query_params.get("dismissed", ""),
        next=NEXT,
        rows=rows,
        columns=columns_of(rows),
        calendar=calendar_of(store),
        projects=projects,
        shown=_PROJECTS,
        counts=counts,
        sessions=store.session_list.count(SessionFilter()),
        subagents=store.sessions.count_indexed() - store.session_list.count(SessionFilter()),
        exchanges=store.exchanges.count(),
        observations=sum(store.observations.count_by_type(cards=False).values()),
        is_running=store.leases.holder(ARCHIVER) is not None,
        is_watched=store.leases.holder(WATCHER) is not None,
    )


def open_items(request: Request) -> Response:
    """Show all open items and next steps, or those of the project in the address."""
    store, project = archive_of(request).store, request.query_params.get("project", "")
    projects = sorted(filter(None, store.session_list.count_by_project()), key=str.lower)
    latest = store.session_list.page(SessionFilter(project=project), _ALL_READ)
    sessions = Sessions(store).outlines_of(latest)
    current, older = _current_and_older(sessions.values())
    shown = [*current, *older][:_ALL_ITEMS]
    return render(
        request,
        "open.html.j2",
        items=_by_session(store, sessions, shown[: len(current)]),
        older=_by_session(store, sessions, shown[len(current) :]),
        older_total=len(shown[len(current) :]),
        total=len(shown),
        is_cut=len(shown) == _ALL_ITEMS or len(latest) == _ALL_READ,
        project=project,
        projects=projects,
        is_unknown=bool(project) and project not in projects,
        dismissed=request.query_params.get("dismissed", ""),
        next=NEXT,
    )


def dismissed_items(request: Request) -> Response:
    """Show the dismissed items, each with the latest session that states it, the latest first."""
    store = archive_of(request).store
    cards = store.summaries.of_sessions(store.session_labels.with_dismissals())
    sessions = dict[str, int]()
    for number, card in sorted(cards.items(), key=lambda entry: entry[1].observation.at or 0, reverse=True):
        facts = card.observation.facts
        listed = store.session_labels.undismissed(number, facts)
        for fact in facts:
            if fact not in listed:
                sessions.setdefault(fact, number)
    rows = {row.path: row for row in rows_of(store, list(dict.fromkeys(sessions.values())))}
    addresses = store.session_list.addresses(sessions.values())
    items = [(fact, rows[addresses[number]]) for fact, number in sessions.items()]
    return render(request, "dismissed.html.j2", items=items)


def dismiss(request: Request) -> Response:
    """Leave an open item out of lists, also where earlier sessions state the same, or undo this."""
    form, store = form_of(request), archive_of(request).store
    item, is_undone = form.get("item", ""), "undo" in form
    numbers = store.session_list.page(SessionFilter(), store.sessions.count())
    cards = store.summaries.of_sessions(numbers)
    stating = [number for number, card in cards.items() if item in card.observation.facts]
    with store.transaction():
        store.session_labels.dismiss(stating, item, undo=is_undone)
    query = {"project": form.get("project", ""), "dismissed": "" if is_undone else item}
    page = "/open" if "all" in form else "/"
    return redirect(f"{page}?{urlencode({name: value for name, value in query.items() if value})}")


def _pinned_and_recent(store: Store) -> list[int]:
    """Return the pinned sessions, also of sub-agents, the latest first, and then the recent sessions."""
    labelled = set(store.session_labels.pinned())
    first = store.session_list.page(SessionFilter(subagents=True), min(len(labelled), _PINNED), pinned_first=True)
    pinned = [number for number in first if number in labelled]
    recent = store.session_list.page(SessionFilter(), _RECENT + len(pinned))
    return [*pinned, *[number for number in recent if number not in labelled][:_RECENT]]


def _current_and_older(sessions: Collection[SessionOutline]) -> tuple[list[OpenItem], list[OpenItem]]:
    """Return the open items of sessions that are sorted from the latest to the first: the current ones, and others."""
    latest = next((at for session in sessions if (at := session.ended or session.started)), 0)
    current, older = list[OpenItem](), list[OpenItem]()
    for item in items_of(sessions):
        is_current = item.at is not None and item.at >= latest - _CURRENT
        (current if is_current else older).append(item)
    return current, older


def _by_session(
    store: Store, sessions: Mapping[int, SessionOutline], items: Sequence[OpenItem]
) -> list[tuple[str, list[OpenItem]]]:
    """Return the items of each session together, each with its line, and with the name of the session in addresses."""
    placed = Sessions(store).with_lines(items, {session.id: number for number, session in sessions.items()})
    groups = (list(same) for _, same in groupby(placed, key=attrgetter("session")))
    return [(group[0].session if "/" in group[0].session else group[0].session_id, group) for group in groups]


routes: Final[list[BaseRoute]] = [
    route("/", home),
    route("/open", open_items, slow=True),
    route("/open/dismissed", dismissed_items),
    route("/dismiss", dismiss, post=True, slow=True),
]
