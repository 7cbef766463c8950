"""Page with the list of sessions and its filters, which are in the address."""

from collections import Counter
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import Store
from ..archiver.store.session_list import SessionFilter
from ..core.observation import ENDINGS
from ..core.reports import grouped
from ..core.time_expressions import between
from ..search.present.details import SessionNames
from .gate import BASE
from .pages import archive_of, page_number, render, route
from .session_rows import columns_of, rows_of

_SUBAGENTS: Final = {"1": "Listed too", "only": "Only these"}
"""Label of each value of the filter for sub-agents. Without it, they are not listed."""
_ROWS: Final = 50
"""Sessions on one page."""
_BRANCHES: Final = 200
"""Maximum number of branches that the filter suggests."""
_LABELS: Final = {
    "project": "Project",
    "agent": "Agent",
    "branch": "Branch",
    "model": "Model",
    "edited": "Edited file",
    "tag": "Tag",
    "ending": "Ending",
    "after": "From",
    "before": "Until",
    "parent": "Sub-agents of",
    "subagents": "Sub-agents",
}
"""Label of each filter, by the name of its parameter in the address."""


def sessions(request: Request) -> Response:
    """Show a page of the sessions that match the filters in the address."""
    store = archive_of(request).store
    chosen = {name: value for name in _LABELS if (value := request.query_params.get(name, "").strip())}
    filters = _filter(store, chosen)
    endings = Counter(store.session_list.count_by_ending(replace(filters, ending="")))
    total, page = endings[filters.ending] if filters.ending else endings.total(), page_number(request)
    page = min(page, max(1, -(-total // _ROWS)))
    first = (page - 1) * _ROWS
    rows = rows_of(store, store.session_list.page(filters, _ROWS, first, pinned_first=True))
    totals = store.sessions.totals_by_project()
    return render(
        request,
        "sessions.html.j2",
        rows=rows,
        columns=columns_of(rows),
        chosen=chosen,
        labels=_LABELS,
        parent_title=_title(store, chosen.get("parent", "")),
        without={name: _address(chosen, without=name) for name in chosen},
        projects=sorted(filter(None, (project.name for project in totals)), key=str.lower),
        agents=store.session_list.agents(),
        branches=store.session_list.branches()[:_BRANCHES],
        models=store.session_list.models(),
        tags=list(store.session_labels.tags()),
        endings={name: endings[name] for name in ENDINGS if endings[name] or name == chosen.get("ending")},
        subagents=_SUBAGENTS,
        total=total,
        position=f"{grouped(first + 1)} to {grouped(first + len(rows))} of {grouped(total)}",
        newer=_address(chosen, page=page - 1) if page > 1 else "",
        older=_address(chosen, page=page + 1) if first + _ROWS < total else "",
    )


def _filter(store: Store, chosen: dict[str, str]) -> SessionFilter:
    """Return the filter for parameters of an address. Raises `InvalidInput` for an invalid date."""
    after, before = between(chosen.get("after"), chosen.get("before"))
    names = {name: chosen.get(name, "") for name in ("project", "agent", "branch", "model", "edited", "tag", "ending")}
    parent = chosen.get("parent", "")
    parents = store.sessions.several(store.sessions.beginning_with(parent) if parent else ())
    parent = next((session.native_id for session in parents.values()), parent)
    is_with_subagents = "subagents" in chosen or parent != ""
    is_main = chosen.get("subagents") != "only"
    return SessionFilter(**names, parent=parent, after=after, before=before, subagents=is_with_subagents, main=is_main)


def _title(store: Store, session: str) -> str:
    """Return the title of the session with this ID, or the ID of an unknown one."""
    numbers = store.sessions.beginning_with(session) if session else []
    return (SessionNames(store).title(numbers[0]) if numbers else "") or session


def _address(chosen: dict[str, str], *, without: str = "", page: int = 1) -> str:
    """Return the address of a page of the list, without one of the filters."""
    values = {name: value for name, value in chosen.items() if name != without}
    if page > 1:
        values["page"] = str(page)
    return f"{BASE}/sessions?{urlencode(values)}" if values else f"{BASE}/sessions"


routes: Final[list[BaseRoute]] = [route("/sessions", sessions)]
