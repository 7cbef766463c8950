"""Support for the agent of Zed.

Zed stores each thread as one compressed JSON document in a database, `threads/threads.db`.

- Supported: prompts with the names and the text of mentions, replies, reasoning, tool calls with results, titles,
  models, token usage, sub-agents.
- Not supported: threads of external agents, which record their own sessions; pictures; drafts. Messages have no time.
- Tested with: the source code of version 1.x and fixtures of two other readers, because no real databases are public.
- Test data: `examples/zed.jsonl`.
"""

import io
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import orjson

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ...core.errors import SourceUnreadable
from ..lines import Line, Record, clean
from .container_formats import REPORT_HINT, ContainedFormat, Row, message_of
from .containers import (
    CONVERSATION_LIMIT,
    ForeignDatabase,
    as_bytes,
    as_text,
    file_name,
    fingerprint,
    header_of,
    message_line,
)
from .json_values import first_string, instant, joined_text, listing, mapping, mappings, string, total
from .record_reader import RecordReader, data_home
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    is_unique,
    unknown_type,
    usage,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# ruff: noqa: S608 - statements contain only fixed names, and values are bound

_NEEDED = {"id", "summary", "updated_at", "data_type", "data"}
_KNOWN = {*_NEEDED, "parent_id", "folder_paths", "folder_paths_order", "created_at"}
_DATA_TYPES = {"", "json", "zstd"}
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LEGACY = {"text": "Text", "thinking": "Thinking"}
"""Names of the parts of a message before version 0.3.0 of a thread, with the current names."""


