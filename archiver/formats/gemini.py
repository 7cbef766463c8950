"""Support for Gemini CLI.

Gemini CLI stores conversations in `~/.gemini/tmp/*/chats`, as JSON documents or, since version 0.40, as JSON lines.

Later lines can correct a message, so the reader yields the replies of an exchange when the exchange ends.

- Supported: prompts, replies, thoughts, tool calls with results, notices, titles, token usage, corrections of messages,
  rewinds, sub-agents, project folders.
- Not supported: checkpoints, `logs.json`, tool output in separate files, documents with `history` instead of
  `messages`.
- Tested with: documents of versions up to 0.39, and JSON lines of version 0.61.
- Test data: `examples/gemini.jsonl`, `entireio+cli/gemini-cli/*.json`, and `agents/gemini` of agent-sessions.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import (
    first_string,
    instant,
    joined_text,
    json_file,
    listing,
    mapping,
    mappings,
    media_label,
    string,
    total,
)
from .record_reader import FolderFormat, RecordReader
from .transcript_format import (
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    line_events,
    record_id,
    unknown_type,
    usage,
)

_ADDED = re.compile(r"<(hook_context|loaded_context)>(.*?)</\1>\s*", re.DOTALL)


def split_added(prompt: str) -> tuple[str, str]:
    """Return a prompt without the added text, and the added text.

    Gemini CLI escapes angle brackets in the text of hooks. They are restored.
    """
    added = "\n".join(addition[2] for addition in _ADDED.finditer(prompt)).replace("&lt;", "<").replace("&gt;", ">")
    return _ADDED.sub("", prompt).strip(), added.strip()


_COMMAND = re.compile(r"\?|/[a-z][\w:-]*(?:\s.*)?", re.DOTALL | re.IGNORECASE)
_SESSION_CONTEXT = "<session_context>"
_UNTRUSTED = re.compile(r"\s*<untrusted_context[^>]*>\n?(.*?)\n?</untrusted_context>\s*", re.DOTALL)
_EXIT_CODE = re.compile(r"^Exit Code: -?[0-9]*[1-9]", re.MULTILINE)
_SHELL = "run_shell_command"
_HEADER = {"sessionId", "projectHash", "startTime", "lastUpdated", "messages"}
_REPLIES = {"gemini", "model"}
_NOTICES = {"info", "warning", "error"}


class _Journal(Struct):
    """Messages read so far, and replies of the current exchange that later lines can correct."""

    lines: dict[str, int] = field(default_factory=dict[str, int])
    """First line of each message that is not abandoned, by message ID and in conversation order."""
    delayed: dict[str, tuple[Line, Record]] = field(default_factory=dict[str, tuple[Line, Record]])

    def add(self, message: str, line: int) -> None:
        """Add a message. Messages without an ID are ignored, because no rewind can refer to them."""
        if message:
            self.lines.setdefault(message, line)

    def rewind(self, message: str, line: int, *, partial: bool) -> list[Note]:
        """Remove a message and all later messages, and return a rewind note.

        If the message is unknown, remove the whole conversation.
        """
        recorded = self.lines.get(message)
        if recorded is None and partial:
            return [Note(line, Fact.REWOUND, "")]
        first = recorded if recorded is not None else min(self.lines.values(), default=0)
        self.lines = {name: start for name, start in self.lines.items() if start < first}
        return [Note(line, Fact.REWOUND, str(first))] if first else []

    def replace(self, messages: set[str], line: int, *, partial: bool) -> list[Note]:
        """Remove the messages that a new message list abandons, and return a rewind note.

        `messages` contains the IDs in the new list. All known messages after the last known ID are abandoned. If no ID
        is known, for example after a compression, a new conversation begins and no message is abandoned.
        """
        if partial:
            return [Note(line, Fact.REWOUND, "")]
        last = max((start for name, start in self.lines.items() if name in messages), default=0)
        abandoned = next((name for name, start in self.lines.items() if start > last), "")
        return self.rewind(abandoned, line, partial=partial) if last and abandoned else []


class GeminiReader(RecordReader):
    """Reader of one conversation."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._journal = _Journal()

    def _finish(self) -> None:
        """Release the final versions of the replies in the last exchange."""
        for line, message in self._journal.delayed.values():
            self._released += line_events(line, [self._reply(message, _stamp(message, line)) or SkipReason.EMPTY])
        self._journal.delayed.clear()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "$set" in record:
            return self._metadata(mapping(record["$set"]), line) or SkipReason.BOOKKEEPING
        if "$rewindTo" in record:
            target = string(record["$rewindTo"])
            return self._journal.rewind(target, line.number, partial=self._partial) or SkipReason.BOOKKEEPING
        if "type" in record:
            return self._message(record, line, only_record=self._only_record)
        if _HEADER.isdisjoint(record):
            return unknown_type("")
        return self._metadata(record, line) or SkipReason.REPEATED

    def _metadata(self, about: Record, line: Line) -> list[Turn | Note]:
        """Return the events of a header or of a header update. Either can contain the whole conversation."""
        folder = next(iter(listing(about.get("directories"))), "")
        facts = {Fact.SESSION: about.get("sessionId"), Fact.CWD: folder, Fact.TITLE: about.get("summary")}
        events: list[Turn | Note] = [*self._facts.notes(line.number, facts)]
        if "messages" not in about:
            return events
        messages = mappings(about.get("messages"))
        ids = {string(message.get("id")) for message in messages}
        events += self._journal.replace(ids, line.number, partial=self._partial)
        new = [message for message in messages if string(message.get("id")) not in self._journal.lines]
        found = [self._message(each, line, only_record=False) for each in new]
        return events + [event for each in found if not isinstance(each, str) for event in each]

    def _message(self, message: Record, line: Line, *, only_record: bool) -> RecordEvents:
        kind, name = string(message.get("type")), string(message.get("id"))
        if kind == "user":
            return self._user(message, line)
        if kind not in _REPLIES:
            self._journal.add(name, line.number)
            notice = self._injected(_text(message), _stamp(message, line), failed=kind == "error")
            return (notice or SkipReason.EMPTY) if kind in _NOTICES else unknown_type(kind)
        if name in self._journal.delayed:
            earlier, _ = self._journal.delayed.pop(name)
            self._released.append(Skipped(earlier.number, SkipReason.REPLACED))
        self._journal.add(name, line.number)
        if not only_record or not name:
            return self._reply(message, _stamp(message, line)) or SkipReason.EMPTY
        self._journal.delayed[name] = line, message
        return []

    def _user(self, message: Record, line: Line) -> RecordEvents:
        name, stamp = string(message.get("id")), _stamp(message, line)
        if name in self._journal.lines:
            return SkipReason.REPEATED
        self._journal.add(name, line.number)
        text = clean(_content_text(message.get("displayContent")) or _text(message))
        text, context = ("", text) if text.startswith(_SESSION_CONTEXT) else split_added(text)
        injected = self._injected(context, stamp)
        if not text:
            return injected or SkipReason.EMPTY
        if _is_command(text):
            return [*injected, *self._injected(text, stamp)]
        self._finish()
        return [*self._prompt(text, stamp), *injected]

    def _reply(self, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        group, counts = string(message.get("id")), mapping(message.get("tokens"))
        used = usage(group or stamp.record, total(counts, "input"), total(counts, "output", "thoughts"))
        turns = [turn for thought in mappings(message.get("thoughts")) for turn in _thought(thought, stamp, group)]
        turns += stamp.reply(Kind.PROSE, _text(message), group)
        for call in mappings(message.get("toolCalls")):
            turns += self._call(call, stamp, group)
        return [*turns, *self._facts.notes(stamp.line, {Fact.MODEL: message.get("model"), Fact.USAGE: used})]

    def _call(self, call: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        """Return a call, followed by its result unless the call is still running."""
        name, status = string(call.get("id")), string(call.get("status"))
        call_turn = self._calls.call(stamp, name, string(call.get("name")), call.get("args"), group=group)
        if "result" not in call and not status:
            return [call_turn]
        text = _result_of(call)
        exited = call.get("name") == _SHELL and _EXIT_CODE.search(text) is not None
        failed = exited or status in {"error", "cancelled"}
        return [call_turn, self._calls.result(stamp, name, text, failed=failed)]


def _stamp(message: Record, line: Line) -> RecordStamp:
    """Return the line, time and record ID of a message.

    The record ID of a prompt is based on its message ID, so a corrected prompt keeps its record ID. The record ID of a
    reply is a digest of its content, so a corrected reply gets a new record ID. The context at the start of a session
    has the same message ID in all sessions, so its record ID is a digest too.
    """
    message_id = string(message.get("id"))
    if message.get("type") == "user" and not _text(message).startswith(_SESSION_CONTEXT):
        record = f"user:{record_id(message_id, line.data)}"
    else:
        record = f"gemini:{record_id('', _canonical(message, line))}"
    return RecordStamp(line.number, instant(message.get("timestamp")), record)


def _canonical(message: Record, line: Line) -> bytes:
    """Return canonical bytes of a message, which are equal in a JSON document and in its JSON lines copy."""
    try:
        return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # orjson rejects deep nesting and large integers.
        return line.data


def _text(message: Record) -> str:
    return _content_text(message.get("content") or message.get("parts"))


def _thought(thought: Record, stamp: RecordStamp, group: str) -> list[Turn]:
    parts = (string(thought.get("subject")), string(thought.get("description")))
    return stamp.reply(Kind.THINKING, "\n".join(filter(None, parts)), group)


def _content_text(content: object) -> str:
    """Return the text of a message, with type and size in place of pictures and files."""
    return joined_text(content, _part_text)


def _is_command(text: str) -> bool:
    """Return whether a text is a command to the program."""
    return _COMMAND.fullmatch(text) is not None


def _result_of(call: Record) -> str:
    """Return the result of a call: the response to the model or, without a response, the displayed text.

    Since version 0.61, output of programs and MCP servers is enclosed in a tag.
    """
    responses = [mapping(part.get("functionResponse")) for part in mappings(call.get("result"))]
    answers = [first_string(mapping(response.get("response")), "output", "error") for response in responses]
    display = call.get("resultDisplay")
    answer = "\n".join(filter(None, answers)) or _content_text(call.get("result"))
    tagged = _UNTRUSTED.fullmatch(answer)
    answer = tagged[1] if tagged else answer
    return answer or string(display) or string(mapping(display).get("fileDiff"))


def _part_text(part: Record) -> str:
    data = mapping(part.get("inlineData")) or mapping(part.get("fileData"))
    if data:
        return media_label(string(data.get("mimeType")) or "file", data.get("data"))
    return "" if part.get("thought") is True else string(part.get("text"))


_REGISTRY, _ROOT = "projects.json", ".project_root"
_ROOT_MAX = 4096


def project_folder(stored: Path, digest: str = "") -> str:
    """Return the path of the project whose conversations are below the folder `stored`.

    `digest` is the SHA-256 digest of the path, if a conversation contains it. The result is empty if no file records
    the path.
    """
    names = _registered(stored.parent.parent / _REGISTRY)
    project = _recorded(stored) or next((path for path, name in names.items() if name == stored.name), "")
    if project:
        return project
    digests = {stored.name, digest}
    return next((path for path in _paths(stored, names) if _digest(path) in digests), "")


def _paths(stored: Path, names: dict[str, object]) -> Iterator[str]:
    yield from names
    try:
        yield from filter(None, map(_recorded, sorted(stored.parent.iterdir())))
    except OSError:
        return


def _registered(path: Path) -> dict[str, object]:
    """Return the names of the registered projects by path."""
    return mapping(json_file(path).get("projects"))


def _recorded(folder: Path) -> str:
    try:
        with (folder / _ROOT).open(encoding="utf-8", errors="replace") as file:
            return file.read(_ROOT_MAX).strip()
    except OSError:
        return ""


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()


_CHATS = "chats"


class Gemini(FolderFormat):
    """Conversations in `~/.gemini/tmp/<project>/chats`.

    Conversations of sub-agents are in a folder named after the parent.
    """

    agent = "gemini"
    reader_class = GeminiReader
    home_variable, root_folders = "GEMINI_CLI_HOME", (".gemini/tmp",)
    suffixes = (".json", ".jsonl")
    other_files = frozenset({"logs.json"})
    other_folders = frozenset({"checkpoints", "tool-outputs"})
    name_pattern = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-[0-9a-f]{8}\.jsonl?")

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a conversation. Documents that were migrated to JSON lines are excluded."""
        migrated = path.suffix == ".json" and path.with_suffix(".jsonl").exists()
        return super().may_be_transcript(path, root) and not migrated

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        The working folder comes from the files in which Gemini CLI records the folders of its projects.
        """
        header = next(filter(_is_header, head_records(head)), Record())
        native_id = string(header.get("sessionId")) or path.name.partition(".")[0]
        nested = header.get("kind") == "subagent" and path.parent.parent.name == _CHATS
        parent, chats = (path.parent.name, path.parent.parent) if nested else ("", path.parent)
        cwd = project_folder(chats.parent, string(header.get("projectHash")))
        kind = SessionKind.SUBAGENT if header.get("kind") == "subagent" else SessionKind.MAIN
        return Session(self.agent, native_id, kind, parent, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        is_reply = record.get("type") == "gemini" and not {"content", "toolCalls"}.isdisjoint(record)
        return _is_header(record) or is_reply or "$rewindTo" in record

    def _has_transcript_path(self, path: Path) -> bool:
        return _CHATS in path.parts


def _is_header(record: Record) -> bool:
    named = isinstance(record.get("sessionId"), str) and "type" not in record
    return named and ("projectHash" in record or {"startTime", "lastUpdated"} <= record.keys())


FORMAT: TranscriptFormat = Gemini()
