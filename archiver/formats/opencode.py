"""Support for OpenCode.

OpenCode stores sessions in databases in `~/.local/share/opencode`. Versions before 1.2 used separate files. Versions 2
use other tables of the same database. Tables of later versions are reported. Exports are supported too.

Versions 1 store messages in the tables `message` and `part`, and versions 2 in the table `session_message`.

- Supported: prompts, text that the program added, replies, reasoning, tool calls with results, commands of the user,
  names of attached files, compactions, errors, titles, token usage, sub-agents, forks.
- Not supported: steps, snapshots, patches, contents of attached files.
- Tested with: exports of version 1.2, files of earlier versions, and the database of version 1.18. Support for
  version 2 follows the published schema and is unconfirmed on real files.
- Test data: `examples/opencode.jsonl`, and `agents/opencode` of agent-sessions.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Speaker, Turn
from ...core.errors import PartlyRead, SourceUnreadable
from ..lines import Line, Record, clean, head_records
from . import record_reader
from .containers import (
    ForeignDatabase,
    Value,
    as_bytes,
    as_text,
    exact_json,
    file_fingerprint,
    file_name,
    fingerprint,
    message_line,
)
from .json_values import first_string, instant, joined_text, json_file, mapping, mappings, string, total
from .record_reader import FolderFormat, RecordReader, data_home
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    record_id,
    unknown_type,
    usage,
)

# ruff: noqa: S608 - statements contain only fixed names, and values are bound


_HEADER = ("parent_id", "fork_session_id", "project_id", "directory", "title", "version", "time_created")
"""Columns that describe a session. Other columns change with every message."""
_SESSION_TABLES = ("session", "session_v2")
"""Tables of sessions. A session in several tables is described by the last one."""
_MESSAGE_TABLES: dict[str, frozenset[str]] = {
    "message": frozenset({"id", "session_id", "data"}),
    "part": frozenset({"message_id", "data"}),
    "session_message": frozenset({"id", "session_id", "type", "data"}),
}
"""Tables of messages, with the columns that are needed."""
_GENERATION = re.compile(r"(?:session|message|part|session_message)_?v?\d+")
_HINT = "A newer version of Palaver may read it. Please report it."

_Columns = Mapping[str, set[str]]


def has_sessions(path: Path) -> bool:
    """Return whether a database has a table of sessions. A temporarily unreadable database counts too."""
    try:
        return any("id" in columns for name, columns in _tables(ForeignDatabase(path)).items() if "session" in name)
    except SourceUnreadable:
        return path.is_file()


def sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield every session, oldest first.

    Raises:
        SourceUnreadable: The database cannot be read.
        PartlyRead: After the last session, if the database has tables or lacks columns so that not all was read.
    """
    database = ForeignDatabase(path)
    tables = _tables(database)
    lacking = dict(_lacking(tables))
    readable = {name: columns for name, columns in tables.items() if name in _MESSAGE_TABLES and name not in lacking}
    if not {"message", "part"} <= readable.keys():  # A message of version 1 has no text without its parts.
        readable = {name: columns for name, columns in readable.items() if name == "session_message"}
    states = [_states(database, name, readable) for name in _MESSAGE_TABLES if name in readable]
    headers: dict[str, tuple[int, int, dict[str, object]]] = {}
    for name in _SESSION_TABLES:
        if "id" in tables.get(name, ()):
            headers.update(_headers(database, name, tables[name]))
    for session_id, (_, at, header) in sorted(headers.items(), key=lambda item: (item[1][0], item[0])):
        name = file_name(session_id)
        state = fingerprint(header, *(table.get(session_id) for table in states))
        lines = partial(_lines, database, session_id, header, readable)
        yield ContainedSession(path / name, f"{path.name}/{name}", state, at, lines)
    problems = [*lacking.values(), *_unsupported(database, tables, readable)]
    if problems:
        raise PartlyRead(path, "; ".join(problems), hint=_HINT)


def _tables(database: ForeignDatabase) -> dict[str, set[str]]:
    """Return the column names of every table."""
    found: dict[str, set[str]] = {}
    for table, column in database.rows(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    ):
        found.setdefault(as_text(table), set()).add(as_text(column))
    return found


def _lacking(tables: _Columns) -> Iterator[tuple[str, str]]:
    """Yield the tables that cannot be read, each with a description of what is missing."""
    if not any("id" in tables.get(name, ()) for name in _SESSION_TABLES):
        yield "session", "no table of sessions with a column id"
    stored = ("message", "part") if not tables.keys().isdisjoint({"message", "part"}) else ("session_message",)
    for name, needed in _MESSAGE_TABLES.items():
        if name not in tables and name in stored:
            yield name, f"no table {name}"
        elif name in tables and (missing := sorted(needed - tables[name])):
            yield name, f"table {name} has no column {' and '.join(missing)}"


