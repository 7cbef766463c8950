"""Parser for the output of coding agents that run without their user interface.

It finds the answer, the used tokens, and an error. Formats: `claude -p --output-format json` (2.1.197), events of
`codex exec --json` (0.169.0), and `gemini --output-format json` (0.61.0). Any other output is the answer itself.
"""

from collections.abc import Iterator, Mapping
from json import JSONDecoder
from typing import Any, Final, cast

from msgspec import Struct

from ...core.spending import Usage

_VALUES_MAX: Final = 10_000
"""Maximum number of JSON values that are read from an output."""

_Fields = Mapping[str, Any]


class AgentOutput(Struct):
    """Answer of an agent. `usage` is None if the agent did not state it. `error` is empty if there was none."""

    text: str
    usage: Usage | None = None
    error: str = ""


def read_output(output: str) -> AgentOutput:
    """Return the answer in the output of an agent. Text before and between JSON values is ignored."""
    found: AgentOutput | None = None
    for value in _objects(output):
        found = _read(value, found)
    return found or AgentOutput(output)


def _read(value: _Fields, before: AgentOutput | None) -> AgentOutput | None:
    """Return the answer, updated with one more JSON object of the output."""
    kind = value.get("type")
    if kind == "result" and "is_error" in value:
        text = _text(value.get("result"))
        error = (text or _text(value.get("subtype")) or "error") if value["is_error"] else ""
        return AgentOutput(text, _claude_usage(_fields(value.get("usage"))), error)
    if isinstance(kind, str) and kind in {"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}:
        return _codex_turn(kind, value, before or AgentOutput(""))
    if kind == "item.completed":
        item = _fields(value.get("item"))
        if item.get("type") == "agent_message":
            return AgentOutput(_text(item.get("text")), before.usage if before else None)
        return before
    if "response" in value and ("stats" in value or "session_id" in value):
        return AgentOutput(_text(value["response"]), _gemini_usage(_fields(value.get("stats"))))
    if isinstance(value.get("error"), dict) and ("session_id" in value or "stats" in value or len(value) == 1):
        return AgentOutput("", None, _text(_fields(value["error"]).get("message")) or "error")
    return before


def _codex_turn(kind: str, value: _Fields, found: AgentOutput) -> AgentOutput:
    if kind == "turn.completed":
        used = _fields(value.get("usage"))
        cached = _number(used, "cached_input_tokens")
        # A reconnection is reported as an error, but the turn continues.
        usage = Usage(_number(used, "input_tokens") - cached, 0, cached, _number(used, "output_tokens"))
        return AgentOutput(found.text, usage)
    if kind in {"turn.failed", "error"}:
        inner = _fields(value.get("error")) or value
        return AgentOutput(found.text, found.usage, _text(inner.get("message")) or "error")
    return found


def _claude_usage(used: _Fields) -> Usage:
    return Usage(
        _number(used, "input_tokens"),
        _number(used, "cache_creation_input_tokens"),
        _number(used, "cache_read_input_tokens"),
        _number(used, "output_tokens"),
    )


def _gemini_usage(stats: _Fields) -> Usage:
    read = cached = written = 0
    for model in _fields(stats.get("models")).values():
        tokens = _fields(_fields(model).get("tokens"))
        cached += _number(tokens, "cached")
        read += _number(tokens, "prompt") - _number(tokens, "cached")
        written += _number(tokens, "candidates") + _number(tokens, "thoughts")
    return Usage(read, 0, cached, written)


def _objects(output: str) -> Iterator[_Fields]:
    """Yield each JSON object at the start of a line, and each object of a JSON list at the start of a line."""
    decoder, start = JSONDecoder(), 0
    for _ in range(_VALUES_MAX):
        while start < len(output) and output[start] not in "{[":
            line = output.find("\n", start)
            start = len(output) if line < 0 else line + 1
        if start >= len(output):
            return
        try:
            value, start = decoder.raw_decode(output, start)
        except (ValueError, RecursionError):  # not JSON, or too many digits or levels
            start += 1
            continue
        for each in cast("list[object]", value) if isinstance(value, list) else [cast("object", value)]:
            if isinstance(each, dict):
                yield cast("_Fields", each)


def _fields(value: object) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(fields: _Fields, name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0
