"""Reader of Claude Code transcripts, of every version."""

import re
from collections.abc import Sequence

from ....core.conversation import Fact, Kind, Note, Session, Skipped, Speaker, Turn
from ...files.clipping import clean, clip, one_line
from ...files.lines import Line, Reason, Record
from ..json_values import content_blocks, count_of, instant, mapping, mappings, string, total
from ..record_events import UUID, RecordEvents, RecordStamp, SkipReason, is_unique, record_id, unknown_type, usage
from ..record_reader import RecordHandler, RecordReader
from ..rewinds import PromptParents
from ..tool_calls import INPUT_LIMIT, UNKNOWN_CALL
from ..transcript_format import Event
from .claude_code_progress import (
    progress_reason,
    starting_call,
    subagent_of,
    subagent_session,
    undecoded_reason,
    unwrapped,
)
from .claude_code_prompts import AttributedText, attribute, team_task
from .claude_code_queue import PromptQueue
from .claude_code_tools import block_text, call_of, content_text, result_of

_TITLES = {"custom-title": ("customTitle", 4), "agent-name": ("agentName", 3), "ai-title": ("aiTitle", 2)}
_SUMMARY_RANK = 1
_SYNTHETIC = "<synthetic>"
_AWAY_HINT = "(disable recaps in /config)"
_NO_CONTENT = "(no content)"
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
_CONTENT = ("timestamp", "type", "subtype", "message", "content", "attachment")
"""Fields that are equal in all copies of a record."""
_BOOKKEEPING = (
    *("last-prompt", "mode", "permission-mode", "bridge-session", "frame-link"),
    *("started", "result", "relocated", "worktree-state", "atis-latch", "cost-state", "tools-used"),
)
_REQUESTS = ("api-request", "api-request-blob", "api-request-resumed", "api-request-shape")
"""Types of records that version 2.1.331 writes for requests to the model. They only repeat text of other records."""
_SKIPPED_TYPES = {
    "file-history-snapshot": SkipReason.FILE_HISTORY,
    "file-history-delta": SkipReason.FILE_HISTORY,
    **dict.fromkeys(_BOOKKEEPING, SkipReason.BOOKKEEPING),
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
        found = super()._records(line)
        own = [] if isinstance(found, str) else [each for each in found if self._is_own_progress(each)]
        return own or found

    def _is_own_progress(self, record: Record) -> bool:
        return self._is_subagent and subagent_of(record) == self._session.native_id

    def _finish(self) -> None:
        self._queue.settle(0)

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
        found = attribute(text)
        if found.kind is not Kind.PROMPT:
            return found
        origin = mapping(record.get("origin")).get("kind", "human")
        injected = record.get("isMeta") is True or origin != "human" or record.get("toolUseResult") is not None
        if not injected and self._is_subagent:
            return found._replace(speaker=Speaker.HOST)
        # Before version 2, sub-agents were recorded in their parent's file.
        return AttributedText.injected(found.text) if injected or record.get("isSidechain") is True else found

    def _text_events(self, record: Record, stamp: RecordStamp, text: AttributedText) -> list[Turn | Note]:
        self._queue.skip(text.text)
        notes = self._open(record, stamp.line) if text.kind is Kind.PROMPT else []
        limit = INPUT_LIMIT if self._shorten and text.kind is Kind.INJECTED else None
        turn = stamp.turn(text.speaker, text.kind, clip(text.text, limit), tool=text.tool)
        return [turn, *self._injected(text.added, stamp), *notes, *self._envelope_notes(record, stamp.line)]

    def _open(self, record: Record, line: int) -> list[Note]:
        """Open an exchange: clear the state of the previous exchange, and return a rewind note if necessary."""
        self._queue.settle(line)
        self._calls.clear()
        self._envelope = ()
        self._facts.forget(Fact.CWD, Fact.BRANCH)
        return self._parents.add_prompt(string(record.get("parentUuid")), line, partial=self._partial)

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
        found = result_of(block, call, extra, shorten=self._shorten)
        return stamp.turn(
            found.speaker, Kind.RESULT, found.text,
            tool=call.tool, call=call_id, failed=found.failed, reads=found.reads, writes=found.writes,
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
            known = [string(details.get("trigger")), f"{count_of(details.get('preTokens'))} tokens before"]
            text = f"{text or 'Conversation compacted'} ({', '.join(filter(None, known))})"
            return self._text_events(record, stamp, AttributedText(Speaker.HOST, Kind.COMPACTION, text))
        if subtype == "away_summary" and text:
            recap = text.removesuffix(_AWAY_HINT).strip()
            return self._text_events(record, stamp, AttributedText(Speaker.HOST, Kind.RECAP, recap))
        if subtype == "local_command" and text:
            found = self._attributed(record, text)
            bare = found.kind is Kind.PROMPT and not text.startswith("<")
            return self._text_events(record, stamp, AttributedText.injected(text) if bare else found)
        return SkipReason.BOOKKEEPING if subtype in _SKIPPED_SYSTEM else unknown_type(f"system/{subtype}")

    def _attachment(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        attached = mapping(record.get("attachment"))
        kind, name = string(attached.get("type")), clean(string(attached.get("filename")))
        text = clean(content_text(attached.get("prompt")))
        if kind == "queued_command" and text:
            found = self._attributed({**record, "origin": attached.get("origin")}, text)
            if attached.get("commandMode", "prompt") != "prompt" and found.kind is Kind.PROMPT:
                found = AttributedText.injected(found.text)
            return self._text_events(record, stamp, found)
        if kind == "file" and name:
            turn = stamp.turn(Speaker.HOST, Kind.INJECTED, f"Attached: {name}", reads=(name,))
            return [turn, *self._envelope_notes(record, stamp.line)]
        if kind == "edited_text_file" and name:
            return self._text_events(record, stamp, AttributedText.injected(f"Changed outside the session: {name}"))
        return SkipReason.HOOK_OUTPUT if kind.startswith("hook_") else SkipReason.CONTEXT

    def _queue_operation(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        operation, text = record.get("operation"), clean(content_text(record.get("content")))
        if operation == "popAll":
            self._queue.withdraw()
        if operation == "remove":
            self._queue.read(attribute(text).text)
        if operation != "enqueue" or not text:
            return SkipReason.BOOKKEEPING
        found = attribute(text)
        if found.kind is not Kind.PROMPT or text.startswith('{"task_id"'):
            return SkipReason.QUEUED
        if text.startswith("/") and len(text.split()) == 1:
            found = AttributedText.injected(text)
        turn = stamp.turn(found.speaker, found.kind, found.text)
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
