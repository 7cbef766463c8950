"""Support for iFlow CLI.

iFlow CLI stores a session as JSON lines in `~/.iflow/projects/<project>/session-<id>.jsonl`. While a reply arrives,
each record repeats the tool calls that are running, so that a call is on several lines.

- Supported: prompts, replies, thinking, tool calls with results, compactions, project folders, branches of Git.
- Not supported: token usage, which iFlow records as 0; pictures, except for their type.
- Tested with: a real session of version 1.0.0. The vendor ended iFlow CLI in April 2026.
- Test data: `examples/iflow.jsonl`.
"""

import re
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import content_blocks, first_string, instant, joined_text, mapping, media_label, string
from .record_reader import FolderFormat, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type

_ID = "session-"
_ENVELOPES = ("[Request interrupted", "This session is being continued")


class IflowReader(RecordReader):
    """Reader of one session."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._called = set[str]()
        """IDs of the calls in the current exchange."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind, message = string(record.get("type")), mapping(record.get("message"))
        if kind not in {"user", "assistant"}:
            return unknown_type(kind)
        own_id = record_id(string(record.get("uuid")), line.data)
        stamp = RecordStamp(line.number, instant(record.get("timestamp")), own_id)
        facts = {
            Fact.SESSION: record.get("sessionId"),
            Fact.CWD: record.get("cwd"),
            Fact.BRANCH: record.get("gitBranch"),
            Fact.VERSION: record.get("version"),
            Fact.MODEL: message.get("model"),
        }
        notes = self._facts.notes(line.number, facts)
        blocks = content_blocks(message.get("content"))
        if kind == "user":
            events = self._user(record, blocks, stamp)
        else:
            events = [turn for block in blocks for turn in self._block(block, stamp, string(message.get("id")))]
        if isinstance(events, str):
            return notes or events
        repeated = any(block.get("type") == "tool_use" for block in blocks)
        return [*events, *notes] or (SkipReason.REPEATED if repeated else SkipReason.EMPTY)

    def _user(self, record: Record, blocks: list[Record], stamp: RecordStamp) -> RecordEvents:
        text = clean(joined_text(blocks, _block_text))
        if record.get("isCompactSummary") is True:
            return self._compacted(text, stamp)
        results = [self._result(block, stamp) for block in blocks if block.get("type") == "tool_result"]
        if record.get("isMeta") is True or text.startswith(_ENVELOPES):
            return [*results, *self._injected(text, stamp)]
        if text:
            self._called.clear()
        return [*results, *(self._prompt(text, stamp) if text else [])]

    def _block(self, block: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        if block.get("type") == "tool_use":
            call = string(block.get("id"))
            if call in self._called:
                return []
            self._called.add(call)
            return [self._calls.call(stamp, call, string(block.get("name")), block.get("input"), group=group)]
        if block.get("type") == "thinking":
            return stamp.reply(Kind.THINKING, string(block.get("thinking")), group)
        return stamp.reply(Kind.PROSE, _block_text(block), group)

    def _result(self, block: Record, stamp: RecordStamp) -> Turn:
        content = mapping(block.get("content"))
        response = mapping(mapping(content.get("responseParts")).get("functionResponse"))
        answer = mapping(response.get("response"))
        text = first_string(answer, "output", "error") or string(content.get("resultDisplay"))
        text = text or joined_text(block.get("content"), _block_text)
        failed = block.get("is_error") is True or "error" in answer
        return self._calls.result(
            stamp, string(block.get("tool_use_id")), text, failed=failed, tool=string(response.get("name"))
        )


def _block_text(block: Record) -> str:
    if block.get("type") == "image":
        source = mapping(block.get("source"))
        return media_label(string(source.get("media_type")) or "picture", source.get("data"))
    return string(block.get("text"))


class Iflow(FolderFormat):
    """Sessions in `~/.iflow/projects/<project>/session-<id>.jsonl`."""

    agent = "iflow"
    reader_class = IflowReader
    home_folder, root_folders = ".iflow", ("projects",)
    name_pattern = re.compile(rf"{_ID}[0-9a-f-]{{36}}\.jsonl")

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of the first record, or else the file name. A sub-agent's records name its parent."""
        record = next(filter(self._is_from_agent, head_records(head)), Record())
        recorded, cwd = string(record.get("sessionId")), string(record.get("cwd"))
        if record.get("isSidechain") is True and recorded != path.stem:
            return Session(self.agent, path.stem, SessionKind.SUBAGENT, recorded, cwd=cwd)
        return Session(self.agent, recorded or path.stem, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        is_message = "parentUuid" in record and "content" in mapping(record.get("message"))
        return is_message and string(record.get("sessionId")).startswith(_ID)


FORMAT: TranscriptFormat = Iflow()
