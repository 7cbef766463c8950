"""Support for GitHub Copilot CLI.

Copilot stores events as JSON lines in `~/.copilot/session-state`.

- Supported: prompts with the names of attachments, replies, reasoning, tool calls with results, skills, notifications,
  compactions, titles, words and tool calls of sub-agents, and, at the end of a session, changed files and token usage.
- Not supported: permissions, hooks, progress of tools, system messages.
- Tested with: versions 1.0.12 to 1.0.102.
- Test data: `examples/copilot.jsonl`, `EntityProcess+agentv/copilot/*.jsonl`, and `agents/copilot` of agent-sessions.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, Speaker, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import Repetitions, first_string, instant, listing, mapping, mappings, string, total
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type, usage

_EVENTS = "events.jsonl"
_SKIPPED_FAMILIES = {
    "hook": SkipReason.HOOK_OUTPUT,
    "permission": SkipReason.BOOKKEEPING,
    "session": SkipReason.BOOKKEEPING,
    "subagent": SkipReason.BOOKKEEPING,
}
_SKIPPED_TYPES = {
    "assistant.turn_start": SkipReason.BOOKKEEPING,
    "assistant.turn_end": SkipReason.BOOKKEEPING,
    "assistant.usage": SkipReason.BOOKKEEPING,
    "system.message": SkipReason.CONTEXT,
    "tool.execution_partial_result": SkipReason.REPEATED,
    "tool.execution_progress": SkipReason.REPEATED,
}


class CopilotReader(RecordReader):
    """Reader of one session. A tool call is recorded twice: in the assistant's message and as a separate event."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._repetitions = Repetitions(self._released)
        self._by_subagent = False
        """True if a sub-agent wrote the current record."""
        self._handlers: dict[str, RecordHandler] = {
            "session.start": self._started,
            "session.resume": self._started,
            "session.context_changed": self._fact_handler({Fact.CWD: "cwd", Fact.BRANCH: "branch"}),
            "session.model_change": self._fact_handler({Fact.MODEL: "newModel"}),
            "session.title_changed": self._fact_handler({Fact.TITLE: "title"}),
            "session.compaction_complete": self._compaction,
            "session.error": self._notice,
            "session.shutdown": self._shutdown,
            "user.message": self._user,
            "assistant.message": self._assistant,
            "assistant.reasoning": self._reasoning,
            "tool.execution_start": self._call_event,
            "tool.execution_complete": self._result,
            "tool.user_requested": self._call_event,
            "skill.invoked": self._skill,
            "system.notification": self._notification,
            "abort": self._notice,
        }

    def _finish(self) -> None:
        self._repetitions.settle()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind = string(record.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            reason = _SKIPPED_TYPES.get(kind) or _SKIPPED_FAMILIES.get(kind.partition(".")[0])
            return reason or unknown_type(kind)
        own_id, data = record_id(string(record.get("id")), line.data), mapping(record.get("data"))
        self._by_subagent = bool(string(record.get("agentId")) or string(data.get("parentToolCallId")))
        return handler(data, RecordStamp(line.number, instant(record.get("timestamp")), own_id))

    def _spoken(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return the turns of the current record with the speaker who wrote it."""
        if not self._by_subagent:
            return [*turns]
        return [turn._replace(speaker=Speaker.HOST) if turn.speaker is Speaker.ASSISTANT else turn for turn in turns]

    def _started(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        context = mapping(data.get("context"))
        facts = {
            Fact.SESSION: data.get("sessionId"),
            Fact.VERSION: data.get("copilotVersion"),
            Fact.MODEL: data.get("selectedModel"),
            Fact.CWD: context.get("cwd"),
            Fact.BRANCH: context.get("branch"),
        }
        return self._facts.notes(stamp.line, facts) or SkipReason.REPEATED

    def _compaction(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(data.get("summaryContent"), stamp)

    def _shutdown(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a turn with the session's changed files, and a note on its token usage."""
        used = [mapping(mapping(metrics).get("usage")) for metrics in mapping(data.get("modelMetrics")).values()]
        tokens_in, tokens_out = (sum(total(each, name) for each in used) for name in ("inputTokens", "outputTokens"))
        changed_files = listing(mapping(data.get("codeChanges")).get("filesModified"))
        paths = tuple(clean(path) for path in map(string, changed_files) if path)
        changed = f"Changed: {', '.join(paths)}"
        turns = [stamp.turn(Speaker.HOST, Kind.INJECTED, changed, writes=paths)] if paths else []
        value = usage(stamp.record, tokens_in, tokens_out)
        return [*turns, *self._facts.note(stamp.line, Fact.USAGE, value)] or SkipReason.BOOKKEEPING

    def _user(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        names = [first_string(each, "path", "displayName") for each in mappings(data.get("attachments"))]
        text = "\n".join([clean(string(data.get("content"))), *(f"[{clean(name)}]" for name in names if name)]).strip()
        if not text:
            return SkipReason.EMPTY
        by_program = data.get("isAutopilotContinuation") is True or data.get("source") not in (None, "", "user")
        if by_program or self._by_subagent:
            return self._injected(text, stamp)
        self._repetitions.settle()
        return self._prompt(text, stamp)

    def _assistant(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        group, thought = string(data.get("messageId")), clean(string(data.get("reasoningText")))
        if thought:
            self._repetitions.register(f"thought {thought}")
        turns: list[Turn] = [
            *stamp.reply(Kind.THINKING, thought, group),
            *stamp.reply(Kind.PROSE, string(data.get("content")), group),
        ]
        for request in mappings(data.get("toolRequests")):
            call, tool = string(request.get("toolCallId")), string(request.get("name"))
            self._repetitions.register(call)
            turns.append(self._calls.call(stamp, call, tool, request.get("arguments"), group=group))
        model = None if self._by_subagent else data.get("model")
        return [*self._spoken(turns), *self._facts.note(stamp.line, Fact.MODEL, model)] or SkipReason.EMPTY

    def _reasoning(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        thought = clean(string(data.get("content")))
        turns = self._spoken(stamp.reply(Kind.THINKING, thought))
        return self._repetitions.delay(f"thought {thought}", turns, only_record=self._only_record)

    def _call_event(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        call, tool = string(data.get("toolCallId")), string(data.get("toolName"))
        turns = self._spoken([self._calls.call(stamp, call, tool, data.get("arguments"))])
        return self._repetitions.delay(call, turns, only_record=self._only_record)

    def _result(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        text = first_string(mapping(data.get("result")), "content", "detailedContent")
        text = text or string(mapping(data.get("error")).get("message"))
        exited = mapping(data.get("shellExecution")).get("exitCode") not in (0, None)
        failed = exited or data.get("success") is False
        return [self._calls.result(stamp, string(data.get("toolCallId")), text, failed=failed)]

    def _skill(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        parts = (string(data.get("name")), string(data.get("path")))
        return self._injected(f"Skill: {' '.join(filter(None, parts))}", stamp)

    def _notification(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        return self._injected(string(data.get("content")), stamp) or SkipReason.EMPTY

    def _notice(self, data: Record, stamp: RecordStamp) -> RecordEvents:
        text = string(data.get("message")) or f"Aborted: {string(data.get('reason')) or 'no reason given'}"
        return self._injected(text, stamp, failed=True) or SkipReason.EMPTY


class Copilot(FolderFormat):
    """Sessions in `~/.copilot/session-state/<session>/events.jsonl`. Older versions used `<session>.jsonl`."""

    agent = "copilot"
    reader_class = CopilotReader
    home_variable, home_folder, root_folders = "COPILOT_HOME", ".copilot", ("session-state",)
    other_folders = frozenset({"files", "checkpoints", "research", "rewind-snapshots"})
    name_pattern = re.compile(re.escape(_EVENTS))

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session. Its ID is the first `sessionId` in the events, or else the name of the folder or file."""
        started = (string(mapping(record.get("data")).get("sessionId")) for record in head_records(head))
        session_id = next(filter(None, started), "")
        return Session(self.agent, session_id or (path.parent.name if path.name == _EVENTS else path.stem))

    def _is_from_agent(self, record: Record) -> bool:
        return "." in string(record.get("type")) and isinstance(record.get("data"), dict) and "parentId" in record


FORMAT: TranscriptFormat = Copilot()