def _unsupported(database: ForeignDatabase, tables: _Columns, readable: _Columns) -> Iterator[str]:
    """Yield a description of each table with sessions that only a newer version can read."""
    known = {
        "id": [name for name in _SESSION_TABLES if "id" in tables.get(name, ())],
        "session_id": [name for name, columns in readable.items() if "session_id" in columns],
    }
    for name, columns in tables.items():
        is_message_table = columns >= {"session_id", "data"} or _GENERATION.fullmatch(name)
        if not is_message_table or name in {*_SESSION_TABLES, *_MESSAGE_TABLES}:
            continue
        column = next((each for each in ("session_id", "id") if each in columns), "NULL")
        read = " UNION ".join(f"SELECT {column} FROM {each}" for each in known.get(column, ())) or "SELECT NULL"
        table = name.replace('"', '""')
        if database.rows(f'SELECT {column} FROM "{table}" EXCEPT {read} LIMIT 1'):
            yield f"table {name} of a newer version of OpenCode is not read"


def _headers(
    database: ForeignDatabase, table: str, columns: Collection[str]
) -> Iterator[tuple[str, tuple[int, int, dict[str, object]]]]:
    """Yield the ID of each session, with the times of its creation and last change, and its description."""
    names = ["id", *(name for name in _HEADER if name in columns)]
    times = [name if name in columns else "NULL" for name in ("time_created", "time_updated")]
    query = f"SELECT {', '.join(times)}, {', '.join(map(as_bytes, names))} FROM {table}"
    for created, changed, *values in database.rows(query):
        decoded = [as_text(value) if isinstance(value, bytes) else value for value in values]
        described: dict[str, object] = dict(zip(names, decoded, strict=True))
        yield as_text(values[0]), (instant(created) or 0, instant(changed) or 0, described)


def _states(database: ForeignDatabase, table: str, tables: _Columns) -> dict[str, tuple[Value, ...]]:
    """Return the number, the total size and the change times of each session's rows."""
    columns = tables[table]
    changed = "total(t.time_updated), max(t.time_updated)" if "time_updated" in columns else "0, 0"
    values = f"count(*), total(octet_length(t.data)), {changed}"
    session, source = "t.session_id", f"{table} t"
    if "session_id" not in columns:
        session, source = "m.session_id", f"{table} t JOIN message m ON m.id = t.message_id"
    rows = database.rows(f"SELECT {as_bytes(session)}, {values} FROM {source} GROUP BY {session}")
    return {as_text(session): tuple(values) for session, *values in rows}


def _lines(database: ForeignDatabase, session: str, header: dict[str, object], tables: _Columns) -> Iterator[bytes]:
    """Yield the lines of one session from one consistent state of the database.

    A migrated session may have its messages in the tables of both generations. Messages of the newer generation are
    used from the last message of the older generation on.
    """
    queries = [_QUERIES[name](columns) for name, columns in tables.items()]
    rows = database.rows(" UNION ALL ".join(queries), (session,)) if queries else []
    parts: dict[str, list[tuple[str, object]]] = {}
    messages: list[tuple[int, str, object]] = []
    entries: list[tuple[object, int, str, str, object]] = []
    for table, owner, item, data, at, position in rows:
        created, name, value = instant(at) or 0, as_text(item), exact_json(data)
        if table == "message":
            messages.append((created, name, value))
        elif table == "part":
            parts.setdefault(as_text(owner), []).append((name, value))
        else:
            order = position if isinstance(position, int) else created
            entries.append((order, created, name, as_text(owner), value))
    yield message_line(session, session=header)
    for created, name, value in sorted(messages, key=lambda message: message[:2]):
        listed = [{"id": part, "data": data} for part, data in sorted(parts.get(name, []), key=lambda part: part[0])]
        yield message_line(name, created=created, message=value, parts=listed)
    last, names = max((created for created, *_ in messages), default=-1), {name for _, name, _ in messages}
    for _, created, name, kind, value in sorted(entries, key=lambda entry: entry[:3]):
        if created > last and name not in names:
            yield message_line(name, created=created, type=kind, entry=value)


def _message_query(columns: Collection[str]) -> str:
    at = "time_created" if "time_created" in columns else "NULL"
    return (
        f"SELECT 'message', NULL, {as_bytes('id')}, {as_bytes('data')}, {at}, NULL FROM message WHERE session_id = ?1"
    )


