"""Support for Kimi CLI.

Kimi CLI stores a journal of events per session in `~/.kimi/sessions`. Older versions store the model's context instead.

- Supported: prompts, replies, thinking, tool calls with results, compactions, token usage, sub-agents,
  working folders.
- Not supported: the context of a session that has a journal, events of sub-agents in their parent's journal, approvals,
  hooks.
- Tested with: descriptions only, because no samples exist.
- Test data: `examples/kimi-cli.jsonl`.
"""

import re
from hashlib import md5
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind, Turn
from ..lines import Line, Record, clean
from .json_values import (
    content_blocks,
    count_of,
    first_string,
    instant,
    joined_text,
    json_file,
    mapping,
    mappings,
    string,
    total,
)
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type, usage

_ENVELOPES = ("<system-reminder>", "<system>", "<notification", "<task-notification")


def session_folder(state: Path) -> str:
    """Return the working folder of a session from its `state.json`.

    The result is empty if the file is missing or damaged.
    """
    found = json_file(state)
    return first_string(found, "cwd", "workDir", "work_dir")


def text_of(content: object) -> str:
    """Return the text of a message or a result, with pictures and other media replaced by their media type."""
    return joined_text(content, _part_text)


def is_envelope(text: str) -> bool:
    """Return whether the program wrote a text that is recorded with the role `user`."""
    return text.startswith(_ENVELOPES) and text.rstrip().endswith(">")


def step_usage(step: str, counts: Record) -> str:
    """Return the token usage of a step, as the value of a `Fact.USAGE` note.

    The fields of `counts` can have names in the style of Kimi Code (`inputOther`) or of Kimi CLI (`input_other`).
    """
    normalised = {name.replace("_", "").lower(): value for name, value in counts.items()}
    tokens_in = total(normalised, "inputother", "inputcacheread", "inputcachecreation")
    return usage(step, tokens_in, count_of(normalised.get("output")))


def _part_text(part: Record) -> str:
    kind = string(part.get("type"))
    if kind == "think":
        return ""
    return string(part.get("text")) or (f"[{kind.removesuffix('_url')}]" if kind.endswith("_url") else "")


_WIRE, _CONTEXT = "wire.jsonl", "context.jsonl"
_SUBAGENTS, _REGISTRY = "subagents", "kimi.json"
_ROLES = {"_system_prompt", "_checkpoint", "_usage"}
_SKIPPED = {
    **dict.fromkeys(
        (
            "ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin", "HookRequest",
            "HookResolved", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "MCPStatusSnapshot", "Notification",
            "PlanDisplay", "QuestionRequest", "QuestionResponse", "StatusUpdate", "StepBegin", "StepInterrupted",
            "StepRetry", "TurnEnd", "role/_checkpoint", "role/_usage", "metadata",
        ),
        SkipReason.BOOKKEEPING,
    ),
    "role/_system_prompt": SkipReason.CONTEXT,
    "role/system": SkipReason.CONTEXT,
    # A sub-agent has its own journal.
    "SubagentEvent": SkipReason.REPEATED,
    "ToolCallPart": SkipReason.REPEATED,
}  # fmt: skip


