"""Support for Claude Code.

Claude Code stores JSON lines in `~/.claude/projects`, one file per session and one per sub-agent.

A queued prompt is recorded when typed and again when sent, unless the assistant reads it during its work.

- Supported: prompts (including queued prompts), replies, thinking, tool calls with results, compactions, recaps, shell
  commands, slash commands, titles, token usage, pull requests, rewinds, forks, continued sessions, sub-agents (also in
  progress records of their parent) with the calls that started them, and members of agent teams.
- Not supported: progress of commands and hooks, file snapshots, hook output, context added by the program, redacted
  thinking, and most of `toolUseResult`.
- Tested with: versions 2.0.64 to 2.1.219. Support for 1.x is based on descriptions.
- Test data: `examples/claude-code.jsonl`, `*/claude-code/*.jsonl` of five repositories, and the fixtures of
  claude-code-log and agent-sessions.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, SessionKind, Skipped, Speaker, Turn
from ..lines import Line, Reason, Record, clean, clip, head_records, is_media_label, one_line, records, split
from . import record_reader
from .claude_code_prompts import AttributedText, attribute, block_text, call_of, content_text, result_of, team_task
from .containers import fingerprint
from .json_values import (
    INPUT_LIMIT,
    UNKNOWN_CALL,
    PromptParents,
    content_blocks,
    count_of,
    instant,
    mapping,
    mappings,
    string,
    total,
)
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import (
    EXTRACTED,
    UUID,
    ContainedSession,
    Event,
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    is_unique,
    record_id,
    unknown_type,
    usage,
)


class _QueuedPrompt(Struct):
    turn: Turn
    skipped: str = ""
    """Reason for skipping the prompt, or an empty string if it is not skipped."""
    read: bool = False
    """True if the assistant read the prompt, which removes the prompt from the queue."""
    sent: bool = False
    """True if the program took the prompt from the queue to send it."""
    accounted: bool = False
    """True if the line of the prompt has other events and therefore needs no `Skipped` event."""


class PromptQueue(Struct):
    """Queued prompts of the current exchange."""

    released: list[Event]
    """List to which delayed prompts, or `Skipped` events in their place, are appended."""
    _prompts: list[_QueuedPrompt] = field(default_factory=list[_QueuedPrompt])

    def add(self, turn: Turn) -> None:
        """Delay a queued prompt."""
        self._prompts.append(_QueuedPrompt(turn))

    def mark_line(self, line: int, *, accounted: bool) -> bool:
        """Return whether prompts of this line are delayed.

        Mark these prompts as accounted if the line has other events.
        """
        if not self._prompts:
            return False
        on_line = [prompt for prompt in self._prompts if prompt.turn.line == line]
        for prompt in on_line:
            prompt.accounted = accounted
        return bool(on_line)

    def skip(self, text: str) -> None:
        """Mark the first delayed prompt with this text as skipped."""
        words = _words(text) if self._prompts else []
        for prompt in self._prompts:
            if not prompt.skipped and _words(prompt.turn.text) == words:
                prompt.skipped = SkipReason.QUEUED
                return

    def read(self, text: str) -> None:
        """Mark the first prompt with this text as read by the assistant. An empty text matches the first prompt."""
        words = _words(text)
        for prompt in self._prompts:
            if not (prompt.skipped or prompt.read) and (not words or _words(prompt.turn.text) == words):
                prompt.read = True
                return

    def send(self) -> None:
        """Mark the first prompt that is still in the queue as sent."""
        for prompt in self._prompts:
            if not (prompt.skipped or prompt.read or prompt.sent):
                prompt.sent = True
                return

    def withdraw(self) -> None:
        """Mark every unread prompt as withdrawn by the user."""
        for prompt in self._prompts:
            if not prompt.read:
                prompt.skipped = prompt.skipped or SkipReason.WITHDRAWN

    def settle(self, line: int = 0, at: Milliseconds | None = None) -> None:
        """Move every delayed prompt to `released`, and replace skipped prompts by `Skipped` events.

        A resumed session can begin with a prompt, followed by a copy of older exchanges and by the record of the sent
        prompt. The prompt is skipped, because it opens a later exchange.

        Args:
            line: First line of the next exchange, or 0 at the end of the file.
            at: Time of the next exchange.
        """
        for prompt in self._prompts:
            if prompt.sent and at is not None and prompt.turn.at is not None and prompt.turn.at > at:
                prompt.skipped = prompt.skipped or SkipReason.QUEUED
        accounted = {prompt.turn.line for prompt in self._prompts if not prompt.skipped}
        for prompt in self._prompts:
            typed_on = prompt.turn.line
            if not prompt.skipped:
                self.released.append(prompt.turn)
            elif not prompt.accounted and typed_on not in accounted and typed_on != line:
                accounted.add(typed_on)
                self.released.append(Skipped(typed_on, prompt.skipped))
        self._prompts.clear()


def _words(text: str) -> list[str]:
    """Return the words of a prompt. Its pictures are recorded only when it is sent, so their labels do not count."""
    return " ".join(line for line in text.splitlines() if not is_media_label(line)).split()


_REASONS: Final = {
    "bash_progress": SkipReason.PROGRESS,
    "powershell_progress": SkipReason.PROGRESS,
    "hook_progress": SkipReason.HOOK_PROGRESS,
    "mcp_progress": SkipReason.SERVER_PROGRESS,
    "query_update": SkipReason.SEARCH_PROGRESS,
    "search_results_received": SkipReason.SEARCH_PROGRESS,
    "waiting_for_task": SkipReason.WAITING,
}
_COPIED_FIELDS: Final = ("sessionId", "cwd", "gitBranch", "version")
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
    start = _START.match(data, 0, _START_BYTES)
    if start is None or not data.endswith(b"}") or _JOINED in data or _MESSAGE in data:
        return ""
    return _REASONS.get(start[1].decode(), "")


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
    own, envelope = mapping(data.get("message")), {name: record.get(name) for name in _COPIED_FIELDS}
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
    by_subagent: dict[str, dict[int, Line]] = {}
    for record, line in records_of_subagents(lines):
        by_subagent.setdefault(subagent_of(record), {})[line.number] = line._replace(data=b"")
    return {native_id: [*on_lines.values()] for native_id, on_lines in by_subagent.items()}


_TITLES = {"custom-title": ("customTitle", 4), "agent-name": ("agentName", 3), "ai-title": ("aiTitle", 2)}
_SUMMARY_RANK = 1
_SYNTHETIC = "<synthetic>"
_AWAY_HINT = "(disable recaps in /config)"
_NO_CONTENT = "(no content)"
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
_CONTENT = ("timestamp", "type", "subtype", "message", "content", "attachment")
"""Fields that are equal in all copies of a record."""
_BOOKKEEPING_LINES = (
    *("last-prompt", "mode", "permission-mode", "bridge-session", "frame-link"),
    *("started", "result", "relocated", "worktree-state", "atis-latch", "cost-state", "tools-used"),
)
_REQUESTS = ("api-request", "api-request-blob", "api-request-resumed", "api-request-shape")
"""Types of records that version 2.1.331 writes for requests to the model. They only repeat text of other records."""
_SKIPPED_TYPES = {
    "file-history-snapshot": SkipReason.FILE_HISTORY,
    "file-history-delta": SkipReason.FILE_HISTORY,
    **dict.fromkeys(_BOOKKEEPING_LINES, SkipReason.BOOKKEEPING),
    **dict.fromkeys(_REQUESTS, SkipReason.CONTEXT),
}
_SKIPPED_SYSTEM = {
    "api_error",
    "away_summary",
    "bridge_status",
    "informational",
    "local_command",
    "microcompact_boundary",
    "model_refusal_fallback",
    "stop_hook_summary",
    "turn_duration",
}


class ClaudeCodeReader(RecordReader):
    """Reader of one transcript."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._envelope: tuple[object, ...] = ()
        self._titles: dict[int, str] = {}
        self._queue = PromptQueue(self._released)
        self._parents = PromptParents()
        self._has_task = False
        """True after the first message of a sub-agent."""
        self._started: set[tuple[str, str]] = set()
        """Sub-agents that were reported, each as the ID of the call that started it and the ID of its session."""
        self._handlers: dict[str, RecordHandler] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "summary": self._summary,
            "queue-operation": self._queue_operation,
            "pr-link": self._pull_request,
            "continued-in": self._continued,
            "progress": self._progress,
            **dict.fromkeys(_TITLES, self._title),
        }

    def _line(self, line: Line) -> Sequence[Event]:
        reason = "" if self._partial else undecoded_reason(line.data)
        if reason:
            return [Skipped(line.number, reason)]
        events = super()._line(line)
        skipped = bool(events) and isinstance(events[0], Skipped)
        return () if self._queue.mark_line(line.number, accounted=not skipped) and skipped else events

    def _records(self, line: Line) -> list[Record] | Reason:
        """Return the records on a line. Beside a message of this sub-agent, records of its parent are omitted."""
        records = super()._records(line)
        own = [] if isinstance(records, str) else [each for each in records if self._is_own_progress(each)]
        return own or records

    def _is_own_progress(self, record: Record) -> bool:
        return self._is_subagent and subagent_of(record) == self._session.native_id

    def _finish(self) -> None:
        self._queue.settle()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind = record.get("type")
        if not isinstance(kind, str):
            return "unknown-type"
        if self._partial:
            self._parents.add_record(string(record.get("uuid")))
        reason = _SKIPPED_TYPES.get(kind)
        if reason is not None:
            return reason
        handler = self._handlers.get(kind)
        if handler is None:
            return unknown_type(kind)
        return handler(record, RecordStamp(line.number, instant(record.get("timestamp")), own_id(record)))

    # Records of the user.

    def _user(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        content = mapping(record.get("message")).get("content")
        blocks = mappings(content)
        results = [block for block in blocks if _is_result(block)]
        if results:
            return self._results(record, stamp, results, [block for block in blocks if not _is_result(block)])
        text = self._attributed(record, clean(content_text(content)))
        if not text.text:
            return SkipReason.EMPTY
        origin = mapping(record.get("forkedFrom")).get("sessionId")
        return [*self._text_events(record, stamp, text), *self._facts.note(stamp.line, Fact.PARENT, origin)]

    def _attributed(self, record: Record, text: str) -> AttributedText:
        """Return a text with its author, determined from the text itself and from the flags of its record."""
        if record.get("isCompactSummary") is True:
            return AttributedText(Speaker.HOST, Kind.COMPACTION, text)
        task = team_task(text) if self._is_subagent or record.get("agentName") else ""
        if task:
            return AttributedText(Speaker.HOST, Kind.PROMPT, task)
        attributed = attribute(text)
        if attributed.kind is not Kind.PROMPT:
            return attributed
        origin = mapping(record.get("origin")).get("kind", "human")
        injected = record.get("isMeta") is True or origin != "human" or record.get("toolUseResult") is not None
        if not injected and self._is_subagent:
            return attributed._replace(speaker=Speaker.HOST)
        # Before version 2, sub-agents were recorded in their parent's file.
        return AttributedText.injected(attributed.text) if injected or record.get("isSidechain") is True else attributed

    def _text_events(self, record: Record, stamp: RecordStamp, text: AttributedText) -> list[Turn | Note]:
        self._queue.skip(text.text)
        notes = self._open(record, stamp) if text.kind is Kind.PROMPT else []
        limit = INPUT_LIMIT if self._shorten and text.kind is Kind.INJECTED else None
        turn = stamp.turn(text.speaker, text.kind, clip(text.text, limit), tool=text.tool)
        return [turn, *self._injected(text.added, stamp), *notes, *self._envelope_notes(record, stamp.line)]

    def _open(self, record: Record, stamp: RecordStamp) -> list[Note]:
        """Open an exchange: clear the state of the previous exchange, and return a rewind note if necessary."""
        self._queue.settle(stamp.line, stamp.at)
        self._calls.clear()
        self._envelope = ()
        self._facts.forget(Fact.CWD, Fact.BRANCH)
        return self._parents.add_prompt(string(record.get("parentUuid")), stamp.line, partial=self._partial)

    def _results(
        self, record: Record, stamp: RecordStamp, results: Sequence[Record], others: Sequence[Record]
    ) -> RecordEvents:
        extra = record.get("toolUseResult") if len(results) == 1 else None
        return [
            *(self._result(stamp, block, extra) for block in results),
            *self._injected(content_text(others), stamp),
            *self._envelope_notes(record, stamp.line),
            *self._subagent(string(results[0].get("tool_use_id")), subagent_session(mapping(extra)), stamp),
        ]

    def _result(self, stamp: RecordStamp, block: Record, extra: object) -> Turn:
        call_id = string(block.get("tool_use_id"))
        call = self._calls.waiting.pop(call_id, UNKNOWN_CALL)
        output = result_of(block, call, extra, shorten=self._shorten)
        return stamp.turn(
            output.speaker, Kind.RESULT, output.text,
            tool=call.tool, call=call_id, failed=output.failed, reads=output.reads, writes=output.writes,
        )  # fmt: skip

    # Records of the assistant.

    def _assistant(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        message = mapping(record.get("message"))
        content, model = message.get("content"), string(message.get("model"))
        group = string(message.get("id")) or string(record.get("requestId"))
        turns = [turn for block in content_blocks(content) for turn in self._block(record, stamp, block, group)]
        notes = self._envelope_notes(record, stamp.line) if turns else []
        if model != _SYNTHETIC:
            notes += self._facts.notes(stamp.line, {Fact.MODEL: model, Fact.USAGE: _usage(message)})
        return [*turns, *notes] or SkipReason.EMPTY

    def _block(self, record: Record, stamp: RecordStamp, block: Record, group: str) -> list[Turn]:
        kind = string(block.get("type"))
        if kind in _CALLS:
            call, call_id = call_of(block, shorten=self._shorten), string(block.get("id"))
            self._calls.waiting[call_id] = call
            return [stamp.turn(Speaker.ASSISTANT, Kind.CALL, call.text, group=group, tool=call.tool, call=call_id)]
        if _is_result(block):
            return [self._result(stamp, block, None)._replace(group=group)]
        thinking = kind == "thinking"
        text = clean(string(block.get("thinking")) if thinking else block_text(block))
        if not text or text == _NO_CONTENT:
            return []
        failed = record.get("isApiErrorMessage") is True
        if failed or mapping(record.get("message")).get("model") == _SYNTHETIC:
            return [stamp.turn(Speaker.HOST, Kind.INJECTED, text, failed=failed)]
        return [stamp.turn(Speaker.ASSISTANT, Kind.THINKING if thinking else Kind.PROSE, text, group=group)]

    # Records of the program.

    def _progress(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the events of a message from a running sub-agent, if this is the conversation of that sub-agent."""
        if not self._is_own_progress(record):
            subagent = subagent_of(record)
            if not subagent:
                return progress_reason(record)
            self._released += self._subagent(starting_call(record), subagent, stamp)
            return SkipReason.SUBAGENT
        message = unwrapped(record)
        kind = string(message.get("type"))
        handler = {"user": self._user, "assistant": self._assistant}.get(kind)
        if handler is None:
            return unknown_type(f"progress/{kind}")
        own = RecordStamp(stamp.line, instant(message.get("timestamp")) or stamp.at, own_id(message))
        task, events = self._task(record, message, own), handler(message, own)
        return task or events if isinstance(events, str) else [*task, *events]

    def _subagent(self, call: str, native_id: str, stamp: RecordStamp) -> list[Note]:
        """Return a list with a note about the sub-agent that a call started. It is empty if the note is known."""
        if not call or not native_id or (call, native_id) in self._started:
            return []
        self._started.add((call, native_id))
        return [Note(stamp.line, Fact.SUBAGENT, native_id, about=call)]

    def _task(self, record: Record, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the task of a sub-agent whose first message is missing. Every message repeats the task."""
        is_first, self._has_task = not (self._has_task or self._partial), True
        content = mapping(message.get("message")).get("content")
        if not is_first or (message.get("type") == "user" and not any(map(_is_result, mappings(content)))):
            return []
        task = clean(string(mapping(record.get("data")).get("prompt")))
        return self._text_events(message, stamp, AttributedText(Speaker.HOST, Kind.PROMPT, task)) if task else []

    def _system(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        subtype, text = string(record.get("subtype")), clean(string(record.get("content")))
        if subtype == "compact_boundary":
            details = mapping(record.get("compactMetadata"))
            facts = [string(details.get("trigger")), f"{count_of(details.get('preTokens'))} tokens before"]
            text = f"{text or 'Conversation compacted'} ({', '.join(filter(None, facts))})"
            return self._text_events(record, stamp, AttributedText(Speaker.HOST, Kind.COMPACTION, text))
        if subtype == "away_summary" and text:
            recap = text.removesuffix(_AWAY_HINT).strip()
            return self._text_events(record, stamp, AttributedText(Speaker.HOST, Kind.RECAP, recap))
        if subtype == "local_command" and text:
            attributed = self._attributed(record, text)
            bare = attributed.kind is Kind.PROMPT and not text.startswith("<")
            return self._text_events(record, stamp, AttributedText.injected(text) if bare else attributed)
        return SkipReason.BOOKKEEPING if subtype in _SKIPPED_SYSTEM else unknown_type(f"system/{subtype}")

    def _attachment(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        attached = mapping(record.get("attachment"))
        kind, name = string(attached.get("type")), clean(string(attached.get("filename")))
        text = clean(content_text(attached.get("prompt")))
        if kind == "queued_command" and text:
            attributed = self._attributed({**record, "origin": attached.get("origin")}, text)
            if attached.get("commandMode", "prompt") != "prompt" and attributed.kind is Kind.PROMPT:
                attributed = AttributedText.injected(attributed.text)
            return self._text_events(record, stamp, attributed)
        if kind == "file" and name:
            turn = stamp.turn(Speaker.HOST, Kind.INJECTED, f"Attached: {name}", reads=(name,))
            return [turn, *self._envelope_notes(record, stamp.line)]
        if kind == "edited_text_file" and name:
            return self._text_events(record, stamp, AttributedText.injected(f"Changed outside the session: {name}"))
        return SkipReason.HOOK_OUTPUT if kind.startswith("hook_") else SkipReason.CONTEXT

    def _queue_operation(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        operation, text = record.get("operation"), clean(content_text(record.get("content")))
        if operation == "dequeue":
            self._queue.send()
        if operation == "popAll":
            self._queue.withdraw()
        if operation == "remove":
            self._queue.read(attribute(text).text)
        if operation != "enqueue" or not text:
            return SkipReason.BOOKKEEPING
        attributed = attribute(text)
        if attributed.kind is not Kind.PROMPT or text.startswith('{"task_id"'):
            return SkipReason.QUEUED
        if text.startswith("/") and len(text.split()) == 1:
            attributed = AttributedText.injected(text)
        turn = stamp.turn(attributed.speaker, attributed.kind, attributed.text)
        # A queue operation has no ID and occurs in every copy of the file.
        queued_id = record_id("", f"{turn.at} {text}".encode()) if turn.at is not None else ""
        self._queue.add(turn._replace(record=queued_id))
        return SkipReason.QUEUED

    def _summary(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        title, about = one_line(clean(string(record.get("summary")))), string(record.get("leafUuid"))
        return [Note(stamp.line, Fact.TITLE, title, _SUMMARY_RANK, about)] if title else SkipReason.EMPTY

    def _title(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        name, rank = _TITLES[record["type"]]
        title = one_line(clean(string(record.get(name))))
        if not title or self._titles.get(rank) == title:
            return SkipReason.REPEATED
        self._titles[rank] = title
        return [Note(stamp.line, Fact.TITLE, title, rank)]

    def _pull_request(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        address = string(record.get("prUrl")) or f"{string(record.get('prRepository'))}#{record.get('prNumber', '')}"
        return self._facts.note(stamp.line, Fact.PULL_REQUEST, address) or SkipReason.REPEATED

    def _continued(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a note with the ID of the session that continues this one.

        The name of the field with this ID varies. The ID is the only UUID in the record that does not identify the
        record, its parent or the current session.
        """
        own = {string(record.get(name)) for name in ("sessionId", "session_id", "uuid", "parentUuid")}
        others = [value for value in map(string, record.values()) if re.fullmatch(UUID, value) and value not in own]
        if not others:
            return SkipReason.BOOKKEEPING
        return self._facts.note(stamp.line, Fact.CONTINUES, others[0]) or SkipReason.REPEATED

    def _envelope_notes(self, record: Record, line: int) -> list[Note]:
        """Return a note for each session fact in this record that changed, such as the working folder."""
        get = record.get
        envelope = (get("sessionId"), get("cwd"), get("gitBranch"), get("version"), get("agentId"))
        if envelope == self._envelope:
            return []
        self._envelope = envelope
        session, cwd, branch, version, agent_id = envelope
        facts = {Fact.SESSION: session}
        if self._is_subagent:
            # The records of a sub-agent contain the ID of its parent.
            facts = {Fact.PARENT: "" if session == self._session.native_id else session}
        facts |= {Fact.CWD: cwd, Fact.BRANCH: "" if branch == "HEAD" else branch, Fact.VERSION: version}
        return self._facts.notes(line, facts | {Fact.AGENT_ID: agent_id})


def own_id(record: Record) -> str:
    """Return the ID of a record, which is equal in all of its copies, or an empty string.

    An ID such as `msg-1` occurs in every session. It is replaced by a digest of the ID, the time and the content.
    """
    native_id = string(record.get("uuid"))
    if not native_id or is_unique(native_id):
        return native_id
    return record_id("", repr([native_id, *map(record.get, _CONTENT)]).encode("utf-8", "replace"))


def _is_result(block: Record) -> bool:
    """Return whether a block is a result, such as `tool_result` or `web_search_tool_result`."""
    return string(block.get("type")).endswith("tool_result")


def _usage(message: Record) -> str:
    """Return the token usage of one reply so far. Input tokens include tokens read from and written to the cache."""
    counts, reply = mapping(message.get("usage")), string(message.get("id"))
    tokens_in = total(counts, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return usage(reply, tokens_in, total(counts, "output_tokens")) if reply else ""


_BOOKKEEPING = {"last-prompt", "mode", "permission-mode", "custom-title", "ai-title", "agent-name", "queue-operation"}
_ENVELOPE = {"isSidechain", "parentUuid", "uuid", "sessionId", "cwd"}


class ClaudeCode(FolderFormat):
    """Transcripts in `~/.claude/projects/<project>/<session>.jsonl`.

    Transcripts of sub-agents are in subfolders of the project folder.
    """

    agent = "claude-code"
    reader_class = ClaudeCodeReader
    home_variable = "CLAUDE_CONFIG_DIR"
    other_files = frozenset({"journal.jsonl", "history.jsonl"})
    other_folders = frozenset({"tool-results", "memory", "file-history", "todos", EXTRACTED})
    name_pattern = re.compile(rf"(?:{UUID}|agent-.*)\.jsonl", re.DOTALL)

    def roots(self) -> list[Path]:
        """Return the existing `projects` folders of this user from all documented locations."""
        configured = os.environ.get(self.home_variable)
        homes = [Path(configured).expanduser()] if configured else []
        folders: dict[Path, Path] = {}
        for home in (*homes, Path.home() / ".claude", Path.home() / ".config" / "claude"):
            folder = home / "projects"
            if folder.is_dir():
                folders.setdefault(folder.resolve(), folder)
        return list(folders.values())

    def archive_name(self, path: Path, root: Path) -> str:
        """Return the path below `projects`, such as `<project folder>/<session>.jsonl`."""
        relative = path.relative_to(root).parts if path.is_relative_to(root) else ()
        if "projects" in relative[:2]:
            root = root.joinpath(*relative[: relative.index("projects") + 1])
        return record_reader.archive_name(path, root)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a transcript, with the ID from the file name or from the first records.

        The parent of a sub-agent is the session whose folder contains the folder `subagents`. The name of a session's
        folder is a UUID. Without such a folder, the `sessionId` in the records is the ID of the parent.
        """
        path = Path(os.fsencode(path).decode("utf-8", "backslashreplace"))  # File names may contain any bytes.
        session_id = next(filter(None, (string(record.get("sessionId")) for record in head_records(head))), "")
        agent_id = _agent_id(path, head_records(head))
        if not agent_id:
            return Session(self.agent, path.stem if re.fullmatch(UUID, path.stem) else session_id or path.stem)
        native_id = f"agent-{agent_id}"
        owners = (folder.parent.name for folder in path.parents if folder.name == "subagents")
        owner = next((name for name in owners if re.fullmatch(UUID, name)), "")
        parent = owner or ("" if session_id == native_id else session_id)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent, scope=parent)

    def extracted(
        self, path: Path, archived: str, state: int, opened: Callable[[], BinaryIO]
    ) -> Iterator[tuple[Session, ContainedSession]]:
        """Yield each sub-agent whose messages are in progress records of the transcript."""
        with opened() as file:
            subagents = lines_by_subagent(split(file))
        for native_id, on_lines in subagents.items():
            name = record_reader.safe(f"{native_id}.jsonl")
            rows = partial(_rows, opened, on_lines)
            contained = ContainedSession(
                path / EXTRACTED / name,
                f"{archived.removesuffix('.jsonl')}/{EXTRACTED}/{name}",
                fingerprint(state, len(on_lines)),
                0,
                rows,
            )
            yield self.identify(contained.path, next(rows())), contained

    def extracted_records(self, lines: Iterable[Line]) -> dict[str, int]:
        """Map the ID of each message of a sub-agent in a transcript to its line."""
        messages = ((unwrapped(record), line) for record, line in records_of_subagents(lines))
        return {native_id: line.number for message, line in messages if (native_id := own_id(message))}

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether a file with these records is a transcript, but not one of Cowork."""
        return super().recognises(records) and not any(map(is_cowork, records))

    def _is_from_agent(self, record: Record) -> bool:
        kind = string(record.get("type"))
        if kind == "summary":
            return "leafUuid" in record
        if kind == "file-history-snapshot":
            return "snapshot" in record
        if kind in _BOOKKEEPING:
            return "sessionId" in record
        # Other agents also link records by `parentUuid`. Qwen Code stores messages in a field `parts`, and the session
        # IDs of iFlow begin with `session-`.
        is_message = kind in {"user", "assistant"} and "content" in mapping(record.get("message"))
        is_message = is_message and not string(record.get("sessionId")).startswith("session-")
        return is_message and not _ENVELOPE.isdisjoint(record)


def is_cowork(record: Record) -> bool:
    """Return whether Cowork, the agent of the Claude desktop app, ran Claude Code to write a record."""
    return record.get("entrypoint") == "local-agent" and "message" in record


def _rows(opened: Callable[[], BinaryIO], lines: Iterable[Line]) -> Iterator[bytes]:
    with opened() as file:
        for line in lines:
            file.seek(line.start)
            yield file.read(line.end - line.start).rstrip(b"\r\n") + b"\n"


def _agent_id(path: Path, records: Iterable[Record]) -> str:
    """Return the ID of the sub-agent that wrote all records, or an empty string for other transcripts."""
    if path.stem.startswith("agent-"):
        return path.stem.removeprefix("agent-")
    ids: set[str] = set()
    for record in records:
        if string(record.get("type")) in {"user", "assistant"}:
            if record.get("isSidechain") is not True:
                return ""
            ids.add(string(record.get("agentId")))
    return ids.pop() if len(ids) == 1 else ""


FORMAT: TranscriptFormat = ClaudeCode()
