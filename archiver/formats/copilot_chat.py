"""Support for GitHub Copilot Chat in Visual Studio Code.

The editor stores each chat in a file in `chatSessions`: a JSON document or, since 2026, a log of changes to that
document. `Chat: Export Chat` writes the document to a file that the user names.

- Supported: prompts with attachments, replies, thinking, tool calls with arguments and results, edited files, errors,
  titles, models, token usage, project folders.
- Not supported: times of replies (only prompts have a time), words of sub-agents, contents of edits, votes.
- Tested with: a published export of 2025, and fixtures of other readers of the log.
- Test data: `examples/copilot-chat.jsonl`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import orjson

from ...core.conversation import Fact, Kind, Note, Speaker, Turn
from ...core.errors import SourceUnreadable
from ..lines import Line, Record, clean
from .cline import editor_folders
from .container_formats import ContainedFormat, json_of
from .containers import file_fingerprint, file_name, head, message_line
from .cursor import workspace_folder
from .json_values import first_string, instant, joined_text, listing, mapping, mappings, string, total
from .record_reader import RecordReader
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    record_id,
    unknown_type,
    usage,
)

_EDITS = {"textEditGroup", "notebookEditGroup"}
_SILENT = {
    *("codeblockUri", "undoStop", "prepareToolInvocation", "mcpServersStarting", "progressTaskSerialized", "command"),
    *("progressMessage", "elicitationSerialized", "elicitation", "confirmation", "extensions", "pullRequest", "hook"),
    *("clearToPreviousToolInvocation", "multiDiffData", "treeData", "questionCarousel", "disabledClaudeHooks"),
}
"""Parts of a reply without words of the model."""


class CopilotChatReader(RecordReader):
    """Reader of one chat. A record contains one request with its reply."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header_facts(record, line, {Fact.CWD: ("folder",), Fact.TITLE: ("customTitle",)})
        request = mapping(record.get("message"))
        if "message" not in request and "response" not in request:
            return unknown_type("record")
        stamp = RecordStamp(line.number, instant(request.get("timestamp")), record_id("", line.data))
        text = clean(_text(request.get("message")))
        names = [string(each.get("name")) for each in mappings(mapping(request.get("variableData")).get("variables"))]
        asked = "\n".join([text, *(f"[{clean(name)}]" for name in names if name and name not in text)]).strip()
        prompt = self._prompt(asked, stamp) if asked else []
        result = mapping(request.get("result"))
        metadata = mapping(result.get("metadata"))
        error = string(mapping(result.get("errorDetails")).get("message"))
        turns = [
            *self._reply(listing(request.get("response")), metadata, stamp),
            *self._injected(error, stamp, failed=True),
        ]
        return [*prompt, *turns, *self._about(request, metadata, stamp)] or SkipReason.EMPTY

    def _about(self, request: Record, metadata: Record, stamp: RecordStamp) -> list[Note]:
        used = usage(string(request.get("requestId")) or stamp.record, total(metadata, "promptTokens"),
                     total(metadata, "outputTokens"))  # fmt: skip
        model = first_string(metadata, "resolvedModel") or string(request.get("modelId"))
        return self._facts.notes(stamp.line, {Fact.MODEL: model, Fact.USAGE: used})

    def _reply(self, parts: list[Any], metadata: Record, stamp: RecordStamp) -> Iterator[Turn]:
        """Yield the turns of a reply. Consecutive parts with text are one turn."""
        calls = {string(call.get("id")): call for each in mappings(metadata.get("toolCallRounds"))
                 for call in mappings(each.get("toolCalls"))}  # fmt: skip
        results = mapping(metadata.get("toolCallResults"))
        said: list[str] = []
        for part in mappings(parts):
            kind = string(part.get("kind"))
            if kind in {"toolInvocationSerialized", "thinking", *_EDITS}:
                yield from stamp.reply(Kind.PROSE, "".join(said))
                said.clear()
            if kind == "toolInvocationSerialized":
                yield from self._tool(part, calls, results, stamp)
            elif kind == "thinking":
                value = part.get("value")
                yield from stamp.reply(Kind.THINKING, value if isinstance(value, str) else "\n".join(_strings(value)))
            elif kind in _EDITS:
                path = _path(part.get("uri"))
                if path:
                    yield stamp.turn(Speaker.TOOL, Kind.RESULT, path, tool="edit", writes=(path,))
            elif kind not in _SILENT:
                said.append(_part_text(part))
        yield from stamp.reply(Kind.PROSE, "".join(said))

    def _tool(self, part: Record, calls: Record, results: Record, stamp: RecordStamp) -> Iterator[Turn]:
        call_id, data = string(part.get("toolCallId")), mapping(part.get("toolSpecificData"))
        call = mapping(calls.get(call_id))
        tool = string(call.get("name")) or string(part.get("toolId"))
        command = first_string(mapping(data.get("commandLine")), "toolEdited", "original") or string(
            data.get("command")
        )
        shown = _text(part.get("invocationMessage")) or _text(part.get("pastTenseMessage"))
        arguments = call.get("arguments") or data.get("rawInput") or ({"command": command} if command else shown)
        yield self._calls.call(stamp, call_id, tool, arguments)
        text = joined_text(mapping(results.get(call_id)).get("content"), _result_text)
        text = text or joined_text(mapping(part.get("resultDetails")).get("output"), _result_text)
        text = text or string(mapping(data.get("terminalCommandOutput")).get("text")) or string(data.get("result"))
        state = mapping(data.get("terminalCommandState"))
        failed = state.get("exitCode", 0) not in (0, None) or mapping(part.get("resultDetails")).get("isError") is True
        if text or part.get("isComplete") is True:
            yield self._calls.result(stamp, call_id, text or _text(part.get("pastTenseMessage")), failed=failed)


