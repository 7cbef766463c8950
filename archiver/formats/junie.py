"""Support for Junie: the program and the plug-in for JetBrains IDEs.

Junie stores one stream of events per session in `~/.junie/sessions`.

- Supported: prompts, answers to questions, replies, thoughts, commands, changed and viewed files, calls of MCP tools,
  errors, titles, models, token usage, working folders.
- Not supported: state of the agent and of its environment, plans, prompts that were dropped before they were sent,
  separate sessions of sub-agents.
- Tested with: one published session of August 2026, and fixtures of four other readers.
- Test data: `examples/junie.jsonl`.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson

from ...core.conversation import Fact, Kind, Session, Skipped, Speaker, Turn
from ..lines import Line, Record, clean, records, split
from .json_values import first_string, instant, mapping, mappings, string, total
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

_EVENTS, _INDEX = "events.jsonl", "index.jsonl"
_ANSWER = "<!-- ANSWER -->"
_MAIN = {"", "MainAgent"}
_FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CANCELED"}
_INPUTS = ("inputTokens", "cacheInputTokens", "cacheCreateTokens")
_BOOKKEEPING = {
    *("AgentCurrentStatusUpdatedEvent", "AgentPatchCreatedEvent", "AgentPlanUpdatedEvent", "AgentStateUpdatedEvent"),
    *("ContextWindowReportEvent", "CustomAgentBlockUpdatedEvent", "EnvironmentVariablesUpdatedEvent"),
    *("NextPromptSuggestionEvent", "SendToAgentEvent", "SessionCostTrajectorySnapshotEvent", "SubagentSpawnedEvent"),
    *("TaskStartedEvent", "TaskState", "TipSuggestionCreatedEvent", "UserMessagesCommittedToHistory"),
    *("UserMessagesDroppedFromHistory", "UserMessagesFailedInHistory"),
}


class JunieReader(RecordReader):
    """Reader of one session. Each record is an event of the session, or of the agent.

    The events of a step are versions of the same block. The last version counts, and each version is repeated when the
    task ends.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._steps = dict[str, tuple[Line, Record, RecordStamp]]()
        """Last versions of the blocks in the current exchange, by step."""

    def _finish(self) -> None:
        for line, event, stamp in self._steps.values():
            self._released += line_events(line, [self._block(event, stamp) or SkipReason.EMPTY])
        self._steps.clear()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind, event = string(record.get("kind")), mapping(mapping(record.get("event")).get("agentEvent"))
        stamp = RecordStamp(
            line.number, instant(record.get("timestampMs")), record_id("", _content(event) or line.data)
        )
        if kind == "SessionA2uxEvent":
            return self._agent_event(event, line, stamp)
        match kind:
            case "UserPromptEvent":
                return self._asked(first_string(record, "presentablePrompt", "prompt"), stamp)
            case "UserAsyncResponseEvent":
                answers = [string(entry.get("answer")) for entry in mappings(record.get("entries"))]
                return self._asked("\n".join(answers), stamp)
            case "SessionTitleSetEvent":
                return self._facts.note(line.number, Fact.TITLE, record.get("name")) or SkipReason.REPEATED
            case "SystemMessageEvent":
                texts = dict.fromkeys(clean(string(record.get(name))) for name in ("text", "details"))
                failed = record.get("level") == "ERROR"
                return self._injected("\n".join(filter(None, texts)), stamp, failed=failed) or SkipReason.EMPTY
            case "AgentTaskFailedEvent" | "CancelAgentEvent":
                text = "The task failed" if kind == "AgentTaskFailedEvent" else "Cancelled by the user"
                return self._injected(text, stamp, failed=True)
            case _:
                return SkipReason.BOOKKEEPING if kind in _BOOKKEEPING else unknown_type(kind)

    def _asked(self, text: str, stamp: RecordStamp) -> RecordEvents:
        text = clean(text)
        if not text:
            return SkipReason.EMPTY
        self._finish()
        return self._prompt(text, stamp)

    def _agent_event(self, event: Record, line: Line, stamp: RecordStamp) -> RecordEvents:
        kind, step = string(event.get("kind")), string(event.get("stepId"))
        match kind:
            case "LlmResponseMetadataEvent":
                used = mappings(event.get("modelUsage"))
                counts = [sum(total(each, *names) for each in used) for names in (_INPUTS, ("outputTokens",))]
                facts = {Fact.USAGE: usage(f"line-{line.number}", *counts)}
                model = first_string(used[-1], "model") if used else ""
                return self._facts.notes(line.number, facts | {Fact.MODEL: model}) or SkipReason.BOOKKEEPING
            case "CurrentDirectoryUpdatedEvent":
                return self._facts.note(line.number, Fact.CWD, event.get("currentDirectory")) or SkipReason.BOOKKEEPING
            case "AgentTaskNameUpdatedEvent":
                return self._facts.note(line.number, Fact.TITLE, event.get("name")) or SkipReason.REPEATED
            case "AgentFailureEvent":
                return self._injected(string(event.get("message")), stamp, failed=True) or SkipReason.EMPTY
            case _ if kind in _BOOKKEEPING:
                return SkipReason.BOOKKEEPING
            case _ if kind not in _BLOCKS:
                return unknown_type(kind)
            case _:
                pass
        if not step or not self._only_record:
            return self._block(event, stamp) or SkipReason.EMPTY
        earlier = self._steps.get(step)
        if earlier and _content(earlier[1]) == _content(event):
            return SkipReason.REPEATED
        if earlier:
            self._released.append(Skipped(earlier[0].number, SkipReason.REPLACED))
        self._steps[step] = line, event, stamp
        return []

    def _block(self, event: Record, stamp: RecordStamp) -> list[Turn]:
        """Return the turns of a block. The speaker of a sub-agent's prose and calls is the host."""
        kind, turns = string(event.get("kind")), list[Turn]()
        if kind in _TEXTS:
            said_as, names = _TEXTS[kind]
            turns = stamp.reply(said_as, _text(event, *names))
        if kind not in _TEXTS or event.get("changes"):
            turns += self._call(kind, event, stamp)
        if string(mapping(event.get("agent")).get("kind")) in _MAIN:
            return turns
        return [turn._replace(speaker=Speaker.HOST) if turn.speaker is Speaker.ASSISTANT else turn for turn in turns]

    def _call(self, kind: str, event: Record, stamp: RecordStamp) -> list[Turn]:
        """Return the call and the result of a block. A block that is in progress has no result."""
        call, reads, writes = (
            first_string(event, "stepId") or stamp.record,
            tuple(_viewed(event)),
            tuple(_changed(event)),
        )
        tool, arguments = _BLOCKS[kind], Record()
        if kind in _TEXTS and not writes:
            return []
        match kind:
            case "TerminalBlockUpdatedEvent":
                arguments = {"command": event.get("command")}
            case "McpBlockUpdatedEvent":
                tool = first_string(event, "toolName", "name") or tool
                arguments = mapping(event.get("input")) or {"input": first_string(event, "input", "text")}
            case "ToolBlockUpdatedEvent":
                arguments = {"action": event.get("text")}
            case _:
                arguments = {"files": ", ".join((*reads, *writes))}
        call_turn = self._calls.call(stamp, call, tool, arguments)
        status = string(event.get("status"))
        text = first_string(event, "output", "details") or ", ".join((*reads, *writes))
        if not text and status not in _FINAL:
            return [call_turn]
        failed = status in _FINAL - {"COMPLETED"} or event.get("exitCode") not in (None, 0)
        result = self._calls.result(stamp, call, text, failed=failed)
        return [call_turn, result if failed else result._replace(reads=reads, writes=writes)]


