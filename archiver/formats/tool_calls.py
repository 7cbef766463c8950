"""Conversion of tool calls and results to readable text, with the files that the tools read or wrote."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct, field

from ...core.conversation import Kind, Speaker, Turn
from ..files.clipping import clean, clip, one_line
from .json_values import listing, mapping, string
from .record_events import RecordStamp

INPUT_LIMIT = 2000
"""Maximum characters of a shortened input."""
RESULT_LIMIT = 1500
"""Maximum characters of a shortened result."""

_TOOL_LENGTH = 100
_READERS = {"read", "view", "view_image", "read_file", "readfile", "view_file"}
_WRITERS = {
    *("write", "edit", "create", "create_file", "edit_file", "write_file", "str_replace", "insert", "multi_edit"),
    *("replace", "writefile", "strreplacefile", "write_to_file", "replace_file_content"),
}
_PATHS = ("path", "file_path", "filePath", "absolute_path")
_COMMANDS = ("cmd", "command", "commands")
_PATCHES = ("patch", "input")
_SHELLS = {"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"}
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


class ToolCall(Struct, frozen=True):
    """Tool call, with the files that the tool reads or writes if it succeeds."""

    tool: str
    text: str
    """Name of the tool and its input, in the form `tool: body`."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


UNKNOWN_CALL = ToolCall("", "")
"""Tool call without a name or text, for a result whose call is unknown."""


class ToolCalls(Struct):
    """Calls of the current exchange that have no result yet, by call ID."""

    shorten: bool
    """True if long inputs and results are shortened to their beginning and end."""
    waiting: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])

    def call(self, stamp: RecordStamp, call_id: str, tool: str, arguments: object, *, group: str = "") -> Turn:
        """Return the turn of a call, and store the call until its result is read."""
        call = self.waiting[call_id] = describe_call(tool, arguments, shorten=self.shorten)
        return stamp.turn(Speaker.ASSISTANT, Kind.CALL, call.text, tool=call.tool, call=call_id, group=group)

    def result(self, stamp: RecordStamp, call_id: str, text: str, *, failed: bool, tool: str = "") -> Turn:
        """Return the turn of a result. `tool` is the tool name to use if the call is unknown."""
        call = self.waiting.pop(call_id, None) or ToolCall(tool_name(tool), "")
        return self.result_of(call, stamp, call_id, text, failed=failed)

    def result_of(self, call: ToolCall, stamp: RecordStamp, call_id: str, text: str, *, failed: bool) -> Turn:
        """Return the turn with the result of a call. A failed call affects no files.

        With `shorten`, the text of a successful file operation contains only the paths.
        """
        reads, writes = ((), ()) if failed else (call.reads, call.writes)
        if self.shorten and (reads or writes):
            text = ", ".join((*reads, *writes))
        else:
            text = clip(clean(text), RESULT_LIMIT if self.shorten else None)
        return stamp.turn(
            Speaker.TOOL, Kind.RESULT, text, tool=call.tool, call=call_id, failed=failed, reads=reads, writes=writes
        )

    def clear(self) -> None:
        """Remove all calls at the end of an exchange."""
        self.waiting.clear()


def describe_call(tool: str, given: object, *, shorten: bool) -> ToolCall:
    """Return a tool call with its readable text and the affected files.

    `given` contains the arguments: an object, JSON text, or free text such as a patch or a script.
    """
    tool = tool_name(tool)
    arguments = _arguments(given)
    body = clean(_body(arguments) if arguments else string(given))
    reads, writes = _files(tool, arguments, body)
    return ToolCall(tool, call_text(tool, body, shorten=shorten), reads, writes)


def tool_name(name: str) -> str:
    """Return a tool's name as one short line, because the recorded name can be any text."""
    return one_line(clean(name), _TOOL_LENGTH)


def call_text(tool: str, body: str, *, shorten: bool) -> str:
    """Return a call as `tool: body`, for example `bash: ls -l`. With `shorten`, a long call is clipped."""
    return clip(f"{tool}: {body}" if body else tool, INPUT_LIMIT if shorten else None)


def command_line(command: object) -> str:
    """Return a command as text. For `["bash", "-lc", "ls"]`, return only `ls`."""
    parts = [string(part) for part in listing(command)]
    if len(parts) == 3 and parts[0] in _SHELLS and parts[1].startswith("-"):
        return parts[2]
    return " ".join(parts) if parts else string(command)


def named_values(arguments: Mapping[str, Any]) -> str:
    """Return arguments as `name=value` pairs, separated by commas."""
    return ", ".join(f"{key}={value if isinstance(value, str) else _json(value)}" for key, value in arguments.items())


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # orjson rejects deep nesting and large integers.
        return "…"


def _arguments(given: object) -> Mapping[str, Any]:
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            return mapping(orjson.loads(given))
        except orjson.JSONDecodeError:
            return {}
    return mapping(given)


def _body(arguments: Mapping[str, Any]) -> str:
    command = next((command_line(arguments[name]) for name in _COMMANDS if arguments.get(name)), "")
    if command and not any(arguments.get(name) for name in _PATHS):
        purpose = one_line(string(arguments.get("description")))
        return f"{command}  # {purpose}" if purpose else command
    patch = next((string(arguments.get(name)) for name in _PATCHES if _PATCH in string(arguments.get(name))), "")
    return patch or _plan(arguments) or named_values(arguments)


def _plan(arguments: Mapping[str, Any]) -> str:
    steps = [mapping(step) for step in listing(arguments.get("plan"))]
    lines = [f"[{string(step.get('status'))}] {string(step.get('step'))}" for step in steps]
    return "\n".join(filter(None, [string(arguments.get("explanation")), *lines])) if lines else ""


def _files(tool: str, arguments: Mapping[str, Any], body: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if _PATCH in body:
        return (), tuple(dict.fromkeys(map(clean, _PATCHED.findall(body))))
    path = clean(next((string(arguments[name]) for name in _PATHS if arguments.get(name)), ""))
    # `str_replace_editor` performs every file operation; its `command` argument selects the operation.
    operation = string(arguments.get("command")) if tool == "str_replace_editor" else tool.lower()
    return (path,) if path and operation in _READERS else (), (path,) if path and operation in _WRITERS else ()
