"""Support for pi.

pi stores sessions as JSON lines in `~/.pi/agent/sessions`. Every entry contains the ID of its parent.

- Supported: prompts, skills, replies, thinking, tool calls with results, shell commands of the user, compactions,
  summaries of branches, titles, token usage, rewinds, forks.
- Not supported: labels, changes of the thinking level, custom entries of extensions.
- Tested with: sessions of November 2025 to May 2026.
- Test data: `examples/pi.jsonl`, `badlogic+pi-mono/.../large-session.jsonl`, and `agents/pi/small.jsonl` of
  agent-sessions.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from ...core.conversation import Fact, Kind, Session, Speaker, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import EntryTree, instant, joined_text, mapping, mappings, media_label, string, total
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type, usage

_SKIPPED_TYPES = {"custom", "label", "thinking_level_change"}
_SKILL = re.compile(r'<skill name="([^"]+)" location="[^"]*">\n.*?\n</skill>(?:\n\n(.*))?', re.DOTALL)


class PiReader(RecordReader):
    """Reader of one session. Entries form a tree. The branch with the last entry is the active branch."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree = EntryTree()
        self._handlers: dict[str, RecordHandler] = {
            "session": self._header,
            "session_info": self._fact_handler({Fact.TITLE: "name"}),
            "model_change": self._fact_handler({Fact.MODEL: "modelId"}),
            "compaction": self._compaction,
            "branch_summary": self._branch_summary,
            "custom_message": self._custom,
            "message/user": self._user,
            "message/assistant": self._assistant,
            "message/toolResult": self._result,
            "message/bashExecution": self._shell,
            "message/custom": self._custom,
            "message/hookMessage": self._custom,
            "message/compactionSummary": self._compaction,
            "message/branchSummary": self._branch_summary,
        }

    def _finish(self) -> None:
        self._released += self._tree.abandoned(partial=self._partial)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind, message = string(record.get("type")), mapping(record.get("message"))
        entry, written = string(record.get("id")), record.get("timestamp")
        if kind != "session":
            self._tree.add(entry, string(record.get("parentId")), partial=self._partial)
        key = f"message/{message.get('role')}" if kind == "message" else kind
        handler = self._handlers.get(key)
        if handler is None:
            return SkipReason.BOOKKEEPING if kind in _SKIPPED_TYPES else unknown_type(key)
        # The ID of an entry is unique only within its file, because a fork copies the ID and the time of an entry.
        own_id = f"{entry}@{written}" if entry and written else record_id("", line.data)
        stamp = RecordStamp(line.number, instant(written), own_id)
        events = handler(message if kind == "message" else record, stamp)
        if kind != "session" and not isinstance(events, str):
            self._tree.mark_events(entry, line.number)
        return events

    def _header(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        native_id = string(record.get("id"))
        if native_id != self._session.native_id:
            return SkipReason.COPIED_HEADER
        origin = PurePath(string(record.get("parentSession")).replace("\\", "/")).stem.rpartition("_")[2]
        facts = {Fact.SESSION: native_id, Fact.PARENT: origin, Fact.CWD: record.get("cwd")}
        return self._facts.notes(stamp.line, facts | {Fact.MODEL: record.get("modelId")}) or SkipReason.REPEATED

    def _compaction(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(record.get("summary"), stamp)

    def _branch_summary(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(string(record.get("summary")))
        return [stamp.turn(Speaker.HOST, Kind.RECAP, text)] if text else SkipReason.EMPTY

    def _user(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(entry_text(message.get("content")))
        skill = _SKILL.fullmatch(text)
        asked = f"/skill:{skill[1]} {skill[2] or ''}".strip() if skill else text
        return self._prompt(asked, stamp) if asked else SkipReason.EMPTY

    def _custom(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        return self._injected(entry_text(message.get("content")), stamp) or SkipReason.EMPTY

    def _assistant(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        group, counts = string(message.get("responseId")) or stamp.record, mapping(message.get("usage"))
        used = usage(group, total(counts, "input", "cacheRead", "cacheWrite"), total(counts, "output"))
        return [
            *(turn for block in mappings(message.get("content")) for turn in self._block(block, stamp, group)),
            *self._injected(string(message.get("errorMessage")), stamp, failed=True),
            *self._facts.notes(stamp.line, {Fact.MODEL: message.get("model"), Fact.USAGE: used}),
        ] or SkipReason.EMPTY

    def _block(self, block: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        kind = block.get("type")
        if kind == "toolCall":
            call, tool = string(block.get("id")), string(block.get("name"))
            return [self._calls.call(stamp, call, tool, block.get("arguments"), group=group)]
        if kind == "thinking":
            return stamp.reply(Kind.THINKING, string(block.get("thinking")), group)
        return stamp.reply(Kind.PROSE, _block_text(block), group)

    def _result(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        call, tool = string(message.get("toolCallId")), string(message.get("toolName"))
        failed = message.get("isError") is True
        return [self._calls.result(stamp, call, entry_text(message.get("content")), failed=failed, tool=tool)]

    def _shell(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        command, output = clean(string(message.get("command"))), string(message.get("output"))
        failed = message.get("exitCode") not in (None, 0)
        return self._user_command(command, output, stamp, tool="bash", failed=failed)


def entry_text(content: object) -> str:
    """Return the text of an entry, with labels in place of pictures."""
    return joined_text(content, _block_text)


def _block_text(block: Record) -> str:
    if block.get("type") == "image":
        return media_label(string(block.get("mimeType")) or "picture", block.get("data"))
    return string(block.get("text"))


class Pi(FolderFormat):
    """Sessions in `~/.pi/agent/sessions/<project>/<time>_<session>.jsonl`."""

    agent = "pi"
    reader_class = PiReader
    home_variable, home_folder, root_folders = "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions",)
    name_pattern = re.compile(r"\d{4}-\d\d-\d\dT[^_]+_[^_]+\.jsonl")

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name."""
        header = next(filter(is_session_header, head_records(head)), Record())
        return Session(self.agent, string(header.get("id")) or path.stem.rpartition("_")[2])

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether a file with these records is a session of pi. OpenClaw is based on pi."""
        return super().recognises(records) and not any(map(is_openclaw, records))

    def _is_from_agent(self, record: Record) -> bool:
        return is_session_header(record)


def is_session_header(record: Record) -> bool:
    """Return whether a record is the header of a session."""
    return record.get("type") == "session" and isinstance(record.get("id"), str) and "cwd" in record


def is_openclaw(record: Record) -> bool:
    """Return whether only OpenClaw writes a record. Its files have the entries of pi, and some of its own."""
    return string(record.get("customType")).startswith(("openclaw", "model-snapshot"))


FORMAT: TranscriptFormat = Pi()
