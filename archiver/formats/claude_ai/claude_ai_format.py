"""Exports of Claude.ai: lists of messages in `conversations.json`, usually in a zip."""

from collections.abc import Iterator

from ...files.lines import Record
from ..containers import ExportFormat, message_line
from ..json_values import mappings, string
from ..transcript_format import ContainerFormat
from .claude_ai_reader import ClaudeAiReader


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
        for place, message in enumerate(mappings(found["chat_messages"])):
            yield message_line(string(message.get("uuid")) or f"{session_id}/{place}", message=message)


FORMAT: ContainerFormat = ClaudeAi()
