"""Support for Kimi Code.

Kimi Code stores journals as JSON lines in `~/.kimi-code/sessions`, one per agent of a session.

A prompt is recorded twice: when sent, and when it enters the model's context. The reader uses the first record.

- Supported: prompts, replies, thinking, tool calls with results, compactions, undone turns, models, token usage,
  sub-agents.
- Not supported: requests to the model, tool lists, changes of settings, records of deleted sessions.
- Tested with: protocol versions 1.1 to 1.5, from descriptions. Records of token usage are unconfirmed on real files.
- Test data: `examples/kimi-code.jsonl`, and `agents/kimi/*.jsonl` of agent-sessions.
"""

import re
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind
from ..lines import Line, Record, clean
from .json_values import PromptLines, RecordedTwice, count_of, instant, mapping, string
from .kimi_cli import is_envelope, session_folder, step_usage, text_of
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type

_WIRE = "wire.jsonl"
_AGENTS, _MAIN = "agents", "main"
_OWN = {"context.append_message", "context.append_loop_event", "context.apply_compaction", "context.undo"}
_SENT, _IN_CONTEXT = "sent", "in context"
_STEP, _RECORD = "step", "record"
_WHOLE_SESSION = "session"
_USER = ("user", "")
_FAILED = re.compile(r"Command failed with exit code: \d+\.?\s*$")
_SKIPPED = {
    **dict.fromkeys(("llm.request", "llm.tools_snapshot", "plugin.session_start", "profile.bind"), SkipReason.CONTEXT),
    **dict.fromkeys(
        (
            "config.update", "full_compaction.begin", "full_compaction.complete", "loop/step.begin", "loop/step.end",
            "metadata", "permission.record_approval_result", "permission.set_mode", "plan_mode.enter",
            "plan_mode.exit", "runtime.set_binding", "token_counting.measured", "token_counting.turn_recorded",
            "tools.set_active_tools", "turn.cancel", "turn.ended",
        ),
        SkipReason.BOOKKEEPING,
    ),
}  # fmt: skip


class KimiCodeReader(RecordReader):
    """Reader of the journal of one agent in a session."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._copies, self._usages = RecordedTwice(), RecordedTwice()
        self._prompts = PromptLines()
        self._handlers: dict[str, RecordHandler] = {
            "config.update": self._settings,
            "profile.bind": self._settings,
            "turn.prompt": self._sent,
            "turn.steer": self._sent,
            "context.append_message": self._in_context,
            "context.apply_compaction": self._compaction,
            "context.undo": self._undone,
            "loop/content.part": self._part,
            "loop/tool.call": self._call,
            "loop/tool.result": self._result,
            "loop/step.end": self._step_usage,
            "usage.record": self._recorded_usage,
        }

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind, content = string(record.get("type")), record
        if kind == "context.append_loop_event":
            content = mapping(record.get("event"))
            kind = f"loop/{string(content.get('type'))}"
        handler = self._handlers.get(kind)
        if handler is None:
            return _SKIPPED.get(kind) or unknown_type(kind)
        # The numbers of tool calls start again in each session, so only a digest of the line is unique.
        stamp = RecordStamp(line.number, instant(record.get("time")), record_id("", line.data))
        return handler(content, stamp) or _SKIPPED.get(kind) or SkipReason.EMPTY

    def _settings(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        cwd = record.get("cwd") or mapping(record.get("environmentDisclosure")).get("cwd")
        return self._facts.notes(stamp.line, {Fact.CWD: cwd, Fact.MODEL: record.get("modelAlias")})

    def _step_usage(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        reply = string(event.get("uuid")) or stamp.record
        return self._usage(_STEP, _RECORD, reply, mapping(event.get("usage")), stamp)

    def _recorded_usage(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        if record.get("usageScope") == _WHOLE_SESSION:
            return SkipReason.BOOKKEEPING  # The sum of all earlier records.
        return self._usage(_RECORD, _STEP, stamp.record, mapping(record.get("usage")) or record, stamp)

    def _usage(self, record_type: str, other: str, reply: str, counts: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a note on the token usage of a reply, unless a record of the other type already contained it."""
        used = step_usage(reply, counts)
        tokens = used.removeprefix(reply)
        if used and self._usages.take(tokens, record_type=other):
            return SkipReason.REPEATED
        if used:
            self._usages.add(tokens, record_type=record_type)
        return self._facts.note(stamp.line, Fact.USAGE, used) or SkipReason.BOOKKEEPING

    def _sent(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        return self._user(_SENT, _IN_CONTEXT, record.get("input"), record, stamp)

    def _in_context(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        message = mapping(record.get("message"))
        if message.get("role") != "user":
            return unknown_type(f"message/{string(message.get('role'))}")
        return self._user(_IN_CONTEXT, _SENT, message.get("content"), message, stamp)

    def _user(self, record_type: str, other: str, content: object, about: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(text_of(content))
        if not text:
            return SkipReason.EMPTY
        if self._copies.take(text, record_type=other):
            return SkipReason.REPEATED
        by_parent = self._is_subagent
        by_user = string(mapping(about.get("origin")).get("kind")) in _USER
        if is_envelope(text) or not (by_user or by_parent):
            self._copies.add(text, record_type=record_type)
            return self._injected(text, stamp)
        self._copies.clear()
        self._usages.clear()
        self._copies.add(text, record_type=record_type)
        self._prompts.add(stamp.line)
        return self._prompt(text, stamp)

    def _compaction(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(record.get("summary"), stamp)

    def _undone(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        count = count_of(record.get("count"))
        return self._prompts.take_back(stamp.line, count, partial=self._partial) or SkipReason.BOOKKEEPING

    def _part(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        part, group = mapping(event.get("part")), string(event.get("stepUuid"))
        thought = stamp.reply(Kind.THINKING, string(part.get("think")), group)
        return thought or stamp.reply(Kind.PROSE, text_of(part), group) or SkipReason.EMPTY

    def _call(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        call, tool = string(event.get("toolCallId")), string(event.get("name"))
        return [self._calls.call(stamp, call, tool, event.get("args"), group=string(event.get("stepUuid")))]

    def _result(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        result = mapping(event.get("result"))
        text = text_of(result.get("output")) or text_of(result.get("error")) or string(result.get("message"))
        failed = result.get("isError") is True or "error" in result or _FAILED.search(text) is not None
        return [self._calls.result(stamp, string(event.get("toolCallId")), text, failed=failed)]


class KimiCode(FolderFormat):
    """Sessions in `~/.kimi-code/sessions/<folder>/session_<id>/agents/<agent>/wire.jsonl`, one journal per agent."""

    agent = "kimi-code"
    reader_class = KimiCodeReader
    home_variable, home_folder, root_folders = "KIMI_CODE_HOME", ".kimi-code", ("sessions",)
    other_files = frozenset({"session_index.jsonl"})

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by the folders of the session and the agent."""
        folder = path.parent
        if path.name != _WIRE or folder.parent.name != _AGENTS:
            return Session(self.agent, folder.name if path.name == _WIRE else path.stem)
        session = folder.parent.parent
        native_id, cwd = session.name.removeprefix("session_"), session_folder(session / "state.json")
        if folder.name == _MAIN:
            return Session(self.agent, native_id, cwd=cwd)
        return Session(self.agent, f"{native_id}-{folder.name}", SessionKind.SUBAGENT, native_id, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        kind = string(record.get("type"))
        # Kimi CLI writes the same first line, but without the creation time.
        return kind in _OWN or (kind == "metadata" and "protocol_version" in record and "created_at" in record)

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _WIRE


FORMAT: TranscriptFormat = KimiCode()