def _parts(columns: Collection[str]) -> str:
    name = as_bytes("id") if "id" in columns else "printf('%020d', rowid)"
    own = "message_id IN (SELECT id FROM message WHERE session_id = ?1)"
    condition = "session_id = ?1" if "session_id" in columns else own
    return (
        f"SELECT 'part', {as_bytes('message_id')}, {name}, {as_bytes('data')}, NULL, NULL FROM part WHERE {condition}"
    )


def _entries(columns: Collection[str]) -> str:
    at, order = (name if name in columns else "NULL" for name in ("time_created", "seq"))
    values = f"{as_bytes('type')}, {as_bytes('id')}, {as_bytes('data')}, {at}, {order}"
    return f"SELECT 'session_message', {values} FROM session_message WHERE session_id = ?1"


_QUERIES = {"message": _message_query, "part": _parts, "session_message": _entries}


_PIECES = ("message", "part")


def is_session(path: Path) -> bool:
    """Return whether a file is the header of a session that is stored in several files."""
    return path.suffix == ".json" and path.parent.parent.name == "session" and path.name.startswith("ses_")


def is_piece(path: Path) -> bool:
    """Return whether a file is a session header, a message or a message part."""
    return is_session(path) or path.parent.parent.name in _PIECES or path.parent.name in _PIECES


def state(path: Path) -> int:
    """Return a fingerprint that changes whenever the header or a message changes. Raises `OSError`."""
    return fingerprint(file_fingerprint(path), *((each.name, file_fingerprint(each)) for each in _message_files(path)))