class ZedReader(RecordReader):
    """Reader of one thread. Each record is a message."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        if record.get("message") == "Resume":
            return SkipReason.BOOKKEEPING
        kind, message = _current(message_of(record))
        own_id = string(message.get("id"))
        stamp = RecordStamp(line.number, self._session.started, own_id if is_unique(own_id) else "")
        match kind:
            case "User":
                events = self._user(message, stamp)
                counts = mapping(record.get("usage"))
                used = usage(own_id or f"line-{line.number}", total(counts, *_USAGE), total(counts, "output_tokens"))
                return [*events, *self._facts.note(line.number, Fact.USAGE, used)] or SkipReason.EMPTY
            case "Agent":
                return self._agent(message, stamp) or SkipReason.EMPTY
            case "System":
                return SkipReason.CONTEXT
            case _:
                return unknown_type(kind)

    def _header(self, header: Record, line: int) -> RecordEvents:
        folder = string(header.get("folder_paths")).partition("\n")[0]
        facts = {
            Fact.SESSION: header.get("id"),
            Fact.TITLE: header.get("summary"),
            Fact.CWD: folder,
            Fact.MODEL: mapping(header.get("model")).get("model"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _user(self, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        mentions = [mapping(part.get("Mention")) for part in mappings(message.get("content"))]
        names = [f"[{clean(name)}]" for mention in mentions if (name := _mentioned(mention))]
        text = "\n".join([clean(_text(message.get("content"))), *names]).strip()
        added = [string(mention.get("content")) for mention in mentions] + [string(message.get("context"))]
        events = self._prompt(text, stamp) if text else []
        return [*events, *(turn for each in added for turn in self._injected(each, stamp))]

    def _agent(self, message: Record, stamp: RecordStamp) -> list[Turn]:
        group, turns = f"line-{stamp.line}", list[Turn]()
        results = mapping(message.get("tool_results"))
        for part in mappings(message.get("content")):
            call = mapping(part.get("ToolUse"))
            turns += stamp.reply(Kind.THINKING, string(mapping(part.get("Thinking")).get("text")), group)
            turns += stamp.reply(Kind.PROSE, string(part.get("Text")), group)
            if call:
                turns += self._call(call, mapping(results.get(string(call.get("id")))), stamp, group)
        return turns

    def _call(self, call: Record, result: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        """Return a call, followed by its result if there is one."""
        name = string(call.get("id"))
        arguments = call.get("input") or call.get("raw_input")
        call_turn = self._calls.call(stamp, name, string(call.get("name")), arguments, group=group)
        if not result:
            return [call_turn]
        text = _text(result.get("content")) or string(result.get("output"))
        return [call_turn, self._calls.result(stamp, name, text, failed=result.get("is_error") is True)]


def _current(message: Record) -> tuple[str, Record]:
    """Return the kind of a message, and the message in the current format."""
    if "role" not in message:
        kind = next(iter(message), "")
        return kind, mapping(message.get(kind))
    content: list[Record] = []
    for segment in mappings(message.get("segments")):
        name = _LEGACY.get(string(segment.get("type")), "")
        content.append({name: segment if name == "Thinking" else segment.get("text")})
    content += [{"ToolUse": call} for call in mappings(message.get("tool_uses"))]
    results = {string(result.get("tool_use_id")): result for result in mappings(message.get("tool_results"))}
    kinds = {"user": "User", "assistant": "Agent", "system": "System"}
    kind = kinds.get(string(message.get("role")), f"role {string(message.get('role'))}")
    return kind, {"content": content, "tool_results": results, "context": message.get("context")}


def _text(content: object) -> str:
    return joined_text(content, lambda part: first_string(part, "Text", "text"))


def _mentioned(mention: Record) -> str:
    """Return the path, the address or the name of what the user mentioned."""
    values = [mapping(value) for value in mapping(mention.get("uri")).values()]
    return next((name for value in values if (name := first_string(value, "abs_path", "path", "url", "name"))), "")


class Zed(ContainedFormat):
    """Threads in the database of Zed."""

    agent = "zed"
    reader_class = ZedReader
    parent_fields = ("parent_id",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the data folders of Zed on Linux, as a Flatpak, and on macOS."""
        linux = Path(os.environ.get("FLATPAK_XDG_DATA_HOME") or data_home()).expanduser() / "zed"
        mac = Path.home() / "Library/Application Support/Zed"
        return [(folder / "threads", "threads.db") for folder in (linux, mac)]

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, with the times of its creation and its last change. All messages have the first."""
        session, header = super().identify(path, head), header_of(head)
        session.ended = instant(header.get("updated_at"))
        session.started = instant(header.get("created_at")) or session.ended
        return session

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database of threads. A temporarily unreadable database counts too."""
        if path.name != "threads.db" or not path.is_file():
            return False
        try:
            return ForeignDatabase(path).columns("threads") >= _NEEDED
        except SourceUnreadable:
            return True

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every thread, parents before sub-agents. Raises `SourceUnreadable`."""
        database = ForeignDatabase(path)
        columns = database.columns("threads")
        names = sorted(columns - {"data"})
        query = f"SELECT octet_length(data), {', '.join(map(as_bytes, names))} FROM threads ORDER BY updated_at"
        rows = [(size, dict(zip(names, map(as_text, values), strict=True))) for size, *values in database.rows(query)]
        for size, row in sorted(rows, key=lambda found: bool(found[1].get("parent_id"))):
            name, at = file_name(row["id"]), instant(row["updated_at"]) or 0
            lines = partial(_thread_lines, database, {key: value for key, value in row.items() if value})
            yield ContainedSession(path / name, f"threads/{name}", fingerprint(row, size), at, lines)

    def unknown_parts(self, path: Path) -> list[str]:
        """Return a description of the columns that only newer versions have. Raises `SourceUnreadable`."""
        new = sorted(ForeignDatabase(path).columns("threads") - _KNOWN)
        return [f"table threads has the unknown columns {', '.join(new)}"] if new else []


def _thread_lines(database: ForeignDatabase, row: Row) -> Iterator[bytes]:
    thread_id = str(row["id"])
    rows = database.rows("SELECT data FROM threads WHERE id = ?1", (thread_id,))
    thread = _thread(database.path, str(row.get("data_type", "")), rows[0][0] if rows else b"")
    used = mapping(thread.get("request_token_usage"))
    yield message_line(thread_id, conversation={**row, "model": thread.get("model"), "version": thread.get("version")})
    for number, message in enumerate(listing(thread.get("messages"))):
        counts = mapping(used.get(string(mapping(mapping(message).get("User")).get("id"))))
        added = {"usage": counts} if counts else {}
        yield message_line(f"{thread_id}/{number}", message=message, **added)


def _thread(path: Path, data_type: str, data: object) -> Record:
    """Return the document of a thread. Raises `SourceUnreadable`."""
    stored = data if isinstance(data, bytes) else str(data).encode()
    if data_type not in _DATA_TYPES:
        raise SourceUnreadable(path, "the data type of a thread is unknown", hint=REPORT_HINT)
    try:
        if data_type == "zstd":
            with zstd.ZstdFile(io.BytesIO(stored)) as file:
                stored = file.read(CONVERSATION_LIMIT)
        return mapping(orjson.loads(stored))
    except (zstd.ZstdError, EOFError, ValueError) as error:
        raise SourceUnreadable(path, f"a thread is damaged: {error}") from None


FORMAT: ContainerFormat = Zed()