def _text(value: object) -> str:
    """Return a text that is recorded as it is, or as a field of an object."""
    return string(value) or first_string(mapping(value), "text", "value")


def _part_text(part: Record) -> str:
    if part.get("kind") == "inlineReference":
        reference = mapping(part.get("inlineReference"))
        name = string(part.get("name")) or string(reference.get("name")) or Path(_path(reference)).name
        return f"`{name}`" if name else ""
    return _text(part.get("value")) or _text(part.get("content"))


def _result_text(part: Record) -> str:
    return first_string(part, "value", "text")


def _strings(value: object) -> list[str]:
    return [text for text in listing(value) if isinstance(text, str)]


def _path(uri: object) -> str:
    """Return the path of a file, given its URI as text or as an object."""
    parts = mapping(uri)
    parts = mapping(parts.get("uri") or parts.get("location")) or parts
    path = first_string(parts, "fsPath", "path") or unquote(urlsplit(string(uri) or string(parts.get("external"))).path)
    return clean(path)


_FOLDERS = {"chatSessions", "emptyWindowChatSessions"}


class CopilotChat(ContainedFormat):
    """Chats in `<editor>/User/workspaceStorage/<workspace>/chatSessions`, and exported chats."""

    agent = "copilot-chat"
    reader_class = CopilotChatReader
    folder_fields = ("folder",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the chats in each editor."""
        patterns = ("workspaceStorage/*/chatSessions/*.json*", "globalStorage/emptyWindowChatSessions/*.json*")
        return [(user, pattern) for user in editor_folders() for pattern in patterns]

    def containers(self) -> Iterator[Path]:
        """Yield the file of each chat."""
        return filter(self.is_container, super().containers())

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a chat or an exported chat. A document whose log is beside it is none."""
        if path.parent.name in _FOLDERS:
            is_document = path.suffix == ".json" and not path.with_suffix(".jsonl").exists()
            return is_document or path.suffix == ".jsonl"
        return path.suffix == ".json" and path.is_file() and _is_export(head(path))

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the chat, unless nothing was asked. Raises `SourceUnreadable`."""
        try:
            chat = _replayed(path.read_bytes()) if path.suffix == ".jsonl" else mapping(json_of(path))
            state = file_fingerprint(path)
        except OSError as error:
            raise SourceUnreadable(path, error.strerror or str(error)) from None
        except ValueError as error:
            raise SourceUnreadable(path, f"the file is damaged or still being written: {error}") from None
        requests = mappings(chat.get("requests"))
        if requests:
            name = file_name(string(chat.get("sessionId")) or path.stem)
            at = max((instant(request.get("timestamp")) or 0 for request in requests), default=0)
            lines = partial(_lines, name.removesuffix(".jsonl"), chat, requests, workspace_folder(path.parent.parent))
            yield ContainedSession(path / name, f"{path.parent.parent.name or 'chats'}/{name}", state, at, lines)


def _is_export(data: bytes) -> bool:
    return all(f'"{name}"'.encode() in data for name in ("responderUsername", "requests", "requestId"))


def _lines(session: str, chat: Record, requests: list[Record], folder: str) -> Iterator[bytes]:
    names = ("customTitle", "creationDate", "initialLocation", "responderUsername", "version")
    header = {"id": session, "folder": folder} | {name: chat[name] for name in names if name in chat}
    yield message_line(session, conversation={name: value for name, value in header.items() if value})
    for number, request in enumerate(requests):
        yield message_line(string(request.get("requestId")) or f"{session}/{number}", message=request)


def _replayed(data: bytes) -> Record:
    """Return the document that results from a log of changes.

    Each line sets (0) the document, sets (1) or deletes (3) a field, or appends (2) to a list after cutting it. An
    unfinished last line is ignored. Raises `ValueError` if another line is damaged.
    """
    document: Any = {}
    lines = data.splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            entry = mapping(orjson.loads(line))
        except orjson.JSONDecodeError:
            if number == len(lines):
                break
            raise
        keys = listing(entry.get("k"))
        if entry.get("kind") == 0 or not keys:
            document = entry.get("v", document)
        else:
            _change(document, keys, entry)
    return mapping(document)


def _change(document: Any, keys: list[Any], entry: Record) -> None:
    """Apply one change to a document. A change of a value that does not exist is ignored."""
    owner, last = document, keys[-1]
    try:
        for key in keys[:-1]:
            owner = owner[key]
        if entry.get("kind") == 2:
            owner[last][entry.get("i", len(owner[last])) :] = listing(entry.get("v"))
        elif entry.get("kind") == 3 and isinstance(owner, dict):
            cast("Record", owner).pop(last, None)
        elif isinstance(owner, list) and last == len(cast("list[object]", owner)):
            cast("list[object]", owner).append(entry.get("v"))
        else:
            owner[last] = entry.get("v")
    except (KeyError, IndexError, TypeError):
        return


FORMAT: ContainerFormat = CopilotChat()
