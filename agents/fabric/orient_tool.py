"""Fabric tool for orientation: the time, the project, and what was remembered since the last visit."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ...core.clock import show_millisecond
from ...core.conversation import Milliseconds
from ...core.local_time import LocalTime, find_zone, local_time, resolve, show_duration
from ...core.memory_filter import MemoryFilter
from ...templates.memory_changes import undo_command
from ...templates.quote import clean
from ..toolset import ToolReply
from .fabric_context import FabricContext, in_layers
from .fabric_data import OrientReply
from .fabric_parameters import ProjectPath
from .fabric_replies import dated_row
from .layer_decay import archive_unused

_RECENT = 5
_HERE = 30_000
"""Maximum milliseconds since the last visit at which the summary reads "You were just here"."""
_DECAY_EVERY = 3_600_000


def orient(
    fabric: FabricContext,
    timezone: Annotated[str | None, Field(description="IANA name. Default: system")] = None,
    project_path: ProjectPath = None,
    expression: Annotated[
        str | None, Field(description="now, yesterday, end of week, next Monday, an ISO date, epoch milliseconds ...")
    ] = None,
    also: Annotated[list[str] | None, Field(max_length=50, description="More time zones")] = None,
) -> ToolReply:
    """Return the time, the project, and the memories added since the last visit. Call it first in a session.

    It also resolves a date expression and converts the time to other time zones.
    """
    zone, others, at = find_zone(timezone), [find_zone(name) for name in also or ()], fabric.clock()
    folder, here = fabric.folder(project_path), local_time(at, zone)
    resolved = None if expression is None else resolve(expression, zone, at)
    last = _visit(fabric, folder, at)
    recent = [] if last is None else fabric.core.page(_since(fabric, folder, last), limit=_RECENT)
    gap = None if last is None else _gap(fabric, folder, last, at)
    moment = at if resolved is None else resolved
    reply = OrientReply(
        summary=_summary(here, str(folder), gap),
        time=_time_fields(here),
        project_path=clean(str(folder)),
        offline_gap=gap,
        recent_memories=[dated_row(each) for each in recent],
        resolved=resolved,
        resolved_time=None if resolved is None else _time_fields(local_time(resolved, zone)),
        conversions=[_conversion(local_time(moment, other)) for other in others],
        archived=_decayed(fabric, at),
    )
    return fabric.reply(reply, quotes=bool(recent))


def _visit(fabric: FabricContext, folder: Path, at: Milliseconds) -> Milliseconds | None:
    """Record the time of this visit to a project, and return the time of the previous one."""
    store, project = fabric.core.store, fabric.identity(folder)
    if store.is_read_only:
        return store.visits.last(project)
    with store.transaction():
        last = store.visits.last(project)
        store.visits.record(project, at)
    return last


def _since(fabric: FabricContext, folder: Path, last: Milliseconds) -> MemoryFilter:
    return MemoryFilter(namespaces=in_layers(fabric, (2, 3), folder), created_from=last)


def _gap(fabric: FabricContext, folder: Path, last: Milliseconds, at: Milliseconds) -> dict[str, Any]:
    return {
        "durationMs": max(0, at - last),
        "durationHuman": show_duration(at - last),
        "from": show_millisecond(last),
        "to": show_millisecond(at),
        "memoriesAdded": fabric.core.count(_since(fabric, folder, last)),
    }


def _summary(here: LocalTime, project: str, gap: dict[str, Any] | None) -> str:
    if gap is None:
        visit = "First session in this project."
    elif gap["durationMs"] < _HERE:
        visit = "You were just here."
    else:
        added = gap["memoriesAdded"]
        memories = f"{added} {'memory was' if added == 1 else 'memories were'} added since."
        visit = f"The last visit was {gap['durationHuman']} ago; {memories}"
    return f"It is {here.time} on {here.day} ({here.timezone}, UTC{here.offset}). Project: {clean(project)}. {visit}"


def _time_fields(time: LocalTime) -> dict[str, Any]:
    return {
        "epochMs": time.at,
        "iso": time.iso,
        "timezone": time.timezone,
        "utcOffset": time.offset,
        "timeOfDay": time.time,
        "date": time.day,
        "dayOfWeek": time.weekday,
        "isWeekend": time.is_weekend,
        "weekNumber": time.week,
    }


def _conversion(time: LocalTime) -> dict[str, Any]:
    wanted = ("epochMs", "timezone", "iso", "timeOfDay", "date", "utcOffset")
    fields = _time_fields(time)
    return {name: fields[name] for name in wanted}


def _decayed(fabric: FabricContext, at: Milliseconds) -> dict[str, Any] | None:
    """Archive unused memories of layer 3, at most once an hour, and return their number and the undo command."""
    if fabric.core.store.is_read_only or at - fabric.decayed_at < _DECAY_EVERY:
        return None
    fabric.decayed_at = at
    archived = archive_unused(fabric.core, at)
    return {"count": len(archived), "undo": undo_command([each.id for each in archived])} if archived else None
