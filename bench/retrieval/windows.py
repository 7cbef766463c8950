"""Readable text of a Claude Code transcript, split into windows.

This reader shares no code with the product, so that the baseline stays the same when the product changes. It reads
prompts, the assistant's prose, one line for each tool call, and the output of failed calls. It skips thinking, other
tool output, injected lines (`isMeta`), compaction summaries, progress and snapshots.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = "str | float | bool | list[Json] | dict[str, Json] | None"

SIZE = 1500
"""Maximum number of characters of a window. A window can contain several pieces of text. Longer pieces are split."""

_CALL = 300
_ERROR = 1500


def windows(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield windows of at most `SIZE` characters without overlap. Each prompt starts a new window."""
    held, length = list[str](), 0
    for piece, begins in _pieces(lines):
        for start in range(0, len(piece), SIZE):
            part = piece[start : start + SIZE]
            if held and (begins or length + len(part) > SIZE):
                yield "\n".join(held)
                held, length = [], 0
            held.append(part)
            length += len(part) + 1
    if held:
        yield "\n".join(held)


def _pieces(lines: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Yield (piece, starts_exchange) pairs of the readable text."""
    for line in lines:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if record.get("type") in {"user", "assistant"} and not (record.get("isMeta") or record.get("isCompactSummary")):
            content = record["message"]["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if text := _readable(block):
                    yield text, record["type"] == "user" and block["type"] == "text"


def _readable(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text.strip()
        case {"type": "tool_use", "name": str(name), "input": given}:
            return f"{name}: {' '.join(_strings(given))}"[:_CALL].replace("\n", " ")
        case {"type": "tool_result", "is_error": True, "content": str(output)}:
            return output.strip()[:_ERROR]
        case _:
            return ""


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
