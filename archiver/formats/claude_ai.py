"""Support for exports of Claude.ai.

An export is a zip file with `conversations.json`.

- Supported: prompts with the names and the text of attachments, replies, thinking, tool calls with results, titles,
  branches of edited prompts and regenerated replies.
- Not supported: files (only their names are recorded), projects and memories of the account.
- Tested with: synthetic exports that another reader uses as fixtures.
- Test data: `examples/claude-ai.jsonl`, and `claude-ai/*.json` and `claude-ai-export.json` of the project polylogue.
"""

from collections.abc import Iterator

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ..lines import Line, Record, clean
from .containers import ExportFormat, message_line
from .json_values import EntryTree, first_string, instant, joined_text, mapping, mappings, string
from .record_reader import RecordReader
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type


class ClaudeAiReader(RecordReader):
    """Reader of one conversation. Each record contains one message.

    Messages form a tree. An edited prompt or a regenerated answer starts a branch. Older exports contain no parents.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree, self._previous = EntryTree(), ""

    def _finish(self) -> None:
        self._released += self._tree.abandoned(partial=self._partial)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            facts = {Fact.SESSION: ("uuid",), Fact.TITLE: ("name", "title"), Fact.MODEL: ("model",)}
            return self._header_facts(record, line, facts)
        message, entry = mapping(record.get("message")), string(record.get("id"))
        stamp = RecordStamp(line.number, instant(message.get("created_at")), record_id("", line.data))
        parent = string(message.get("parent_message_uuid"))
        if not (self._previous or self._partial):
            self._tree.add(parent, "", partial=False)  # The parent of the first message is the root, which has no line.
        self._tree.add(entry, parent or self._previous, partial=self._partial)
        self._previous = entry
        events = self._message(message, stamp)
        if not isinstance(events, str):
            self._tree.mark_events(entry, line.number)
        return events

    def _message(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        match string(message.get("sender")):
            case "human":
                return self._user(message, stamp) or SkipReason.EMPTY
            case "assistant":
                return self._assistant(message, stamp) or SkipReason.EMPTY
            case sender:
                return unknown_type(f"sender {sender}")

    def _user(self, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the prompt with the names of attached files, and a separate turn with the text of each file."""
        added = [each for name in ("attachments", "files") for each in mappings(message.get(name))]
        names = dict.fromkeys(f"[file {clean(string(each.get('file_name')))}]" for each in added)
        asked = "\n".join(filter(None, [_text(message), *names]))
        self._calls.clear()
        events = self._prompt(asked, stamp) if asked else []
        for each in added:
            events += self._injected(string(each.get("extracted_content")), stamp)
        return events

    def _assistant(self, message: Record, stamp: RecordStamp) -> list[Turn]:
        turns = [turn for block in mappings(message.get("content")) for turn in self._block(block, stamp)]
        return turns or stamp.reply(Kind.PROSE, _text(message), stamp.record)

    def _block(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        kind, name = string(block.get("type")), string(block.get("name"))
        if kind == "tool_use":
            call = string(block.get("id")) or name
            return [self._calls.call(stamp, call, name, block.get("input"), group=stamp.record)]
        if kind == "tool_result":
            call, text = string(block.get("tool_use_id")) or name, joined_text(block.get("content"), _block_text)
            return [self._calls.result(stamp, call, text, failed=block.get("is_error") is True, tool=name)]
        said_as = Kind.THINKING if kind == "thinking" else Kind.PROSE
        return stamp.reply(said_as, first_string(block, "thinking", "text"), stamp.record)


def _text(message: Record) -> str:
    """Return the text of a message's content. Older exports store the text in a separate field."""
    return clean(joined_text(message.get("content"), _block_text)) or clean(string(message.get("text")))


def _block_text(block: Record) -> str:
    return string(block.get("text"))


class ClaudeAi(ExportFormat):
    """Conversations of a Claude.ai export."""

    agent = "claude-ai"
    reader_class = ClaudeAiReader
    service = "claude.ai"
    messages_field, messages_type = "chat_messages", list
    id_fields = ("uuid",)
    name_fields = ("name", "created_at")
    time_fields = ("updated_at", "created_at")

    def _messages(self, session_id: str, found: Record) -> Iterator[bytes]:
        for number, message in enumerate(mappings(found["chat_messages"])):
            yield message_line(string(message.get("uuid")) or f"{session_id}/{number}", message=message)


FORMAT: ContainerFormat = ClaudeAi()
