"""Support for Kiro: the program `kiro-cli` and the IDE.

Kiro stores sessions as JSON lines in `~/.kiro/sessions`. Earlier versions of the program store conversations in a
database.

- Supported: prompts, replies, reasoning, tool calls with results, summaries, sub-agents, titles, models, times.
- Not supported: sessions of the IDE before version 1.0, which Kiro converts; pictures and documents; requests for
  approval; the share of the context that is used.
- Tested with: fixtures of three other readers, of which one was recorded with version 2.12 of the program.
- Test data: `examples/kiro.jsonl`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Turn
from ...core.errors import SourceUnreadable
from ..lines import Line, Record, clean, decode
from .container_formats import ContainedFormat, message_of
from .containers import (
    ForeignDatabase,
    Value,
    as_bytes,
    as_text,
    file_name,
    fingerprint,
    header_of,
    message_line,
)
from .json_values import first_string, instant, joined_text, json_file, listing, mapping, mappings, string
from .record_reader import RecordReader, data_home
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    is_unique,
    record_id,
    unknown_type,
)

# ruff: noqa: S608 - statements contain only fixed names, and values are bound

_DATABASE, _MESSAGES, _PROGRAM = "data.sqlite3", "messages.jsonl", "cli"
_BOOKKEEPING = {
    *("interaction_resolved", "pending_interaction", "session_event", "session_metadata", "tombstone", "turn_end"),
    *("turn_start", "usage_summary"),
}
_EXIT = re.compile(r"(?:exit status: )?(-?\d+)")


class KiroReader(RecordReader):
    """Reader of one session: of the program's messages, of events, or of the turns in a database."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header_facts(record, line, {Fact.CWD: ("folder",)})
        if "payload" in record:
            return self._event(record, line)
        if "message" in record:
            return self._turn(message_of(record), line) or SkipReason.EMPTY
        data = mapping(record.get("data"))
        own_id = string(data.get("message_id"))
        at = instant(mapping(data.get("meta")).get("timestamp"))
        stamp = RecordStamp(line.number, at, own_id if is_unique(own_id) else "")
        blocks = [(string(block.get("kind")), block.get("data")) for block in mappings(data.get("content"))]
        match string(record.get("kind")):
            case "Prompt":
                text = "\n".join(string(value) for kind, value in blocks if kind == "text")
                return self._prompt(clean(text), stamp) if clean(text) else SkipReason.EMPTY
            case "AssistantMessage":
                return [turn for kind, value in blocks for turn in self._block(kind, value, stamp)] or SkipReason.EMPTY
            case "ToolResults":
                results = [mapping(value) for kind, value in blocks if kind == "toolResult"]
                return [self._result(each, "toolUseId", stamp) for each in results] or SkipReason.EMPTY
            case "Compaction" | "Summary":
                return self._compacted(first_string(data, "summary", "text"), stamp)
            case kind:
                return unknown_type(kind)

    # Messages of the program.

    def _block(self, kind: str, value: object, stamp: RecordStamp) -> list[Turn]:
        about, group = mapping(value), stamp.record or f"line-{stamp.line}"
        if kind == "toolUse":
            call, tool = string(about.get("toolUseId")), string(about.get("name"))
            return [self._calls.call(stamp, call, tool, about.get("input"), group=group)]
        if kind == "thinking":
            return stamp.reply(Kind.THINKING, string(about.get("text")), group)
        return stamp.reply(Kind.PROSE, string(value), group)

    def _result(self, result: Record, field: str, stamp: RecordStamp) -> Turn:
        text, failed = _result_of(result.get("content"))
        failed = failed or string(result.get("status")).lower() == "error"
        return self._calls.result(stamp, string(result.get(field)), text, failed=failed)

    # Turns in a database.

    def _turn(self, turn: Record, line: Line) -> list[Turn | Note]:
        user, about = mapping(turn.get("user")), mapping(turn.get("request_metadata"))
        # A turn without a time can be equal to one of another session.
        stamp = RecordStamp(
            line.number, instant(user.get("timestamp")) or instant(about.get("request_start_timestamp_ms"))
        )
        content, events = mapping(user.get("content")), list[Turn | Note]()
        for name in ("ToolUseResults", "CancelledToolUses"):
            results = mappings(mapping(content.get(name)).get("tool_use_results"))
            events += [self._result(each, "tool_use_id", stamp) for each in results]
        asked = [string(mapping(content.get(name)).get("prompt")) for name in ("Prompt", "CancelledToolUses")]
        if prompt := clean("\n".join(filter(None, asked))):
            events += self._prompt(prompt, stamp)
        stamp = RecordStamp(line.number, instant(about.get("stream_end_timestamp_ms")) or stamp.at)
        for answer in map(mapping, mapping(turn.get("assistant")).values()):
            group = string(answer.get("message_id")) or f"line-{line.number}"
            events += stamp.reply(Kind.PROSE, string(answer.get("content")), group)
            for call in mappings(answer.get("tool_uses")):
                name, tool = string(call.get("id")), string(call.get("name"))
                events.append(self._calls.call(stamp, name, tool, call.get("args"), group=group))
        return [*events, *self._facts.note(line.number, Fact.MODEL, about.get("model_id"))]

    # Events.

    def _event(self, record: Record, line: Line) -> RecordEvents:
        event = mapping(record["payload"])
        stamp = RecordStamp(
            line.number, instant(record.get("timestamp")), record_id(string(record.get("id")), line.data)
        )
        text, kind = clean(string(event.get("content"))), string(event.get("type"))
        match kind:
            case "user":
                names = [f"[{each}]" for name in ("images", "documents") for each in _names(event.get(name))]
                return self._prompt("\n".join(filter(None, [text, *names])), stamp) or SkipReason.EMPTY
            case "assistant":
                return self._said(event, text, stamp) or SkipReason.EMPTY
            case "tool_call":
                call, tool = string(event.get("toolCallId")), string(event.get("toolName"))
                return [self._calls.call(stamp, call, tool, event.get("args"), group=string(event.get("executionId")))]
            case "tool_result":
                failed = event.get("success") is False
                return [self._calls.result(stamp, string(event.get("toolCallId")), text, failed=failed)]
            case "sub_agent_start":
                child, tool = string(event.get("subSessionId")), string(event.get("subAgentName"))
                started = self._calls.call(stamp, child, tool or "sub-agent", {"prompt": event.get("prompt")})
                return [started, *([Note(line.number, Fact.SUBAGENT, child, about=child)] if child else [])]
            case "sub_agent_complete":
                text = first_string(event, "response", "errorMessage")
                failed = bool(string(event.get("errorMessage")))
                return [self._calls.result(stamp, string(event.get("subSessionId")), text, failed=failed)]
            case "session_metadata" if event.get("key") == "displayError":
                shown = event.get("value")
                notice = string(shown) or first_string(mapping(shown), "message", "text")
                return self._injected(notice, stamp, failed=True) or SkipReason.BOOKKEEPING
            case "session_start":
                return SkipReason.CONTEXT
            case _:
                return SkipReason.BOOKKEEPING if kind in _BOOKKEEPING else unknown_type(kind)

    def _said(self, event: Record, text: str, stamp: RecordStamp) -> list[Turn]:
        operation, group = string(event.get("operationType")), string(event.get("executionId")) or stamp.record
        if operation == "Summary":
            return self._compacted(text, stamp)
        is_thought = operation == "Reasoning" or (not operation and "reasoningSignature" in event)
        return stamp.reply(Kind.THINKING if is_thought else Kind.PROSE, text, group)


