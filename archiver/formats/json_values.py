"""Helpers of transcript readers: typed JSON fields, tool calls as text, repeated records, and rewinds.

- A JSON field of an unexpected type becomes an empty value.
- If an agent records content twice, the reader keeps one of the two records.
- Tool calls and results are converted to readable text, with the files that the tools read or wrote.
- In a rewind, the user goes back in the conversation and continues from there, which abandons a range of lines. The
  value of a `Fact.REWOUND` note is the number of the first abandoned line. In a partial read, which begins in the
  middle of the file, that line may not have been read. The value is then empty.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import orjson
from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Note, Skipped, Speaker, Turn, parse_instant
from ..lines import Record, clean, clip, one_line
from .transcript_format import Event, RecordEvents, RecordStamp, SkipReason

_DRIVE = re.compile(r"/[A-Za-z]:")
_FILE_MAX = 4 << 20
_COUNT_MAX = 10**12
"""Maximum count that is accepted. The sum of a million such counts fits into a database column."""


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def json_file(path: Path) -> Record:
    """Return the object in a small JSON file. The result is empty if the file is missing, damaged or too large."""
    try:
        with path.open("rb") as file:
            return mapping(orjson.loads(file.read(_FILE_MAX)))
    except (OSError, orjson.JSONDecodeError):
        return {}


def modified(path: Path) -> Milliseconds | None:
    """Return the time of a file's last change, or None if the file does not exist."""
    return instant(path.stat().st_mtime_ns // 1_000_000) if path.is_file() else None


def listing(value: object) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def mappings(value: object) -> list[Record]:
    """Return the elements of a list as objects. Elements of other types become empty objects."""
    return [mapping(each) for each in listing(value)]


def content_blocks(content: object) -> list[Record]:
    """Return the blocks of a message. Plain text becomes one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)


def string(value: object) -> str:
    """Return the value if it is text, otherwise empty text."""
    return value if isinstance(value, str) else ""


def first_string(record: Record, *names: str) -> str:
    """Return the first non-empty text in these fields of a record, or an empty text."""
    return next((value for name in names if (value := string(record.get(name)))), "")


def count_of(value: object) -> int:
    """Return the value if it is an integer from 0 to 10^12, otherwise 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _COUNT_MAX else 0


def total(record: Record, *names: str) -> int:
    """Return the sum of the counts in these fields of a record."""
    return sum(count_of(record.get(name)) for name in names)


def instant(value: object) -> Milliseconds | None:
    """Return a time in milliseconds since 1970.

    The value is RFC 3339 text, or a number of seconds, milliseconds or microseconds since 1970.
    """
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e17:
        return None
    return round(value / 1000 if value > 1e14 else value if value > 1e11 else value * 1000)


def path_of_uri(location: str) -> str:
    """Return the path in a URI such as `file:///home/demo/my%20shop`. Return any other text unchanged."""
    address = location.partition("://")[2]
    path = unquote(f"/{address.partition('/')[2]}") if address else location
    return path[1:] if _DRIVE.match(path) else path


def local_instant(value: object) -> Milliseconds | None:
    """Return a time in milliseconds since 1970. Text without a time zone is in the zone of the system."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).astimezone().isoformat()
        except (ValueError, OverflowError, OSError):
            return None
    return instant(value)


def joined_text(content: object, text_of: Callable[[Record], str]) -> str:
    """Return the text of a message's content: a string, one block or a list of blocks.

    `text_of` returns the text of one block. The texts of a list are joined by line breaks.
    """
    if isinstance(content, str):
        return content
    blocks = listing(content) or [content]
    return "\n".join(filter(None, (block if isinstance(block, str) else text_of(mapping(block)) for block in blocks)))


def media_label(kind: str, data: object) -> str:
    """Return a label with type and size that replaces a base64-encoded picture or file."""
    return f"[{kind}, {len(string(data)) * 3 // 4096} KB]"


class Repetitions(Struct):
    """Turns of the current exchange that may be repeated by a more detailed record.

    All records of one event have the same key. A turn is delayed until the exchange ends. It is skipped if a more
    detailed record of the same event precedes or follows it.
    """

    released: list[Event]
    """List to which delayed turns, or `Skipped` events in their place, are appended."""
    _delayed: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    _registered: set[str] = field(default_factory=set[str])

    def delay(self, key: str, turns: Sequence[Turn], *, only_record: bool) -> RecordEvents:
        """Delay the turns of a record, or return a reason for skipping the record.

        The turns are returned at once if the line has other records (`only_record` is False).
        """
        if not turns:
            return SkipReason.EMPTY
        if not only_record:
            return turns
        if key in self._registered:
            return SkipReason.REPEATED
        self._delayed.setdefault(key, []).extend(turns)
        return []

    def register(self, key: str) -> None:
        """Record that an event has a more detailed record, and skip the delayed turns of this event."""
        self._registered.add(key)
        self.released += [Skipped(turn.line, SkipReason.REPEATED) for turn in self._delayed.pop(key, [])]

    def settle(self) -> None:
        """End the exchange, and release the delayed turns that have no more detailed record."""
        self.released += sorted(chain.from_iterable(self._delayed.values()), key=lambda turn: turn.line)
        self._delayed.clear()
        self._registered.clear()


class RecordedTwice(Struct):
    """Values of the current exchange, for agents that record a value in two records of different types.

    Such values are prompts and token counts. A value is a repetition if `take` finds the same value from the other type
    of record.
    """

    _seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def take(self, value: str, *, record_type: str) -> bool:
        """Remove one value that was added from a record of this type. Return False if there is no such value."""
        copy = (record_type, " ".join(value.split()))
        if not self._seen[copy]:
            return False
        self._seen[copy] -= 1
        return True

    def add(self, value: str, *, record_type: str) -> None:
        """Add a value from a record of this type."""
        self._seen[record_type, " ".join(value.split())] += 1

    def clear(self) -> None:
        """Forget all values at the end of an exchange."""
        self._seen.clear()


class PromptLines(Struct):
    """Line numbers of the prompts, for agents that record how many prompts the user undid."""

    _lines: list[int] = field(default_factory=list[int])

    def add(self, line: int) -> None:
        """Add the line number of a prompt."""
        self._lines.append(line)

    def take_back(self, line: int, count: int, *, partial: bool) -> list[Note]:
        """Return a rewind note for the last `count` prompts.

        If fewer prompts are known, return an empty list or, in a partial read, a note with an empty value.
        """
        if not 0 < count <= len(self._lines):
            return [Note(line, Fact.REWOUND, "")] if partial and count else []
        first = self._lines[-count]
        del self._lines[-count:]
        return [Note(line, Fact.REWOUND, str(first))]


class PromptParents(Struct):
    """Parent records of prompts. If two prompts have the same parent, a rewind abandoned the earlier prompt.

    Several children of another kind are no rewind: parallel tool calls, hooks and progress also share a parent.
    """

    _begun: bool = False
    """True after the first prompt. In a partial read, the parent of the first prompt may precede the lines read."""
    _prompts: dict[str, int] = field(default_factory=dict[str, int])
    _records: set[str] = field(default_factory=set[str])

    def add_record(self, record: str) -> None:
        """Add the ID of a record. Only partial reads need the IDs."""
        self._records.add(record)

    def add_prompt(self, parent: str, line: int, *, partial: bool) -> list[Note]:
        """Return a rewind note if the prompt replaces an earlier prompt."""
        begun, self._begun = self._begun, True
        if not parent:
            return []
        earlier = self._prompts.get(parent)
        if earlier is not None:
            return [Note(line, Fact.REWOUND, str(earlier))]
        self._prompts[parent] = line
        return [Note(line, Fact.REWOUND, "")] if partial and begun and parent not in self._records else []


class EntryTree(Struct):
    """Tree of a session's entries, for agents that record the ID of each entry's parent.

    The active branch is the branch with the last entry that has events.
    """

    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _lines: dict[str, int] = field(default_factory=dict[str, int])
    _previous: str = ""
    _last: str = ""

    def add(self, entry: str, parent: str, *, partial: bool) -> None:
        """Add an entry. An entry with an unknown parent becomes a child of the previous entry."""
        if entry:
            lost = parent and parent not in self._parents and not partial
            self._parents[entry] = self._previous if lost else parent
            self._previous = entry

    def mark_events(self, entry: str, line: int) -> None:
        """Mark an entry as having events."""
        if entry:
            self._lines[entry] = line
            self._last = entry

    def abandoned(self, *, partial: bool) -> list[Note]:
        """Return a note for each abandoned range of lines."""
        branch = self._active_branch()
        if partial and branch and branch[-1] != next(iter(self._parents)):
            return [Note(self._lines[self._last], Fact.REWOUND, "")]
        notes: list[Note] = []
        active, first = set(branch), 0
        for entry, line in self._lines.items():
            if entry not in active:
                first = first or line
            elif first:
                notes.append(Note(line, Fact.REWOUND, str(first)))
                first = 0
        return notes

    def _active_branch(self) -> list[str]:
        """Return the IDs of the last entry with events and of its known ancestors, from the last entry upwards."""
        branch = dict[str, None]()
        entry = self._last
        while entry in self._parents and entry not in branch:
            branch[entry] = None
            entry = self._parents[entry]
        return list(branch)


INPUT_LIMIT = 2000
"""Maximum characters of a shortened input."""
NOTE_LIMIT = 12_000
"""Maximum characters of a shortened call that writes notes for later sessions, such as a file of instructions."""
RESULT_LIMIT = 1500
"""Maximum characters of a shortened result."""

_NOTE = re.compile(
    r"\b(?:memory|memories)/[\w.-]+\.md\b|\b(?:MEMORY|CLAUDE|AGENTS|GEMINI|copilot-instructions)\b[\w.]*\.md\b"
)
_TOOL_LENGTH = 100
_READERS = {"read", "view", "view_image", "read_file", "readfile", "view_file", "copilot_readfile", "fs_read"}
_WRITERS = {
    *("write", "edit", "create", "create_file", "edit_file", "write_file", "str_replace", "insert", "multi_edit"),
    *("replace", "writefile", "strreplacefile", "write_to_file", "replace_file_content", "multiedit", "fs_write"),
    *("editor", "editedexistingfile", "newfilecreated", "filedeleted", "applieddiff", "insertcontent"),
    *("searchandreplace", "create_new_file", "edit_existing_file", "single_find_and_replace", "search_replace"),
    *("save", "append", "patch"),
}
_EDITORS = {
    *("str_replace_editor", "developer__text_editor", "text_editor", "str_replace_based_edit_tool", "file_editor"),
}
_PATHS = ("path", "file_path", "filePath", "filepath", "absolute_path", "target_file")
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
    limit = NOTE_LIMIT if _NOTE.search(body, 0, 400) else INPUT_LIMIT
    return clip(f"{tool}: {body}" if body else tool, limit if shorten else None)


def command_line(command: object) -> str:
    """Return a command as text. For `["bash", "-lc", "ls"]`, return only `ls`."""
    parts = [string(part) for part in listing(command)]
    if len(parts) == 3 and parts[0] in _SHELLS and parts[1].startswith("-"):
        return parts[2]
    return " ".join(parts) if parts else string(command)


def named_values(arguments: Mapping[str, Any]) -> str:
    """Return arguments as `name=value` pairs, separated by commas."""
    return ", ".join(
        f"{key}={value if isinstance(value, str) else json_text(value)}" for key, value in arguments.items()
    )


def json_text(value: object) -> str:
    """Return a JSON value as text, or an ellipsis if it is nested too deeply."""
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
    if tool == "read_files":
        listed = (clean(string(each.get("path"))) for each in mappings(arguments.get("files")))
        return tuple(dict.fromkeys(filter(None, listed))), ()
    # Some editors perform every file operation; their argument `command` selects the operation.
    operation = string(arguments.get("command")) if tool in _EDITORS else tool.lower().removeprefix("developer__")
    return (path,) if path and operation in _READERS else (), (path,) if path and operation in _WRITERS else ()
