"""Fabric tool that stores a client's events, such as a failed command, as memories.

For an error, the reply names similar errors in memories, and the fixes of similar errors in archived conversations.
"""

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, cast

import orjson
from msgspec import Struct
from pydantic import Field

from ...core.conversation import Milliseconds, Origin, parse_instant, show_day, show_millisecond
from ...core.errors import InvalidInput
from ...core.local_time import show_duration
from ...core.memory import FAMILIES, Family, Memory, MemoryFilter, MemoryRevision, StoredMemory
from ...core.query import QUERY_MAX
from ...core.reports import KnownFix
from ...observe.commands.known_fixes import known_fixes
from ...observe.memory import RememberResult, SimilarMemory
from ...observe.rules.shell_commands import ErrorSignature
from ...search.query.query_analysis import redacted
from ...templates.quote import brief, clean
from ..memory_rows import uuid_of
from ..toolset import Rows, ToolReply
from .fabric_context import Event, FabricContext
from .fabric_replies import EventReply, stored_fields
from .layer_tools import Layer

_OUTPUT: Final = 500
"""Maximum characters of the output of a command in a memory."""
_ERROR: Final = 2_000
"""Maximum characters of an error in a memory."""
_HOUR: Final = 3_600_000
_FAILED, _PLACE, _FIX = " failed: ", "\nin ", "\nFixed by: "
"""Texts between a command and its error, and texts that introduce the file and the fix of an error."""
_FAILURE: Final = re.compile(
    r"\b(?:error|exception|failed|failure|fatal|panic|traceback|command not found|no such file|permission denied"
    r"|E(?:NOENT|ACCES|CONNREFUSED|PERM))\b|\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NO_FAILURE: Final = re.compile(r"\b(?:0|no|without) (?:errors?|failures?|failed|exceptions?)\b", re.IGNORECASE)

_WITHOUT_PAYLOAD: Final = frozenset({"session_start", "session_end"})
_EXAMPLES: Final[Mapping[str, Mapping[str, str]]] = {
    "file_opened": {"file": "src/app.ts"},
    "command_executed": {"command": "npm test", "output": "12 passed"},
    "error_occurred": {"error": "TypeError: fetch failed", "file": "src/app.ts"},
    "decision_made": {"decision": "Use Zod", "rationale": "One schema for types and checks"},
    "pattern_detected": {"name": "Result type", "code": "type Result<T> = T | Error"},
    "user_feedback": {"feedback": "Keep the functions short"},
}
"""Payload of each type of event that needs one."""


class Capture(Struct, frozen=True):
    """Memory to store for an event.

    `action` describes the capture in the reply, such as `stored_command`. `error` is the text of an error, or empty.
    `ttl` is the lifetime in milliseconds, or None.
    """

    type: str
    layer: Layer
    content: str
    action: str
    ttl: int | None = None
    error: str = ""
    metadata: Mapping[str, Any] = {}


def captures(event: Event) -> list[Capture]:
    """Return the memories to store for an event. A failed command has two: the command and the error.

    Raises:
        InvalidInput: The payload is empty, and the event is not the start or the end of a session.
    """
    payload = event.payload
    if event.type not in _WITHOUT_PAYLOAD and not _has_content(payload):
        hint = f"Name what happened, as in {orjson.dumps(_EXAMPLES[event.type]).decode()}."
        raise InvalidInput(f"The payload of {event.type} is empty", hint=hint)
    match event.type:
        case "file_opened":
            file = _first(payload, "file", "path", "filePath") or _whole(payload)
            return [Capture("scratchpad", 1, f"Opened {file}", "stored_scratchpad", _HOUR, metadata={"file": file})]
        case "command_executed":
            return _of_command(payload)
        case "error_occurred":
            return [_of_error(payload, "stored_bug_fix")]
        case "decision_made":
            return [
                Capture("decision", 2, _joined(payload, "decision", "title", "rationale", "reason"), "stored_decision")
            ]
        case "session_start":
            return [Capture("scratchpad", 1, f"Session {event.session_id} started", "initialized_session", 24 * _HOUR)]
        case "session_end":
            ended = f"Session {event.session_id} ended. {_first(payload, 'summary', 'reason')}".rstrip()
            return [Capture("scratchpad", 1, ended, "session_closed", _HOUR)]
        case "pattern_detected":
            return [_of_pattern(payload)]
        case "user_feedback":
            return [Capture("relationship", 3, _feedback(payload), "stored_feedback")]


def error_of(memory: Memory) -> str:
    """Return the error in the content of a memory, without the command, file and fix that `captures` added."""
    error = memory.content.removeprefix(f"{memory.metadata.get('command')}{_FAILED}")
    return error.partition(_PLACE)[0].partition(_FIX)[0]


def looks_failed(payload: Mapping[str, Any]) -> bool:
    """Return whether a command failed, by its exit code or, without one, by words such as `error` in its output."""
    code = payload.get("exitCode", payload.get("exit_code"))
    if isinstance(code, int):
        return code != 0
    rows = _first(payload, "output", "stderr", "stdout").splitlines()
    return any(_FAILURE.search(_NO_FAILURE.sub("", row)) for row in rows)


def _of_command(payload: Mapping[str, Any]) -> list[Capture]:
    command = _first(payload, "command") or _whole(payload)
    output = _first(payload, "output", "stderr", "stdout")
    text = f"Ran {command}\n{output[:_OUTPUT]}".rstrip()
    ran = Capture("scratchpad", 1, text, "stored_command", 2 * _HOUR)
    if not looks_failed(payload):
        return [ran]
    rows = [row.strip() for row in output.splitlines() if _FAILURE.search(_NO_FAILURE.sub("", row))]
    error = "\n".join(rows or [output.strip() or "no output"])[:_OUTPUT]
    content = f"{command}{_FAILED}{error}"
    return [ran, Capture("bug_fix", 2, content, "stored_error", error=error, metadata={"command": command})]


def _of_error(payload: Mapping[str, Any], action: str) -> Capture:
    """Return the memory of level 2 for a reported error. `action` is the name of what was done, for the reply."""
    error = (_first(payload, "error", "message") or _whole(payload))[:_ERROR]
    file, line = _first(payload, "file", "path"), payload.get("line")
    position = f"{_PLACE}{file}" + (f":{line}" if isinstance(line, int) else "") if file else ""
    fix = _first(payload, "fix", "solution", "resolution")
    content = f"{error}{position}" + (f"{_FIX}{fix}" if fix else "")
    context = {"fileContext": {"path": file, **({"lineStart": line} if isinstance(line, int) else {})}} if file else {}
    return Capture("bug_fix", 2, content, action, error=error, metadata=context | ({"fix": fix} if fix else {}))


def _of_pattern(payload: Mapping[str, Any]) -> Capture:
    content = _joined(payload, "pattern", "name", "description")
    code, language = _first(payload, "code"), _first(payload, "language")
    block = {"codeBlock": {"code": code, "language": language}} if code or language else {}
    return Capture("code_pattern", 3, content, "stored_pattern", metadata=block)


def _feedback(payload: Mapping[str, Any]) -> str:
    rating = payload.get("rating")
    head = f"Feedback (rating {rating:g}/5)" if isinstance(rating, int | float) else "Feedback"
    text = _first(payload, "feedback", "comment", "message", "text")
    return f"{head}: {text}" if text or "rating" in payload else f"{head}: {_whole(payload)}"


def _has_content(value: object) -> bool:
    """Return whether a value of a payload contains a number, a truth value, or a text that is not blank."""
    if isinstance(value, Mapping):
        return any(map(_has_content, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list):
        return any(map(_has_content, cast("list[object]", value)))
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _joined(payload: Mapping[str, Any], *names: str) -> str:
    """Return the texts of these fields as sentences, or the whole payload as JSON if all of them are missing."""
    texts = [text for name in (*names, "content") if (text := _first(payload, name))]
    return ". ".join(text.removesuffix(".") for text in dict.fromkeys(texts)) or _whole(payload)


def _first(payload: Mapping[str, Any], *names: str) -> str:
    values = (payload.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def _whole(payload: Mapping[str, Any]) -> str:
    """Return the whole payload as JSON, truncated to `_ERROR` characters."""
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS).decode()[:_ERROR]


_MEMORIES, _FIXES = 5, 3
"""Maximum numbers of similar memories, and of known fixes in a reply."""
_SIMILAR: Final = 0.7
"""Minimum similarity of a memory that has only the type of the error in common, and not its message."""
_CANDIDATES: Final = 50
"""Maximum number of memories whose signatures are compared with that of the error."""
_TEXT: Final = 60
"""Maximum tokens of an error or of a fix."""
_NAMED: Final = 20
"""Maximum tokens of an error message that is quoted within a sentence."""


class EarlierErrors(Struct, frozen=True):
    """Memories of similar errors, and known fixes from archived conversations, the most frequent fix first."""

    memories: tuple[StoredMemory, ...]
    fixes: tuple[KnownFix, ...]

    @property
    def total(self) -> int:
        """Number of similar errors: reports of the memories, plus sessions in which a fix occurred."""
        return sum(map(_reported, self.memories)) + sum(fix.sessions for fix in self.fixes)

    def summary(self, at: Milliseconds) -> str:
        """Return one or two sentences: the number of errors, the time since the latest, and the fix of one error."""
        if not self.total:
            return "Found no similar error."
        times = [stored.updated for stored in self.memories] + [fix.at for fix in self.fixes if fix.at is not None]
        latest = f", the latest {_largest_unit(at - max(times))} ago" if times else ""
        sentence = f"Found {self.total} similar error{'s'[: self.total != 1]}{latest}."
        remedies = [(fix.error, _remedy(fix)) for fix in self.fixes]
        remedies += [(stored.memory.content, _noted_fix(stored)) for stored in self.memories]
        # The error is named, because a similar error can have another cause.
        fixed = (f"“{brief(error, _NAMED)}” was fixed by {remedy}." for error, remedy in remedies if remedy)
        return " ".join([sentence, *islice(fixed, 1)])

    @property
    def memory_rows(self) -> Rows:
        """Rows for the field `similarErrors` of a reply."""
        return [
            {
                "id": uuid_of(stored),
                "content": brief(stored.memory.content, _TEXT),
                "times": _reported(stored),
                "lastSeen": show_day(stored.updated),
                "reason": "memory of an error",
            }
            for stored in self.memories
        ]

    @property
    def fix_rows(self) -> Rows:
        """Rows for the field `knownFixes` of a reply."""
        return [
            {
                "id": fix.id,
                "error": brief(fix.error, _TEXT),
                "command": brief(fix.command, _TEXT),
                "fix": _remedy(fix),
                "sessions": fix.sessions,
                "lastSeen": show_day(fix.at),
                "reason": "archived conversation",
            }
            for fix in self.fixes
        ]


def earlier_errors(fabric: FabricContext, error: str) -> EarlierErrors:
    """Return the earlier errors that resemble an error, in memories of all projects and in the archive.

    They have the same message apart from values, or the same error class or code. Errors of another library differ.
    """
    types = tuple(name for name, family in FAMILIES.items() if family is Family.ISSUE)
    query = redacted(error[:QUERY_MAX], fabric.config.home)
    this = ErrorSignature.of(query)
    candidates = fabric.core.similar(
        query, MemoryFilter(types=types), min_similarity=0, limit=_CANDIDATES, count_access=False
    )
    memories = [candidate.stored for candidate in candidates if _is_similar(this, candidate)]
    try:
        fixes = known_fixes(fabric.search, fabric.core.store, query)
    except InvalidInput:  # The error is too short to search for.
        fixes = []
    fixes = [fix for fix in fixes if _resembles(this, ErrorSignature.of(fix.error))]
    return EarlierErrors(tuple(memories[:_MEMORIES]), tuple(fixes[:_FIXES]))


def _is_similar(this: ErrorSignature, candidate: SimilarMemory) -> bool:
    """Return whether a memory describes an error like this one."""
    signature = ErrorSignature.of(error_of(candidate.stored.memory))
    return this.has_message_of(signature) or (candidate.similarity >= _SIMILAR and this.has_type_of(signature))


def _resembles(this: ErrorSignature, signature: ErrorSignature) -> bool:
    """Return whether the error of a known fix, whose words are similar, can have the same cause."""
    return not (this.types and signature.types) or this.has_type_of(signature) or this.has_message_of(signature)


def _largest_unit(milliseconds: int) -> str:
    """Return a duration in its largest unit, such as `2 days`."""
    return " ".join(show_duration(milliseconds).split()[:2])


def _reported(stored: StoredMemory) -> int:
    """Return how often an error was reported."""
    times = stored.memory.metadata.get("times", 1)
    return times if isinstance(times, int) else 1


def _remedy(fix: KnownFix) -> str:
    """Return a phrase that names the fix of an error, such as `npm ci` or `editing a.py`."""
    if fix.files:
        return clean(f"editing {', '.join(fix.files)}")
    return brief(fix.worked, _TEXT)


def _noted_fix(stored: StoredMemory) -> str:
    return brief(str(stored.memory.metadata.get("fix", "")), _TEXT)


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
    folder, captured = fabric.folder(event.project_path), captures(event)
    error = next((capture.error for capture in captured if capture.error), "")
    earlier = earlier_errors(fabric, error) if error else None
    results = [_stored(fabric, event, capture, folder, show_millisecond(happened)) for capture in captured]
    actions = [capture.action for capture in captured]
    if event.type == "session_start":
        actions.append("ghost_ready")
    has_earlier = earlier is not None and earlier.total > 0
    reply = EventReply(
        processed=True,
        memory_id=uuid_of(results[-1].stored),
        triggered_actions=[*actions, *(["searched_similar_errors"] if earlier else [])],
        message=_message(event, earlier, fabric),
        **stored_fields(results[-1]),
        similar_errors=earlier.memory_rows if earlier and has_earlier else None,
        known_fixes=earlier.fix_rows if earlier and has_earlier else None,
    )
    return fabric.reply(reply, quotes=has_earlier)


def _message(event: Event, earlier: EarlierErrors | None, fabric: FabricContext) -> str:
    recorded = _MESSAGES[event.type]
    return recorded if earlier is None else f"{recorded} {earlier.summary(fabric.clock())}"


def _stored(fabric: FabricContext, event: Event, capture: Capture, folder: Path, happened: str) -> RememberResult:
    """Store the memory of an event. A repeated error is stored once, with the number of its reports."""
    memory = Memory(
        capture.content,
        capture.type,
        namespace=fabric.target(capture.layer, folder),
        project=event.project_path or "",
        tags=(_TAG, event.type),
        metadata={**capture.metadata, "event": event.type, "cliType": event.cli_type, "eventTime": happened},
        source="system_auto",
        origin=Origin.TOOL if event.type in _FROM_TOOLS else Origin.ASSISTANT,
        session_id=event.session_id,
        valid_until=None if capture.ttl is None else fabric.clock() + capture.ttl,
    )
    remembered = fabric.core.remember(memory, replaces="")
    if capture.layer == 1:
        fabric.evict(remembered.stored)
    elif remembered.duplicate and capture.error:
        times = remembered.stored.memory.metadata.get("times", 1)
        repeated = {"times": times + 1 if isinstance(times, int) else 2, "eventTime": happened}
        fabric.core.revise(remembered.stored.id, MemoryRevision(metadata=repeated))
    return remembered