class KimiCliReader(RecordReader):
    """Reader of one session file: an event journal, or a list of the messages in the model's context."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._handlers: dict[str, RecordHandler] = {
            "TurnBegin": self._user,
            "SteerInput": self._user,
            "ContentPart": self._part,
            "ToolCall": self._call,
            "ToolResult": self._result_event,
            "StatusUpdate": self._usage,
            "CompactionEnd": self._compaction,
            "role/user": self._user,
            "role/assistant": self._assistant,
            "role/tool": self._result,
        }

    def _record(self, record: Record, line: Line) -> RecordEvents:
        message = mapping(record.get("message"))
        if "role" in record:
            kind, content = f"role/{string(record.get('role'))}", record
        else:
            kind, content = string(message.get("type")) or string(record.get("type")), mapping(message.get("payload"))
        handler = self._handlers.get(kind)
        if handler is None:
            return _SKIPPED.get(kind) or unknown_type(kind)
        # A context has no fields that distinguish a message from an equal message in another session.
        own_id = record_id("", line.data) if "timestamp" in record else ""
        stamp = RecordStamp(line.number, instant(record.get("timestamp")), own_id)
        return handler(content, stamp) or _SKIPPED.get(kind, SkipReason.EMPTY)

    # Events of a journal.

    def _result_event(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        value = mapping(payload.get("return_value")) or mapping(payload.get("result"))
        text = text_of(value.get("output")) or string(value.get("message"))
        failed = value.get("is_error") is True
        return [self._calls.result(stamp, string(payload.get("tool_call_id")), text, failed=failed)]

    def _usage(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        step = string(payload.get("message_id")) or stamp.record
        return self._facts.note(stamp.line, Fact.USAGE, step_usage(step, mapping(payload.get("token_usage"))))

    def _compaction(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(payload.get("summary"), stamp)

    # Messages of a context.

    def _assistant(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        parts = content_blocks(message.get("content"))
        turns = [turn for part in parts for turn in self._part(part, stamp)]
        return turns + [turn for call in mappings(message.get("tool_calls")) for turn in self._call(call, stamp)]

    def _result(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(text_of(message.get("content")))
        failed = text.startswith("<system>ERROR")
        return [self._calls.result(stamp, string(message.get("tool_call_id")), text, failed=failed)]

    # Methods for both journals and contexts.

    def _user(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(text_of(record.get("user_input", record.get("content"))))
        if not text:
            return SkipReason.EMPTY
        return self._injected(text, stamp) if is_envelope(text) else self._prompt(text, stamp)

    def _part(self, part: Record, stamp: RecordStamp) -> list[Turn]:
        if part.get("think"):
            return stamp.reply(Kind.THINKING, string(part.get("think")))
        return stamp.reply(Kind.PROSE, text_of(part))

    def _call(self, call: Record, stamp: RecordStamp) -> list[Turn]:
        function = mapping(call.get("function"))
        tool, arguments = string(function.get("name")), function.get("arguments")
        return [self._calls.call(stamp, string(call.get("id")), tool, arguments)]


class KimiCli(FolderFormat):
    """Sessions in `~/.kimi/sessions/<folder>/<session>`.

    The file is `wire.jsonl`, or `context.jsonl` in older versions.
    """

    agent = "kimi-cli"
    reader_class = KimiCliReader
    home_variable, home_folder, root_folders = "KIMI_SHARE_DIR", ".kimi", ("sessions",)
    name_pattern = re.compile(re.escape(_CONTEXT))

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a transcript. Exclude a context file if a journal is beside it."""
        return super().may_be_transcript(path, root) and (path.name != _CONTEXT or not path.with_name(_WIRE).exists())

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by its folder. The folder of a sub-agent is below its parent's folder."""
        folder = path.parent
        if path.name not in {_WIRE, _CONTEXT}:
            return Session(self.agent, path.stem)
        session = folder.parent.parent if folder.parent.name == _SUBAGENTS else folder
        cwd = session_folder(session / "state.json") or _registered_folder(session.parent)
        if session is folder:
            return Session(self.agent, folder.name, cwd=cwd)
        return Session(self.agent, f"{session.name}-{folder.name}", SessionKind.SUBAGENT, session.name, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        message = mapping(record.get("message"))
        event = "timestamp" in record and {"type", "payload"} <= message.keys()
        return event or string(record.get("role")) in _ROLES

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name in {_WIRE, _CONTEXT}


def _registered_folder(stored: Path) -> str:
    """Return the working folder of the sessions in a folder whose name ends with the MD5 digest of the working folder.

    The file `kimi.json` lists the working folders. The result is empty if it does not list the folder.
    """
    registered = mappings(json_file(stored.parent.parent / _REGISTRY).get("work_dirs"))
    digest = stored.name.rpartition("_")[2]
    folders = (string(each.get("path")) for each in registered)
    return next((each for each in folders if md5(each.encode(), usedforsecurity=False).hexdigest() == digest), "")


FORMAT: TranscriptFormat = KimiCli()