_TEXTS = {
    "AgentThoughtBlockUpdatedEvent": (Kind.THINKING, ("text",)),
    "MarkdownBlockUpdatedEvent": (Kind.PROSE, ("text",)),
    "ResultBlockUpdatedEvent": (Kind.PROSE, ("result",)),
    "SuggestPlanEvent": (Kind.PROSE, ("sections",)),
    "AskAsyncRequestUpdatedEvent": (Kind.PROSE, ("request",)),
    "AskRequestUpdatedEvent": (Kind.PROSE, ("askRequest",)),
}
"""Kinds of blocks with text, with the fields that contain it."""
_BLOCKS = {
    **dict.fromkeys(_TEXTS, "edit"),
    "FileChangesBlockUpdatedEvent": "edit",
    "McpBlockUpdatedEvent": "mcp",
    "TerminalBlockUpdatedEvent": "terminal",
    "ToolBlockUpdatedEvent": "tool",
    "ViewFilesBlockUpdatedEvent": "view",
}
"""Kinds of blocks, with the names of their tools."""


def _content(event: Record) -> bytes:
    """Return canonical bytes of an event of the agent, or empty bytes if it has none."""
    try:
        return orjson.dumps(event, option=orjson.OPT_SORT_KEYS) if event else b""
    except TypeError:  # orjson rejects deep nesting and large integers.
        return repr(event).encode("utf-8", "replace")


def _text(event: Record, *names: str) -> str:
    values = [event.get(name) for name in names]
    texts = [first_string(mapping(value), "question", "text") or string(value) for value in values]
    texts += [string(section.get("content")) for value in values for section in mappings(value)]
    return "\n".join(filter(None, texts)).removeprefix(_ANSWER)


def _viewed(event: Record) -> Iterator[str]:
    return (clean(path) for file in mappings(event.get("files")) if (path := string(file.get("relativePath"))))


def _changed(event: Record) -> Iterator[str]:
    for change in mappings(event.get("changes")):
        path = first_string(change, "afterRelativePath", "beforeRelativePath", "path")
        if path:
            yield clean(path)


def _listed(index: Path, session_id: str) -> Record:
    """Return the last entry of a session in the list of sessions."""
    try:
        with index.open("rb") as file:
            entries = [record for line in split(file) if isinstance(found := records(line), list) for record in found]
    except OSError:
        return {}
    return next((entry for entry in reversed(entries) if entry.get("sessionId") == session_id), Record())


class Junie(FolderFormat):
    """Sessions in `~/.junie/sessions/<session>/events.jsonl`. The file `index.jsonl` lists them."""

    agent = "junie"
    reader_class = JunieReader
    home_variable, home_folder, root_folders = "JUNIE_HOME", ".junie", ("sessions",)

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by its folder. The list of sessions contains the project."""
        session_id = path.parent.name if path.name == _EVENTS else path.stem
        listed = _listed(path.parent.parent / _INDEX, session_id)
        folder = string(listed.get("projectDir"))
        return Session(self.agent, session_id or path.stem, cwd=folder, started=instant(listed.get("createdAt")))

    def _is_from_agent(self, record: Record) -> bool:
        kind = string(record.get("kind"))
        is_event = kind == "SessionA2uxEvent" and "agentEvent" in mapping(record.get("event"))
        return is_event or (kind == "UserPromptEvent" and "prompt" in record)

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _EVENTS


FORMAT: TranscriptFormat = Junie()
