"""Support for Goose.

Goose stores sessions in the database `sessions.db` since version 1.10. Before, each session was a file with JSON lines,
which the newer versions import once.

- Supported: prompts, replies, thinking, tool calls with results, notices, titles, working folders, models, token usage
  of versions with the table `usage_ledger`, sub-agents.
- Not supported: recipes, state of extensions, redacted thinking, files of older versions beside a database.
- Tested with: descriptions and fixtures of other readers.
- Test data: `examples/goose.jsonl`.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ...core.conversation import Fact, Kind, Session, Turn
from ..lines import Line, Record, clean, head_records
from .container_formats import DatabaseFormat, Table
from .containers import header_of
from .json_values import content_blocks, first_string, instant, joined_text, mapping, media_label, string, total
from .record_reader import RecordReader, data_home
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type, usage

_NOTICES = {"contextLengthExceeded", "summarizationRequested", "systemNotification", "conversationCompacted", "error"}
_CALLS, _RESULTS = {"toolRequest", "frontendToolRequest"}, {"toolResponse", "frontendToolResponse"}


class GooseReader(RecordReader):
    """Reader of one session."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        if "usage_ledger" in record:
            return self._usage(mapping(record["usage_ledger"]), line.number)
        message = mapping(record.get("message")) or record
        if "role" not in message:
            return self._header(message, line.number) if "working_dir" in message else unknown_type("record")
        at = instant(message.get("created_timestamp") or message.get("created")) or instant(message.get("timestamp"))
        stamp = RecordStamp(line.number, at, record_id("", line.data))
        blocks = content_blocks(message.get("content_json", message.get("content")))
        metadata = mapping(message.get("metadata_json")) or mapping(message.get("metadata"))
        hidden = metadata.get("userVisible") is False
        match string(message.get("role")).lower():
            case "user":
                return self._user(blocks, stamp, hidden=hidden) or SkipReason.EMPTY
            case "assistant":
                return [turn for block in blocks for turn in self._block(block, stamp)] or SkipReason.EMPTY
            case role:
                return unknown_type(f"role {role}")

    def _header(self, header: Record, line: int) -> RecordEvents:
        model = mapping(header.get("model_config_json"))
        facts = {
            Fact.SESSION: header.get("id"),
            Fact.PARENT: header.get("parent_session_id"),
            Fact.CWD: header.get("working_dir"),
            Fact.TITLE: first_string(header, "name", "description"),
            Fact.MODEL: first_string(model, "model_name", "modelName", "model"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _usage(self, row: Record, line: int) -> RecordEvents:
        tokens_in = total(row, "input_tokens", "cache_read_tokens", "cache_write_tokens")
        used = usage(f"{row.get('session_id')}/{row.get('id')}", tokens_in, total(row, "output_tokens"))
        facts = {Fact.MODEL: row.get("model"), Fact.USAGE: used}
        return self._facts.notes(line, facts) or SkipReason.BOOKKEEPING

    def _user(self, blocks: Sequence[Record], stamp: RecordStamp, *, hidden: bool) -> RecordEvents:
        results = [
            turn for block in blocks if string(block.get("type")) in _RESULTS for turn in self._block(block, stamp)
        ]
        text = clean(joined_text([block for block in blocks if string(block.get("type")) not in _RESULTS], _block_text))
        if hidden or not text:
            return [*results, *self._injected(text, stamp)]
        return [*results, *self._prompt(text, stamp)]

    def _block(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        kind, call = string(block.get("type")), string(block.get("id"))
        if kind in _CALLS:
            request = mapping(mapping(block.get("toolCall")).get("value"))
            return [self._calls.call(stamp, call, string(request.get("name")), request.get("arguments"))]
        if kind in _RESULTS:
            result = mapping(block.get("toolResult"))
            value = result.get("value")
            content = mapping(value).get("content", value)
            text = joined_text(content, _block_text) or string(result.get("error"))
            failed = result.get("status") == "error" or mapping(value).get("isError") is True
            return [self._calls.result(stamp, call, text, failed=failed)]
        if kind in _NOTICES:
            return self._injected(first_string(block, "msg", "message", "text"), stamp)
        if kind == "thinking":
            return stamp.reply(Kind.THINKING, string(block.get("thinking")))
        return stamp.reply(Kind.PROSE, _block_text(block))


def _block_text(block: Record) -> str:
    if block.get("type") == "image":
        return media_label(string(block.get("mimeType")) or "picture", block.get("data"))
    if block.get("type") == "resource":
        return string(mapping(block.get("resource")).get("text"))
    return string(block.get("text"))


class Goose(DatabaseFormat):
    """Sessions in `~/.local/share/goose/sessions`: a database, or one file per session in older versions."""

    agent = "goose"
    reader_class = GooseReader
    suffixes = (".jsonl",)
    database_name = "sessions.db"
    parent_fields, folder_fields = ("parent_session_id",), ("working_dir",)
    session_table = Table(
        "sessions",
        frozenset({"id", "working_dir"}),
        frozenset(
            {
                *("name", "description", "user_set_name", "session_type", "created_at", "extension_data"),
                *("schedule_id", "recipe_json", "user_recipe_values_json", "provider_name", "model_config_json"),
                *("tenant_id", "user_id", "project_id", "parent_session_id", "thread_id", "goose_mode", "archived_at"),
            }
        ),
        json=frozenset({"model_config_json"}),
        changing=frozenset(
            {
                *("updated_at", "total_tokens", "input_tokens", "output_tokens", "accumulated_total_tokens"),
                *("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cache_read_tokens"),
                *("accumulated_cache_write_tokens", "accumulated_cost", "cache_read_tokens", "cache_write_tokens"),
            }
        ),
    )
    message_table = Table(
        "messages",
        frozenset({"id", "session_id", "role", "content_json"}),
        frozenset({"message_id", "created_timestamp", "timestamp", "tokens", "metadata_json"}),
        session="session_id",
        order="id",
        json=frozenset({"content_json", "metadata_json"}),
    )
    other_tables = (
        Table(
            "usage_ledger",
            frozenset({"id", "session_id", "input_tokens", "output_tokens"}),
            frozenset(
                {
                    *("created_timestamp", "model", "total_tokens", "cache_read_tokens", "cache_write_tokens", "cost"),
                    *("cost_source", "is_compaction", "provider"),
                }
            ),
            session="session_id",
            order="id",
        ),
    )

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folder of the database."""
        return [(_sessions_folder(), self.database_name)]

    def roots(self) -> list[Path]:
        """Return the folder of the older files, unless a database that imported them is in it."""
        folder = _sessions_folder()
        return [folder] if folder.is_dir() and not (folder / self.database_name).exists() else []

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or by the file name. Older headers may have no ID."""
        if header_of(head):
            return super().identify(path, head)
        header = next((record for record in head_records(head) if "working_dir" in record), Record())
        cwd = string(header.get("working_dir"))
        return replace(super().identify(path, head), native_id=string(header.get("id")) or path.stem, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        is_header = "working_dir" in record and not {"message_count", "description"}.isdisjoint(record)
        return is_header and "role" not in record


def _sessions_folder() -> Path:
    root = os.environ.get("GOOSE_PATH_ROOT")
    data = data_home() / "goose"
    return (Path(root).expanduser() / "data" if root else data) / "sessions"


FORMAT: ContainerFormat = Goose()