def _names(files: object) -> list[str]:
    return [clean(first_string(file, "name", "path", "fileName")) or "file" for file in mappings(files)]


def _result_of(content: object) -> tuple[str, bool]:
    """Return the text of a result, and whether a command failed. The names of the parts differ between versions."""
    texts, failed = list[str](), False
    for part in mappings(content):
        value = next((part[name] for name in ("data", "Text", "Json", "text", "json") if name in part), None)
        about = mapping(value)
        status = _EXIT.fullmatch(string(about.get("exit_status")))
        failed = failed or (status is not None and status[1] != "0")
        shown = [string(about.get(name)) for name in ("stdout", "stderr")]
        texts += [string(value) or joined_text(about.get("content"), _text), *shown]
    return "\n".join(filter(None, texts)), failed


def _text(part: Record) -> str:
    return first_string(part, "text", "data")


class Kiro(ContainedFormat):
    """Sessions in `~/.kiro/sessions`, and conversations in the database of `kiro-cli`."""

    agent = "kiro"
    reader_class = KiroReader
    home_folder, root_folders = ".kiro", ("sessions",)
    suffixes, other_folders = (".jsonl",), frozenset({"snapshots"})
    folder_fields = ("folder",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the data folders of the program on Linux and macOS."""
        shared = data_home()
        folders = (shared / "kiro-cli", Path.home() / "Library/Application Support/kiro-cli")
        return [(folder, _DATABASE) for folder in folders]

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, described by the file beside its messages or by the header of its conversation."""
        if header := header_of(head):
            session = super().identify(path, head)
            session.started, session.ended = (instant(header.get(name)) for name in ("created_at", "updated_at"))
            return session
        is_ide = path.name == _MESSAGES
        about = json_file(path.with_name("session.json") if is_ide else path.with_suffix(".json"))
        folder = next(map(string, listing(about.get("workspacePaths"))), "") or string(about.get("cwd"))
        parent, title = first_string(about, "parentSessionId", "parent_session_id"), clean(string(about.get("title")))
        is_subagent = bool(parent) or about.get("session_created_reason") == "subagent"
        started, ended = (first_string(about, *names) for names in _TIMES)
        model = string(about.get("modelId"))
        return Session(
            self.agent,
            first_string(about, "session_id", "id") or (path.parent.name if is_ide else path.stem),
            SessionKind.SUBAGENT if is_subagent else SessionKind.MAIN,
            parent,
            cwd=folder,
            title=title,
            title_rank=4 if title else -1,
            models=[model] if model else [],
            started=instant(started),
            ended=instant(ended),
        )

    def is_container(self, path: Path) -> bool:
        """Return whether a file is the database of the program. A temporarily unreadable database counts too."""
        if path.name != _DATABASE or not path.is_file():
            return False
        try:
            return bool(_table(ForeignDatabase(path)))
        except SourceUnreadable:
            return True

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every conversation. Raises `SourceUnreadable`."""
        database = ForeignDatabase(path)
        table = _table(database)
        names = [name for name in _COLUMNS if name in database.columns(table)]
        query = f"SELECT rowid, octet_length(value), {', '.join(map(as_bytes, names))} FROM {table} ORDER BY rowid"
        for row, size, *values in database.rows(query) if table else ():
            about = dict(
                zip(names, [as_text(each) if isinstance(each, bytes) else each for each in values], strict=True)
            )
            folder = as_text(about.get("key"))
            session_id = as_text(about.get("conversation_id")) or f"{fingerprint(folder):016x}"
            header = {"id": session_id, "folder": folder, **{name: about.get(name) for name in _CHANGES}}
            name, at = file_name(session_id), instant(about.get("updated_at")) or 0
            lines = partial(_conversation_lines, database, table, row, header)
            yield ContainedSession(path / name, f"kiro-cli/{name}", fingerprint(header, size), at, lines)

    def unknown_parts(self, path: Path) -> list[str]:
        """Return a description of the tables that only newer versions have. Raises `SourceUnreadable`."""
        rows = ForeignDatabase(path).rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        newer = sorted(name for (value,) in rows if (name := as_text(value)).startswith("conversations_"))
        return [f"table {name} is not read" for name in newer if name not in _TABLES]

    def _is_from_agent(self, record: Record) -> bool:
        is_event = "type" in mapping(record.get("payload")) and {"id", "timestamp"} <= record.keys()
        is_message = record.get("version") == "v1" and {"kind", "data"} <= record.keys()
        return is_message or (is_event and "type" not in record)

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _MESSAGES or path.parent.name == _PROGRAM


_TABLES = ("conversations_v2", "conversations")
_CHANGES = ("created_at", "updated_at")
_COLUMNS = ("key", "conversation_id", *_CHANGES)
_TIMES = (("created_at", "createdAt"), ("updated_at", "lastModifiedAt"))


def _table(database: ForeignDatabase) -> str:
    """Return the table of conversations, or an empty string if there is none."""
    return next((table for table in _TABLES if {"key", "value"} <= database.columns(table)), "")


def _conversation_lines(database: ForeignDatabase, table: str, row: Value, header: Record) -> Iterator[bytes]:
    rows = database.rows(f"SELECT {as_bytes('value')} FROM {table} WHERE rowid = ?1", (row,))
    found = decode(as_text(rows[0][0]).encode()) if rows else []
    conversation = found[0] if isinstance(found, list) and found else Record()
    yield message_line(header["id"], conversation=header)
    for number, turn in enumerate(mappings(conversation.get("history"))):
        yield message_line(f"{header['id']}/{number}", message=turn)


FORMAT: ContainerFormat = Kiro()
