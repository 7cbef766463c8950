"""Progress records, which versions 2.1.12 to 2.1.81 wrote while a command, a hook or a sub-agent was running.

Most of them repeat what a later record contains. A message of a sub-agent is the exception: some versions store it
nowhere else. These records are copied to a transcript of their own (see `ExtractingFormat`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ...files.lines import Line, Record, records
from ..json_values import mapping, string
from ..record_events import SkipReason, unknown_type

_REASONS: Final = {
    "bash_progress": SkipReason.PROGRESS,
    "powershell_progress": SkipReason.PROGRESS,
    "hook_progress": SkipReason.HOOK_PROGRESS,
    "mcp_progress": SkipReason.SERVER_PROGRESS,
    "query_update": SkipReason.SEARCH_PROGRESS,
    "search_results_received": SkipReason.SEARCH_PROGRESS,
    "waiting_for_task": SkipReason.WAITING,
}
_ENVELOPE: Final = ("sessionId", "cwd", "gitBranch", "version")
_MESSAGE: Final = b'"agentId"'
# Up to a third of all lines are progress records with their fields in this order.
_START: Final = re.compile(rb'[^{]*\{[^{]*"type":"progress","data":\{"type":"([a-z_]+)"')
_START_BYTES: Final = 900
_JOINED: Final = b'}{"'


def progress_reason(record: Record) -> str:
    """Return the reason for skipping a progress record that contains no message of a sub-agent."""
    kind = string(mapping(record.get("data")).get("type"))
    return _REASONS.get(kind) or unknown_type(f"progress/{kind}")


def undecoded_reason(data: bytes) -> str:
    """Return the reason for skipping a line that consists of one progress record, without decoding the line.

    The result is empty for any other line, and for a progress record that has to be decoded.
    """
    found = _START.match(data, 0, _START_BYTES)
    if found is None or not data.endswith(b"}") or _JOINED in data or _MESSAGE in data:
        return ""
    return _REASONS.get(found[1].decode(), "")


def subagent_of(record: Record) -> str:
    """Return the session ID of the sub-agent whose message a progress record contains, or an empty string."""
    data = mapping(record.get("data")) if record.get("type") == "progress" else {}
    return subagent_session(data) if mapping(data.get("message")) else ""


def subagent_session(fields: Record) -> str:
    """Return the session ID of the sub-agent that these fields of a record name, or an empty string."""
    agent = string(fields.get("agentId"))
    return f"agent-{agent}" if agent else ""


def starting_call(record: Record) -> str:
    """Return the ID of the call that started the sub-agent whose message a progress record contains."""
    return string(record.get("parentToolUseID"))


def unwrapped(record: Record) -> Record:
    """Return the sub-agent's message in a progress record, as the record in a sub-agent's own transcript.

    The number of output tokens is omitted: the record was written when the reply began, and counts only its start.
    """
    data = mapping(record.get("data"))
    own, envelope = mapping(data.get("message")), {name: record.get(name) for name in _ENVELOPE}
    message = mapping(own.get("message"))
    usage = {name: count for name, count in mapping(message.get("usage")).items() if name != "output_tokens"}
    return {**envelope, **own, "message": {**message, "usage": usage}, "agentId": data.get("agentId")}


def records_of_subagents(lines: Iterable[Line]) -> Iterator[tuple[Record, Line]]:
    """Yield each progress record with a message of a sub-agent, and its line."""
    for line in lines:
        if b'"progress"' in line.data and _MESSAGE in line.data:
            on_line = records(line)
            if not isinstance(on_line, str):
                yield from ((record, line) for record in on_line if subagent_of(record))


def lines_by_subagent(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the lines with messages of sub-agents, without their content, by the sub-agent's session ID."""
    found: dict[str, dict[int, Line]] = {}
    for record, line in records_of_subagents(lines):
        found.setdefault(subagent_of(record), {})[line.number] = line._replace(data=b"")
    return {native_id: [*on_lines.values()] for native_id, on_lines in found.items()}
