"""Support for Qwen Code.

Qwen Code stores a session as JSON lines in `~/.qwen/projects/<project>/chats/<session>.jsonl`. The records form a tree.

- Supported: prompts, replies, thoughts, tool calls with results, titles, models, token usage, compressions, rewinds,
  branches, sub-agents, context of hooks.
- Not supported: telemetry, snapshots of files, artifacts, goals, sessions of versions before 0.5 in `~/.qwen/tmp`.
- Tested with: fixtures of version 0.21.
- Test data: `examples/qwen-code.jsonl`, and `agents/qwen` of agent-sessions.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import (
    EntryTree,
    count_of,
    first_string,
    instant,
    joined_text,
    mapping,
    mappings,
    media_label,
    string,
)
from .record_reader import FolderFormat, RecordReader
from .transcript_format import (
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    record_id,
    unknown_type,
    usage,
)

_TYPES = {"user", "assistant", "tool_result", "system"}
_BY_PROGRAM = {"notification", "cron", "goal_runtime", "background_task_completed"}
"""Subtypes of user records that the program wrote."""
_HOOK = re.compile(r"<qwen:user-prompt-submit-context>\n?(.*?)\n?</qwen:user-prompt-submit-context>", re.DOTALL)
_FAILED = {"error", "cancelled"}
_SKIPPED = {
    **dict.fromkeys(
        (
            "agent_bootstrap", "agent_retry", "agent_session_ready", "at_command", "attribution_snapshot",
            "branch_checkpoint", "goal_state", "goal_turn_end", "omni_recall", "rewind", "session_approval_mode",
            "session_execution_engine", "session_notes", "session_source", "session_sources_snapshot", "turn_result",
            "ui_telemetry", "user_text_elements", "session_artifact_event", "session_artifact_snapshot",
            "managed_session_header_v1", "managed_session_event_v1", "managed_session_commit_v1",
        ),
        SkipReason.BOOKKEEPING,
    ),
    "file_history_snapshot": SkipReason.FILE_HISTORY,
}  # fmt: skip


class QwenCodeReader(RecordReader):
    """Reader of one session. The active branch is the one with the last message."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree = EntryTree()

    def _finish(self) -> None:
        self._released += self._tree.abandoned(partial=self._partial)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind, entry, written = string(record.get("type")), string(record.get("uuid")), string(record.get("timestamp"))
        if kind not in _TYPES:
            return unknown_type(kind)
        self._tree.add(entry, string(record.get("parentUuid")), partial=self._partial)
        # A branch copies records with their IDs and times. Two records with one ID are parts of one message.
        own_id = f"{entry}@{written}" if entry and written else record_id("", line.data)
        stamp = RecordStamp(line.number, instant(written), own_id)
        facts = {
            Fact.CWD: record.get("cwd"),
            Fact.BRANCH: record.get("gitBranch"),
            Fact.VERSION: record.get("version"),
            Fact.PARENT: mapping(record.get("forkedFrom")).get("sessionId"),
        }
        notes = self._facts.notes(line.number, facts) if kind != "system" else []
        events = self._events(kind, record, stamp)
        if isinstance(events, str):
            return notes or events
        self._tree.mark_events(entry, line.number)
        return [*events, *notes]

    def _events(self, kind: str, record: Record, stamp: RecordStamp) -> RecordEvents:
        parts = mappings(mapping(record.get("message")).get("parts"))
        match kind:
            case "user":
                return self._user(record, parts, stamp) or SkipReason.EMPTY
            case "assistant":
                return self._assistant(record, parts, stamp) or SkipReason.EMPTY
            case "tool_result":
                return list(self._results(record, parts, stamp)) or SkipReason.EMPTY
            case _:
                return self._system(string(record.get("subtype")), mapping(record.get("systemPayload")), stamp)

    def _user(self, record: Record, parts: list[Record], stamp: RecordStamp) -> RecordEvents:
        payload = mapping(record.get("systemPayload"))
        text = clean(joined_text(parts, _part_text))
        results = list(self._results(record, parts, stamp))
        if string(record.get("subtype")) in _BY_PROGRAM:
            return [*results, *self._injected(text, stamp)]
        added = "\n".join(_HOOK.findall(text)) or string(payload.get("hookContext"))
        asked = clean(string(payload.get("displayText"))) or clean(_HOOK.sub("", text))
        prompt = self._prompt(asked, stamp) if asked else []
        return [*results, *prompt, *self._injected(added, stamp)]

    def _assistant(self, record: Record, parts: list[Record], stamp: RecordStamp) -> RecordEvents:
        group, counts = string(record.get("uuid")), mapping(record.get("usageMetadata"))
        turns: list[Turn] = []
        for part in parts:
            call = mapping(part.get("functionCall"))
            if call:
                name, call_id = string(call.get("name")), string(call.get("id"))
                turns.append(self._calls.call(stamp, call_id, name, call.get("args"), group=group))
            else:
                kind = Kind.THINKING if part.get("thought") is True else Kind.PROSE
                turns += stamp.reply(kind, _part_text(part), group)
        sent = count_of(counts.get("promptTokenCount"))
        # Some models count thoughts apart from the reply; the total contains both.
        received = max(count_of(counts.get("candidatesTokenCount")), count_of(counts.get("totalTokenCount")) - sent)
        facts = {Fact.MODEL: record.get("model"), Fact.USAGE: usage(stamp.record, sent, received)}
        return [*turns, *self._facts.notes(stamp.line, facts)]

    def _results(self, record: Record, parts: list[Record], stamp: RecordStamp) -> Iterator[Turn]:
        about = mapping(record.get("toolCallResult"))
        for response in (mapping(part.get("functionResponse")) for part in parts):
            if response:
                content = mapping(response.get("response"))
                text = first_string(content, "output", "error") or string(about.get("resultDisplay"))
                failed = "error" in content or string(about.get("status")) in _FAILED
                call, name = string(response.get("id")), string(response.get("name"))
                yield self._calls.result(stamp, call, text, failed=failed, tool=name)

    def _system(self, subtype: str, payload: Record, stamp: RecordStamp) -> RecordEvents:
        match subtype:
            case "chat_compression":
                first = next(iter(mappings(payload.get("compressedHistory"))), Record())
                return self._compacted(joined_text(first.get("parts"), _part_text), stamp)
            case "slash_command" if payload.get("phase") == "invocation":
                return self._injected(string(payload.get("rawCommand")), stamp) or SkipReason.EMPTY
            case "slash_command":
                return SkipReason.BOOKKEEPING
            case "custom_title":
                return self._facts.note(stamp.line, Fact.TITLE, payload.get("customTitle")) or SkipReason.REPEATED
            case "session_model":
                return self._facts.note(stamp.line, Fact.MODEL, payload.get("modelId")) or SkipReason.REPEATED
            case "parent_session":
                parent = payload.get("parentSessionId")
                return self._facts.note(stamp.line, Fact.PARENT, parent) or SkipReason.REPEATED
            case _:
                return _SKIPPED.get(subtype) or unknown_type(f"system/{subtype}")


