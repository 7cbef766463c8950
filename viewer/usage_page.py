"""Usage page: tokens and list price by period, project, agent, model, session or branch."""

from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..core.errors import InvalidDate
from ..core.time_expressions import between
from ..core.usage_report import UsageFilter, UsageGroup
from .gate import BASE
from .pages import archive_of, render, route

_ROWS: Final = 100
"""Maximum number of rows."""
_GROUPS: Final = {
    UsageGroup.DAY: "Day",
    UsageGroup.WEEK: "Week",
    UsageGroup.MONTH: "Month",
    UsageGroup.BLOCK: "Five hours",
    UsageGroup.PROJECT: "Project",
    UsageGroup.AGENT: "Agent",
    UsageGroup.MODEL: "Model",
    UsageGroup.SESSION: "Session",
    UsageGroup.BRANCH: "Branch",
}

_COUNTS: Final = {
    "input": "Input",
    "output": "Output",
    "cache_read": "Cache reads",
    "cache_write_5m": "Cache writes, 5 min",
    "cache_write_1h": "Cache writes, 1 h",
}
"""Heading of each column with tokens."""


def usage(request: Request) -> Response:
    """Show the usage in the groups and the period that the address names."""
    query = request.query_params
    by = UsageGroup(query["by"]) if query.get("by") in set(UsageGroup) else UsageGroup.DAY
    chosen = {name: value for name in ("project", "after", "before") if (value := query.get(name, "").strip())}
    try:
        after, before = between(chosen.get("after"), chosen.get("before"))
    except InvalidDate:
        after, before = None, None
    archive = archive_of(request)
    filters = UsageFilter(after, before, (chosen["project"],) if "project" in chosen else ())
    report = archive.usage.report(by, filters)
    return render(
        request,
        "usage.html.j2",
        report=report,
        rows=report.rows[:_ROWS],
        heading=_GROUPS[by],
        columns={name: title for name, title in _COUNTS.items() if getattr(report.total.counts, name)},
        groups=[
            (label, f"{BASE}/usage?{urlencode({'by': group.value, **chosen})}", group is by)
            for group, label in _GROUPS.items()
        ],
        chosen=chosen,
        projects=sorted(archive.store.session_list.count_by_project()),
    )


routes: Final[list[BaseRoute]] = [route("/usage", usage, slow=True)]
