"""Actions: tool calls as readable text with the files they touch, for agents whose tools speak for themselves."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from ..files.clipping import clean, clip, one_line
from .json_values import listing, mapping, string

INPUT_LIMIT = 2000
RESULT_LIMIT = 1500
"""Characters kept of an input or a result when texts are shortened."""

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


class Action(Struct, frozen=True):
    """A call: its tool, what it was asked to do as `tool: body`, and the files it touches if it succeeds."""

    tool: str
    text: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


UNKNOWN = Action("", "")
"""The call of a result that belongs to none."""


def action(tool: str, given: object, *, shorten: bool) -> Action:
    """What a call does. Arguments are an object, JSON text, or free text such as a patch or a script."""
    tool = one_line(clean(tool), 100)
    arguments = _arguments(given)
    body = clean(_body(arguments) if arguments else string(given))
    reads, writes = _files(tool, arguments, body)
    text = clip(f"{tool}: {body}" if body else tool, INPUT_LIMIT if shorten else None)
    return Action(tool, text, reads, writes)


def said(text: str, made: Action, *, failed: bool, shorten: bool) -> str:
    """What a result says: nothing but the paths where a file was read or written, unless that failed."""
    if shorten and not failed and (made.reads or made.writes):
        return ", ".join((*made.reads, *made.writes))
    return clip(clean(text), RESULT_LIMIT if shorten else None)


def patched(patch: str) -> tuple[str, ...]:
    """The files that a patch changes, in its order."""
    return tuple(dict.fromkeys(map(clean, _PATCHED.findall(patch))))


def command_line(command: object) -> str:
    """A command as it would be typed; the shell around it is left out."""
    parts = [string(part) for part in listing(command)]
    if len(parts) == 3 and parts[0] in _SHELLS and parts[1].startswith("-"):
        return parts[2]
    return " ".join(parts) if parts else string(command)


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
    return patch or _plan(arguments) or _pairs(arguments)


def _plan(arguments: Mapping[str, Any]) -> str:
    steps = [mapping(step) for step in listing(arguments.get("plan"))]
    lines = [f"[{string(step.get('status'))}] {string(step.get('step'))}" for step in steps]
    return "\n".join(filter(None, [string(arguments.get("explanation")), *lines])) if lines else ""


def _pairs(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value if isinstance(value, str) else _json(value)}" for key, value in arguments.items())


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested more deeply, or a larger number, than orjson writes
        return "…"


def _files(tool: str, arguments: Mapping[str, Any], body: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if _PATCH in body:
        return (), patched(body)
    path = clean(next((string(arguments[name]) for name in _PATHS if arguments.get(name)), ""))
    # One tool may do everything to a file; what it does is then its command.
    doing = string(arguments.get("command")) if tool == "str_replace_editor" else tool.lower()
    return (path,) if path and doing in _READERS else (), (path,) if path and doing in _WRITERS else ()