def _part_text(part: Record) -> str:
    data = mapping(part.get("inlineData")) or mapping(part.get("fileData"))
    if data:
        return media_label(string(data.get("mimeType")) or "file", data.get("data"))
    return string(part.get("text"))


class QwenCode(FolderFormat):
    """Sessions in `~/.qwen/projects/<project>/chats`, and those of sub-agents in `<project>/subagents`."""

    agent = "qwen-code"
    reader_class = QwenCodeReader
    home_variable, home_folder, root_folders = "QWEN_RUNTIME_DIR", ".qwen", ("projects",)
    other_folders = frozenset({"memory"})

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of the first record, or else the file name."""
        record = next(filter(self._is_from_agent, head_records(head)), Record())
        session = string(record.get("sessionId")) or path.stem
        agent = string(record.get("agentId"))
        cwd, branch = string(record.get("cwd")), string(record.get("gitBranch"))
        if record.get("isSidechain") is True and agent:
            return Session(self.agent, f"{session}-{agent}", SessionKind.SUBAGENT, session, cwd=cwd, branch=branch)
        return Session(self.agent, session, cwd=cwd, branch=branch)

    def _is_from_agent(self, record: Record) -> bool:
        message = mapping(record.get("message"))
        is_message = isinstance(message.get("parts"), list) and "content" not in message
        is_record = {"uuid", "parentUuid", "sessionId"} <= record.keys() and string(record.get("type")) in _TYPES
        return is_record and (is_message or isinstance(record.get("systemPayload"), dict))


FORMAT: TranscriptFormat = QwenCode()
