"""Conversion of a client's events, such as a failed command, into memories."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from ...core.errors import InvalidInput
from ...core.memory import Memory
from .fabric_parameters import Event
from .layer_router import Layer

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
    given = event.payload
    if event.type not in _WITHOUT_PAYLOAD and not _has_content(given):
        hint = f"Name what happened, as in {orjson.dumps(_EXAMPLES[event.type]).decode()}."
        raise InvalidInput(f"The payload of {event.type} is empty", hint=hint)
    match event.type:
        case "file_opened":
            file = _first(given, "file", "path", "filePath") or _whole(given)
            return [Capture("scratchpad", 1, f"Opened {file}", "stored_scratchpad", _HOUR, metadata={"file": file})]
        case "command_executed":
            return _of_command(given)
        case "error_occurred":
            return [_of_error(given, "stored_bug_fix")]
        case "decision_made":
            return [
                Capture("decision", 2, _joined(given, "decision", "title", "rationale", "reason"), "stored_decision")
            ]
        case "session_start":
            return [Capture("scratchpad", 1, f"Session {event.session_id} started", "initialized_session", 24 * _HOUR)]
        case "session_end":
            ended = f"Session {event.session_id} ended. {_first(given, 'summary', 'reason')}".rstrip()
            return [Capture("scratchpad", 1, ended, "session_closed", _HOUR)]
        case "pattern_detected":
            return [_of_pattern(given)]
        case "user_feedback":
            return [Capture("relationship", 3, _feedback(given), "stored_feedback")]


def error_of(memory: Memory) -> str:
    """Return the error in the content of a memory, without the command, file and fix that `captures` added."""
    error = memory.content.removeprefix(f"{memory.metadata.get('command')}{_FAILED}")
    return error.partition(_PLACE)[0].partition(_FIX)[0]


def looks_failed(given: Mapping[str, Any]) -> bool:
    """Return whether a command failed, by its exit code or, without one, by words such as `error` in its output."""
    code = given.get("exitCode", given.get("exit_code"))
    if isinstance(code, int):
        return code != 0
    rows = _first(given, "output", "stderr", "stdout").splitlines()
    return any(_FAILURE.search(_NO_FAILURE.sub("", row)) for row in rows)


def _of_command(given: Mapping[str, Any]) -> list[Capture]:
    command = _first(given, "command") or _whole(given)
    output = _first(given, "output", "stderr", "stdout")
    text = f"Ran {command}\n{output[:_OUTPUT]}".rstrip()
    ran = Capture("scratchpad", 1, text, "stored_command", 2 * _HOUR)
    if not looks_failed(given):
        return [ran]
    rows = [row.strip() for row in output.splitlines() if _FAILURE.search(_NO_FAILURE.sub("", row))]
    error = "\n".join(rows or [output.strip() or "no output"])[:_OUTPUT]
    content = f"{command}{_FAILED}{error}"
    return [ran, Capture("bug_fix", 2, content, "stored_error", error=error, metadata={"command": command})]


def _of_error(given: Mapping[str, Any], action: str) -> Capture:
    error = (_first(given, "error", "message") or _whole(given))[:_ERROR]
    file, line = _first(given, "file", "path"), given.get("line")
    place = f"{_PLACE}{file}" + (f":{line}" if isinstance(line, int) else "") if file else ""
    fix = _first(given, "fix", "solution", "resolution")
    content = f"{error}{place}" + (f"{_FIX}{fix}" if fix else "")
    context = {"fileContext": {"path": file, **({"lineStart": line} if isinstance(line, int) else {})}} if file else {}
    return Capture("bug_fix", 2, content, action, error=error, metadata=context | ({"fix": fix} if fix else {}))


def _of_pattern(given: Mapping[str, Any]) -> Capture:
    content = _joined(given, "pattern", "name", "description")
    code, language = _first(given, "code"), _first(given, "language")
    block = {"codeBlock": {"code": code, "language": language}} if code or language else {}
    return Capture("code_pattern", 3, content, "stored_pattern", metadata=block)


def _feedback(given: Mapping[str, Any]) -> str:
    rating = given.get("rating")
    head = f"Feedback (rating {rating:g}/5)" if isinstance(rating, int | float) else "Feedback"
    text = _first(given, "feedback", "comment", "message", "text")
    return f"{head}: {text}" if text or "rating" in given else f"{head}: {_whole(given)}"


def _has_content(value: object) -> bool:
    """Return whether a value of a payload contains a number, a truth value, or a text that is not blank."""
    if isinstance(value, Mapping):
        return any(map(_has_content, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list):
        return any(map(_has_content, cast("list[object]", value)))
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _joined(given: Mapping[str, Any], *names: str) -> str:
    """Return the texts of these fields as sentences, or the whole payload as JSON if all of them are missing."""
    texts = [text for name in (*names, "content") if (text := _first(given, name))]
    return ". ".join(text.removesuffix(".") for text in dict.fromkeys(texts)) or _whole(given)


def _first(given: Mapping[str, Any], *names: str) -> str:
    values = (given.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def _whole(given: Mapping[str, Any]) -> str:
    """Return the whole payload as JSON, truncated to `_ERROR` characters."""
    return orjson.dumps(given, option=orjson.OPT_SORT_KEYS).decode()[:_ERROR]
