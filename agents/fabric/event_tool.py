"""Fabric tool that stores a client's events as memories."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...core.clock import parse_instant, show_millisecond
from ...core.errors import InvalidInput
from ...core.memory import Memory, MemoryRevision
from ...core.origin import Origin
from ...observe.memory import RememberResult
from ..memory_uuid import uuid_of
from ..toolset import ToolReply
from .earlier_errors import EarlierErrors, earlier_errors
from .event_capture import Capture, captures
from .fabric_context import FabricContext
from .fabric_data import EventReply
from .fabric_parameters import Event
from .fabric_replies import stored_fields

_TAG = "auto_capture"
_FROM_TOOLS = {"command_executed", "error_occurred"}
"""Types of events with tool output. Its author is unknown, so their memories get the origin `TOOL`."""
_MESSAGES = {
    "file_opened": "File recorded.",
    "command_executed": "Command recorded.",
    "error_occurred": "Error recorded.",
    "decision_made": "Decision recorded.",
    "session_start": "Session started. context.getCurrent has its ghost messages.",
    "session_end": "Session closed. Its memories expire.",
    "pattern_detected": "Pattern recorded.",
    "user_feedback": "Feedback recorded.",
}


def report_event(fabric: FabricContext, event: Annotated[Event, Field(description="What happened")]) -> ToolReply:
    """Report an event, which becomes a memory. For an error, the reply names similar errors and what fixed them."""
    if (happened := parse_instant(event.timestamp)) is None:
        raise InvalidInput(f"Invalid timestamp: {event.timestamp!r}", hint="Use ISO 8601, as in 2026-02-25T09:00:00Z.")
    fabric.enter(event.session_id)
    folder, found = fabric.folder(event.project_path), captures(event)
    error = next((each.error for each in found if each.error), "")
    earlier = earlier_errors(fabric, error) if error else None
    results = [_stored(fabric, event, each, folder, show_millisecond(happened)) for each in found]
    actions = [each.action for each in found]
    if event.type == "session_start":
        actions.append("ghost_ready")
    known = earlier is not None and earlier.total > 0
    reply = EventReply(
        processed=True,
        memory_id=uuid_of(results[-1].stored),
        triggered_actions=[*actions, *(["searched_similar_errors"] if earlier else [])],
        message=_message(event, earlier, fabric),
        **stored_fields(results[-1]),
        similar_errors=earlier.memory_rows if earlier and known else None,
        known_fixes=earlier.fix_rows if earlier and known else None,
    )
    return fabric.reply(reply, quotes=known)


def _message(event: Event, earlier: EarlierErrors | None, fabric: FabricContext) -> str:
    recorded = _MESSAGES[event.type]
    return recorded if earlier is None else f"{recorded} {earlier.summary(fabric.clock())}"


def _stored(fabric: FabricContext, event: Event, each: Capture, folder: Path, happened: str) -> RememberResult:
    """Store the memory of an event. A repeated error is stored once, with the number of its reports."""
    memory = Memory(
        each.content,
        each.type,
        namespace=fabric.target(each.layer, folder),
        project=event.project_path or "",
        tags=(_TAG, event.type),
        metadata={**each.metadata, "event": event.type, "cliType": event.cli_type, "eventTime": happened},
        source="system_auto",
        origin=Origin.TOOL if event.type in _FROM_TOOLS else Origin.ASSISTANT,
        session_id=event.session_id,
        valid_until=None if each.ttl is None else fabric.clock() + each.ttl,
    )
    remembered = fabric.core.remember(memory, replaces="")
    if each.layer == 1:
        fabric.evict(remembered.stored)
    elif remembered.duplicate and each.error:
        times = remembered.stored.memory.metadata.get("times", 1)
        repeated = {"times": times + 1 if isinstance(times, int) else 2, "eventTime": happened}
        fabric.core.revise(remembered.stored.id, MemoryRevision(metadata=repeated))
    return remembered
