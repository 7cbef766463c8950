"""Usage page: tokens and list price by period, project, agent, model, session or branch."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import Store
from ..core.conversation import current_day
from ..core.errors import InvalidDate
from ..core.time_expressions import between
from ..core.usage_report import UsageFilter, UsageGroup, UsageReport
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

_PERIODS: Final = {UsageGroup.DAY, UsageGroup.WEEK, UsageGroup.MONTH, UsageGroup.BLOCK}
"""Groups whose rows have a bar."""
_WITHIN: Final = {
    UsageGroup.MONTH: UsageGroup.DAY,
    UsageGroup.DAY: UsageGroup.SESSION,
    UsageGroup.PROJECT: UsageGroup.SESSION,
}
"""Group to which a row of another group leads."""
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
    problem = None
    try:
        after, before = between(chosen.get("after"), chosen.get("before"))
    except InvalidDate as error:
        after, before, problem = None, None, error
    archive = archive_of(request)
    filters = UsageFilter(after, before, (chosen["project"],) if "project" in chosen else ())
    report, deletions = archive.usage.report(by, filters), archive.deletions.history()
    return render(
        request,
        "usage.html.j2",
        400 if problem else 200,
        problem=problem,
        report=report,
        rows=report.rows[:_ROWS],
        heading=_GROUPS[by],
        columns={name: title for name, title in _COUNTS.items() if getattr(report.total.counts, name)},
        groups=[
            (label, f"{BASE}/usage?{urlencode({'by': group.value, **chosen})}", group is by)
            for group, label in _GROUPS.items()
        ],
        within=_within(by, chosen) if by in _WITHIN else None,
        months=_months(by, chosen),
        chosen=chosen,
        projects=sorted({*archive.store.session_list.count_by_project(), *filters.projects}),
        bars=_bars(report) if by in _PERIODS else None,
        linked=_with_page(archive.store, report) if by is UsageGroup.SESSION else (),
        deleted=sum(deletion.summary.exchanges for deletion in deletions),
        deleted_sessions=sum(deletion.summary.sessions for deletion in deletions),
    )


def _bars(report: UsageReport) -> dict[str, int]:
    """Return the list price of each row in percent of the highest or, if no price is known, its tokens."""
    sizes = {row.name: row.cost if report.total.cost else row.counts.total for row in report.rows[:_ROWS]}
    highest = max(sizes.values(), default=0) or 1
    return {name: round(100 * size / highest) for name, size in sizes.items()}


def _with_page(store: Store, report: UsageReport) -> set[str]:
    """Return the IDs of the listed sessions that have exchanges. Others, such as an empty one, have no page."""
    numbers = {row.name: store.sessions.beginning_with(row.name) for row in report.rows[:_ROWS]}
    indexed = store.session_list.totals([number for matches in numbers.values() for number in matches])
    return {name for name, matches in numbers.items() if indexed.keys() & {*matches}}


def _within(by: UsageGroup, chosen: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that returns the address of the usage within a row, or an empty text for one without name."""

    def address(name: str) -> str:
        if by is UsageGroup.PROJECT:
            own = {"project": name}
        elif by is UsageGroup.DAY:
            own = {"after": name, "before": name}
        else:
            year, _, month = name.partition("-")
            last = monthrange(int(year), int(month))[1] if month.isdecimal() else 0
            own = {"after": f"{name}-01", "before": f"{name}-{last:02}"}
        values = {**chosen, "by": _WITHIN[by].value, **own}
        return f"{BASE}/usage?{urlencode(values)}" if name and name != "undated" else ""

    return address


def _months(by: UsageGroup, chosen: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Return the label and the address of this month and the last one, and whether it is chosen."""
    first = current_day().replace(day=1)
    months = list[tuple[str, str, bool]]()
    for label, day in (("This month", first), ("Last month", (first - timedelta(days=1)).replace(day=1))):
        own = {"after": day.isoformat(), "before": day.replace(day=monthrange(day.year, day.month)[1]).isoformat()}
        is_chosen = all(chosen.get(name) == value for name, value in own.items())
        values = {"by": by.value, **{name: value for name, value in chosen.items() if not (is_chosen and name in own)}}
        months.append((label, f"{BASE}/usage?{urlencode(values if is_chosen else {**values, **own})}", is_chosen))
    return months


routes: Final[list[BaseRoute]] = [route("/usage", usage, slow=True)]