def session(path: Path) -> ContainedSession:
    """Return the session with this header file. Raises `SourceUnreadable`."""
    try:
        at = instant(path.stat().st_mtime_ns // 1_000_000) or 0
        name = file_name(path.stem)
        return ContainedSession(path / name, f"{path.parent.name}/{name}", state(path), at, lambda: _file_lines(path))
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _file_lines(path: Path) -> Iterator[bytes]:
    try:
        yield message_line(path.stem, session=exact_json(path.read_bytes()))
        for message in _message_files(path):
            files = _files_of(message, path.parents[2] / "part")
            parts = [{"id": part.stem, "data": exact_json(part.read_bytes())} for part in files]
            yield message_line(message.stem, message=exact_json(message.read_bytes()), parts=parts)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _message_files(path: Path) -> list[Path]:
    return _files_of(path, path.parents[2] / "message")


def _files_of(path: Path, folder: Path) -> list[Path]:
    """Return the files of a session or a message, whose folder is named by the file name or by the ID in the file."""
    return _files(folder / path.stem) or _files(folder / record_reader.safe(string(json_file(path).get("id"))))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []


def converted(kind: str, entry: Record) -> tuple[Record, list[Record]] | None:
    """Return a message of this type as its description and its parts. Return None for other types."""
    if kind == "user":
        files = [
            {"type": "file", "filename": first_string(each, "name", "uri")} for each in mappings(entry.get("files"))
        ]
        return {"role": "user", **entry}, [_entry_text(entry), *files]
    if kind in {"synthetic", "skill"}:
        return {"role": "user", **entry}, [{**_entry_text(entry), "synthetic": True}]
    if kind == "assistant":
        model = string(mapping(entry.get("model")).get("id"))
        parts = [_tool(each) if each.get("type") == "tool" else each for each in mappings(entry.get("content"))]
        return {**entry, "role": "assistant", "modelID": model, "error": _error(entry.get("error"))}, parts
    return None


def failure(error: object) -> str:
    """Return the message of an error, or else its kind."""
    return first_string(mapping(error), "message", "name", "type")


def output_of(content: object) -> str:
    """Return the text of a tool's or a command's output."""
    return joined_text(content, lambda part: first_string(part, "text", "output", "name", "uri"))


def _entry_text(entry: Record) -> Record:
    return {"type": "text", "text": entry.get("text")}


def _error(error: object) -> Record:
    message = failure(error)
    return {"name": message, "data": {"message": message}} if message else {}


def _tool(part: Record) -> Record:
    state = mapping(part.get("state"))
    fields = {"output": output_of(state.get("content")), "error": failure(state.get("error"))}
    return {"type": "tool", "tool": part.get("name"), "callID": part.get("id"), "state": {**state, **fields}}


_PLACEHOLDERS = ("New session - ", "Child session - ")
_DONE = {"completed", "success", "error"}


class OpenCodeReader(RecordReader):
    """Reader of one session. A record contains one message with its parts."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        header = mapping(record.get("session") or record.get("info"))
        if "session" in record or ("role" not in header and "directory" in header):
            return self._header(header, line.number)
        if "entry" in record:
            return self._entry(string(record.get("type")), record, line)
        if "message" not in record and "info" not in record:
            return unknown_type(string(record.get("type")) or "record")
        info = mapping(record.get("message") or record.get("info"))
        parts = [mapping(part["data"]) if "data" in part else part for part in mappings(record.get("parts"))]
        return self._message(info, parts, record, line)

    def _message(self, info: Record, parts: Sequence[Record], record: Record, line: Line) -> RecordEvents:
        message_id = string(record.get("id")) or string(info.get("id"))
        at = instant(mapping(info.get("time")).get("created")) or instant(record.get("created"))
        stamp = RecordStamp(line.number, at, f"{message_id}@{_digest(info, parts)}" if message_id else "")
        match info.get("role"):
            case "user":
                return self._user(parts, stamp) or SkipReason.EMPTY
            case "assistant":
                turns = self._assistant(info, parts, stamp)
                return [*turns, *self._about(info, line.number, message_id)] or SkipReason.EMPTY
            case role:
                return unknown_type(f"role {role}" if role else "message")

    def _entry(self, kind: str, record: Record, line: Line) -> RecordEvents:
        """Return the events of a message of OpenCode 2."""
        entry = mapping(record["entry"])
        found = converted(kind, entry)
        if found is not None:
            return self._message(*found, record, line)
        at = instant(mapping(entry.get("time")).get("created")) or instant(record.get("created"))
        stamp = RecordStamp(line.number, at, f"{string(record.get('id'))}@{record_id('', line.data)}")
        match kind:
            case "shell":
                output, failed = output_of(entry.get("output")), entry.get("exit") not in (0, None)
                return self._user_command(string(entry.get("command")), output, stamp, tool="shell", failed=failed)
            case "compaction" if entry.get("status") == "failed":
                return self._injected(failure(entry.get("error")), stamp, failed=True) or SkipReason.EMPTY
            case "compaction":
                return (
                    SkipReason.BOOKKEEPING
                    if entry.get("status") == "running"
                    else self._compacted(entry.get("summary"), stamp)
                )
            case "model-switched" | "location-switched":
                location = mapping(entry.get("location"))
                facts = {Fact.MODEL: mapping(entry.get("model")).get("id"), Fact.CWD: location.get("directory")}
                return self._facts.notes(line.number, facts) or SkipReason.BOOKKEEPING
            case "agent-switched" | "idle":
                return SkipReason.BOOKKEEPING
            case "system":
                return SkipReason.CONTEXT
            case _:
                return unknown_type(kind)

    def _header(self, header: Record, line: int) -> RecordEvents:
        title = string(header.get("title"))
        facts = {
            Fact.SESSION: header.get("id"),
            Fact.PARENT: first_string(header, "parentID", "parent_id", "fork_session_id"),
            Fact.CWD: header.get("directory"),
            Fact.VERSION: header.get("version"),
            Fact.TITLE: "" if title.startswith(_PLACEHOLDERS) else title,
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _user(self, parts: Sequence[Record], stamp: RecordStamp) -> list[Turn | Note]:
        """Return the user's prompt and the text that the program added."""
        self._calls.clear()
        asked = "\n\n".join(filter(None, (_text(part) for part in parts if not _is_added(part))))
        events = self._prompt(asked, stamp) if asked else []
        for part in filter(_is_added, parts):
            events += self._injected(_text(part), stamp)
        compacted = any(part.get("type") == "compaction" for part in parts)
        return [*events, *(self._compacted("", stamp) if compacted else [])]

    def _assistant(self, info: Record, parts: Sequence[Record], stamp: RecordStamp) -> list[Turn]:
        turns = [turn for part in parts for turn in self._part(part, stamp, summary=info.get("summary") is True)]
        error = mapping(info.get("error"))
        fault = string(mapping(error.get("data")).get("message")) or string(error.get("name"))
        return [*turns, *self._injected(fault, stamp, failed=True)]

    def _part(self, part: Record, stamp: RecordStamp, *, summary: bool) -> list[Turn]:
        kind, text = part.get("type"), _text(part)
        if kind == "tool":
            return self._tool(part, stamp)
        if _is_added(part) or kind == "retry":
            return self._injected(text, stamp, failed=kind == "retry")
        if summary:
            return [stamp.turn(Speaker.HOST, Kind.COMPACTION, text)] if text else []
        return stamp.reply(Kind.THINKING if kind == "reasoning" else Kind.PROSE, text, stamp.record)

    def _tool(self, part: Record, stamp: RecordStamp) -> list[Turn]:
        """Return a call, followed by its result unless the call is still running."""
        state, call = mapping(part.get("state")), string(part.get("callID"))
        turns = [self._calls.call(stamp, call, string(part.get("tool")), state.get("input"), group=stamp.record)]
        if string(state.get("status")) in _DONE:
            is_error = state["status"] == "error"
            text = string(state.get("error" if is_error else "output"))
            failed = is_error or mapping(state.get("metadata")).get("exit", 0) not in (0, None)
            turns.append(self._calls.result(stamp, call, text, failed=failed))
        return turns

    def _about(self, info: Record, line: int, message_id: str) -> list[Note]:
        tokens = mapping(info.get("tokens"))
        tokens_in = total(tokens, "input") + total(mapping(tokens.get("cache")), "read", "write")
        facts = {
            Fact.MODEL: info.get("modelID"),
            Fact.CWD: mapping(info.get("path")).get("cwd"),
            Fact.USAGE: usage(message_id or str(line), tokens_in, total(tokens, "output", "reasoning")),
        }
        return self._facts.notes(line, facts)


def _is_added(part: Record) -> bool:
    return part.get("synthetic") is True or part.get("ignored") is True


def _text(part: Record) -> str:
    """Return the text of a part. For a file, return its name. For a sub-agent's task, return the prompt."""
    match part.get("type"):
        case "file":
            return f"[file {clean(first_string(part, 'filename', 'mime'))}]"
        case "subtask":
            return clean(first_string(part, "prompt", "description"))
        case "retry":
            return clean(string(mapping(mapping(part.get("error")).get("data")).get("message")))
        case _:
            return clean(string(part.get("text")))


def _digest(info: Record, parts: Sequence[Record]) -> str:
    """Return a digest of a message, which is the same in a database, in split files and in an export."""
    values = [string(mapping(info.get("error")).get("name"))]
    for part in parts:
        state = mapping(part.get("state"))
        values += [string(part.get("type")), _text(part), string(part.get("tool")), string(state.get("status"))]
        values += [string(state.get("output")), string(state.get("error"))]
    return hashlib.blake2b("\0".join(values).encode(), digest_size=8).hexdigest()


_DATABASE = re.compile(r"opencode[\w.-]*\.db")


class OpenCode(FolderFormat):
    """Sessions in databases in `~/.local/share/opencode`.

    Before version 1.2, OpenCode split a session into files, one per message and one per part of a message. An export is
    one JSON document in a location that the user chooses.
    """

    agent = "opencode"
    reader_class = OpenCodeReader
    suffixes = (".json",)

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be an exported session. Files of split sessions are excluded."""
        return super().may_be_transcript(path, root) and not is_piece(path)

    def containers(self) -> Iterator[Path]:
        """Yield this user's databases, and the header file of each split session."""
        data = data_home() / "opencode"
        configured = os.environ.get("OPENCODE_DB")
        if configured and (data / Path(configured).expanduser()).is_file():
            yield data / Path(configured).expanduser()
        if data.is_dir():
            yield from (path for path in sorted(data.iterdir()) if _DATABASE.fullmatch(path.name))
            sessions = record_reader.matching([(data / "storage" / "session", "*/*.json")])
            yield from filter(is_session, sessions)

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database of sessions, or the header of a session in several files."""
        if is_session(path):
            return True
        return _DATABASE.fullmatch(path.name) is not None and has_sessions(path)

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the database, or a file of a split session, changes."""
        if is_session(path):
            return state(path)
        return fingerprint(*ForeignDatabase(path).state())

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every session, parents before sub-agents, each with its header before its messages."""
        if is_session(path):
            return iter((session(path),))
        return sessions(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        A session that names a parent session is the session of a sub-agent.
        """
        headers = (mapping(record.get("session") or record.get("info")) for record in head_records(head))
        header = next(filter(_is_header, headers), Record())
        parent = first_string(header, "parentID", "parent_id")
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        return Session(self.agent, string(header.get("id")) or path.stem, kind, parent)

    def _is_from_agent(self, record: Record) -> bool:
        return _is_header(mapping(record.get("info")))


def _is_header(info: Record) -> bool:
    return "role" not in info and "directory" in info and isinstance(info.get("id"), str)


FORMAT: ContainerFormat = OpenCode()
