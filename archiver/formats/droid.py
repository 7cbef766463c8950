"""Support for Factory Droid.

Droid stores one file of JSON lines per session in `~/.factory/sessions`.

- Supported: prompts, replies, reasoning, tool calls with results, notices to the user, compactions, titles, sub-agents.
- Not supported: token usage, which is only in `<session>.settings.json`; the list of tasks; pictures, except for their
  type and size.
- Tested with: three published sessions of July 2026, and fixtures of other readers for versions 0.43 to 0.106.
- Test data: `examples/droid.jsonl`.
"""

from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import content_blocks, instant, joined_text, json_file, mapping, media_label, string
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import (
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    record_id,
    split_program_text,
    unknown_type,
)

_SETTINGS = ".settings.json"
_UNTITLED = "New Session"
_SKIPPED = {"agent_turn_outcome", "session_end", "todo_state"}


class DroidReader(RecordReader):
    """Reader of one session."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._handlers: dict[str, RecordHandler] = {
            "session_start": self._header,
            "message": self._message,
            "compaction_state": self._compaction,
        }

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind = string(record.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            return SkipReason.BOOKKEEPING if kind in _SKIPPED else unknown_type(kind)
        own_id = record_id(string(record.get("id")), line.data)
        return handler(record, RecordStamp(line.number, instant(record.get("timestamp")), own_id))

    def _header(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        titles = (string(record.get(name)) for name in ("sessionTitle", "title"))
        facts = {
            Fact.SESSION: record.get("id"),
            Fact.CWD: record.get("cwd"),
            Fact.TITLE: next((title for title in titles if title not in {"", _UNTITLED}), ""),
        }
        return self._facts.notes(stamp.line, facts) or SkipReason.REPEATED

    def _compaction(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(record.get("summaryText"), stamp)

    def _message(self, record: Record, stamp: RecordStamp) -> RecordEvents:
        message = mapping(record.get("message"))
        blocks, role = content_blocks(message.get("content")), string(message.get("role"))
        if role == "user":
            results = [turn for block in blocks for turn in self._result(block, stamp)]
            text = clean("\n".join(filter(None, map(_text, blocks))))
            if string(message.get("visibility")) in {"user_only", "llm_only"}:
                added = "\n".join(filter(None, split_program_text(text)))
                return [*results, *self._injected(added, stamp)] or SkipReason.EMPTY
            return [*results, *(self._prompt(text, stamp) if text else [])] or SkipReason.EMPTY
        if role == "assistant":
            # Models with the interface of OpenAI record their reasoning beside the message.
            thought = string(record.get("chatCompletionReasoningContent"))
            turns = [turn for block in blocks for turn in self._block(block, stamp)]
            turns = [*stamp.reply(Kind.THINKING, thought, stamp.record), *turns]
            return [*turns, *self._facts.note(stamp.line, Fact.MODEL, message.get("modelId"))] or SkipReason.EMPTY
        return unknown_type(f"role {role}")

    def _result(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        if block.get("type") != "tool_result":
            return []
        text, failed = joined_text(block.get("content"), _text), block.get("is_error") is True
        return [self._calls.result(stamp, string(block.get("tool_use_id")), text, failed=failed)]

    def _block(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        if block.get("type") == "tool_use":
            call, tool = string(block.get("id")), string(block.get("name"))
            return [self._calls.call(stamp, call, tool, block.get("input"), group=stamp.record)]
        if block.get("type") == "thinking":
            return stamp.reply(Kind.THINKING, string(block.get("thinking")), stamp.record)
        return stamp.reply(Kind.PROSE, _text(block), stamp.record)


def _text(block: Record) -> str:
    source = mapping(block.get("source"))
    if string(block.get("type")) in {"image", "document"}:
        return media_label(string(source.get("media_type")) or "image", source.get("data"))
    return string(block.get("text"))


class Droid(FolderFormat):
    """Sessions in `~/.factory/sessions/<folder>/<session>.jsonl`."""

    agent = "droid"
    reader_class = DroidReader
    home_folder, root_folders = ".factory", ("sessions",)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by its header or, without a header, by the file name.

        The header of a sub-agent names the session that started it. The model is in a file beside the transcript.
        """
        header = next(filter(self._is_from_agent, head_records(head)), Record())
        parent = string(header.get("callingSessionId"))
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        model = string(json_file(path.with_suffix(_SETTINGS)).get("model"))
        session_id = string(header.get("id")) or path.stem
        return Session(self.agent, session_id, kind, parent, models=[model] if model else [])

    def _is_from_agent(self, record: Record) -> bool:
        is_header = record.get("type") == "session_start" and isinstance(record.get("id"), str)
        return is_header and not {"owner", "sessionTitle", "title"}.isdisjoint(record)


FORMAT: TranscriptFormat = Droid()
