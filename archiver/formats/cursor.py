"""Support for Cursor: the editor, the command line and agent transcripts.

The editor stores conversations in its databases. The command line has one database per chat.

In the editor, `composerData:<id>` is a conversation, and `bubbleId:<id>:<bubble>` is one of its messages.

- Supported: prompts, replies, thinking, tool calls with results, titles, models, token usage, project folders. A
  conversation in a database and in an agent transcript is archived once.
- Not recorded by Cursor: IDs and times of replies in agent transcripts, and times of prompts in older versions. Without
  any time, the modification time of the file is the time of the session.
- Not supported: checkpoints, context of messages, binary parts of chats.
- Tested with: fixtures of agent transcripts. Support for the databases, for project folders and for
  times in agent transcripts is based on descriptions and unconfirmed on real files.
- Test data: `examples/cursor.jsonl`, and `agents/cursor` of agent-sessions.
"""

import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, SessionKind, Turn
from ...core.errors import PartlyRead, SourceUnreadable
from ..lines import Line, Record, clean, decode
from . import record_reader
from .containers import (
    ForeignDatabase,
    Value,
    as_bytes,
    as_text,
    exact_json,
    file_name,
    fingerprint,
    header_of,
    message_line,
)
from .json_values import (
    content_blocks,
    first_string,
    instant,
    joined_text,
    json_file,
    listing,
    mapping,
    mappings,
    modified,
    path_of_uri,
    string,
    total,
)
from .record_reader import FolderFormat, RecordReader
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


CHAT_TABLES = ("blobs",)
"""Tables of which a database of a chat has at least one."""
_CHAT_HEADER = ("name", "createdAt", "mode")


def chat_sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield the chat of a database. Each database contains exactly one chat. Raises `SourceUnreadable`."""
    database = ForeignDatabase(path)
    session_id = path.parent.name
    name = file_name(session_id)
    state = database.rows("SELECT count(*), max(rowid), total(octet_length(data)) FROM blobs")
    header = _header(database, session_id)
    at = instant(header.get("createdAt")) or 0
    lines = partial(_chat_lines, database, session_id, header)
    yield ContainedSession(path / name, f"{path.parent.parent.name}/{name}", fingerprint(state, header), at, lines)


def _header(database: ForeignDatabase, session_id: str) -> dict[str, object]:
    metadata: dict[str, object] = {}
    if database.columns("meta"):
        for (value,) in database.rows(f"SELECT {as_bytes('value')} FROM meta"):
            metadata |= _meta(value)
    return {"agentId": session_id} | {name: metadata[name] for name in _CHAT_HEADER if name in metadata}


def _meta(value: Value) -> dict[str, object]:
    """Return the description of the chat, which the database stores as hex-encoded JSON."""
    try:
        return mapping(json.loads(bytes.fromhex(as_text(value))))
    except ValueError:
        return {}


def _chat_lines(database: ForeignDatabase, session_id: str, header: dict[str, object]) -> Iterator[bytes]:
    """Yield the message lines. Skip binary blobs, which contain trees of messages."""
    yield message_line(session_id, conversation=header)
    query = f"SELECT {as_bytes('id')}, data FROM blobs WHERE substr(CAST(data AS BLOB), 1, 1) = x'7b' ORDER BY rowid"
    for blob, data in database.rows(query):
        message = exact_json(data)
        if not isinstance(message, str):
            yield message_line(as_text(blob), message=message)


_HEADERS, _WORKSPACE_LIST = "composer.composerHeaders", "composer.composerData"
_HEADER_TABLE = "composerHeaders"
_OPENED = ("selectedComposerIds", "lastFocusedComposerIds")
_WORKSPACES, _DATABASE = "workspaceStorage", "state.vscdb"
_WORKSPACE_SUFFIX = ".code-workspace"
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


def conversation_folders(path: Path) -> dict[str, str]:
    """Return the project folder of each conversation in a database, by the ID of the conversation.

    In the global database, each conversation has its own folder. Workspaces that cannot be read are ignored.
    """
    user = path.parent.parent
    names: dict[str, str] = {}
    for workspace in _workspaces(user / _WORKSPACES):
        folder = workspace_folder(workspace)
        if folder:
            # A conversation can be open in a workspace to which it does not belong.
            for listed, conversation in _conversations_of(workspace / _DATABASE):
                names[conversation] = folder if listed else names.get(conversation, folder)
    return names | dict(_registered(path))


def folder_called(name: str, user: Path) -> str:
    """Return the project folder after which Cursor named a folder of agent transcripts, such as `home-demo-shop`.

    The name has hyphens in place of other characters. It is compared with the folders of the workspaces in the editor's
    user data. The result is empty if no folder has this name.
    """
    try:
        changed = (user / _WORKSPACES).stat().st_mtime_ns
    except OSError:
        return ""
    return _folders_by_name(user, changed).get(name.strip("-").lower(), "")


@lru_cache(maxsize=4)
def _folders_by_name(user: Path, changed: int) -> dict[str, str]:  # noqa: ARG001 - the time makes the cache current
    folders = filter(None, map(workspace_folder, _workspaces(user / _WORKSPACES)))
    return {_NO_NAME.sub("-", folder).strip("-").lower(): folder for folder in folders}


def workspace_folder(workspace: Path) -> str:
    """Return the project folder of a workspace, from its file `workspace.json`, or an empty string.

    A workspace with several folders is named by its `.code-workspace` file.
    """
    settings = json_file(workspace / "workspace.json")
    return _local_path(first_string(settings, "folder", "workspace", "configuration"))


def is_readable(columns: Collection[str]) -> bool:
    """Return whether a table with these columns contains key-value pairs."""
    return "key" in columns and "value" in columns


def entry(database: ForeignDatabase, key: str) -> Record:
    """Return the JSON object that the editor stored under a key. The result is empty if there is none."""
    if not is_readable(database.columns("ItemTable")):
        return {}
    rows = database.rows(f"SELECT {as_bytes('value')} FROM ItemTable WHERE key = ?", (key,))
    return decoded(rows[0][0]) if rows else {}


def decoded(data: object) -> Record:
    """Return an object decoded from JSON, or an empty object if the JSON contains anything else."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    records = decode(raw) if isinstance(raw, bytes) else []
    return records[0] if isinstance(records, list) and records else {}


def _workspaces(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _conversations_of(path: Path) -> Iterator[tuple[bool, str]]:
    """Yield the IDs of the conversations that a workspace lists (True) or has opened (False)."""
    try:
        state = entry(ForeignDatabase(path), _WORKSPACE_LIST) if path.is_file() else {}
    except SourceUnreadable:
        return
    yield from ((True, string(composer.get("composerId"))) for composer in mappings(state.get("allComposers")))
    yield from ((False, string(name)) for field in _OPENED for name in listing(state.get(field)))


def _registered(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the ID and the folder of each conversation in the list of a database."""
    database = ForeignDatabase(path)
    headers = mappings(entry(database, _HEADERS).get("allComposers"))
    if "value" in database.columns(_HEADER_TABLE):
        rows = database.rows(f"SELECT {as_bytes('value')} FROM {_HEADER_TABLE}")
        headers += [decoded(value) for (value,) in rows]
    for header in headers:
        workspace = mapping(header.get("workspaceIdentifier"))
        uri = workspace.get("uri") or workspace.get("configPath")
        location = first_string(mapping(uri), "external", "fsPath", "path") or string(uri)
        if folder := _local_path(location):
            yield string(header.get("composerId")), folder


def _local_path(location: str) -> str:
    """Return the path in a URI such as `file:///home/demo/shop`. Return any other path unchanged."""
    path = path_of_uri(location)
    return str(PurePosixPath(path).with_suffix("")) if path.endswith(_WORKSPACE_SUFFIX) else path


# ruff: noqa: S608 - statements contain only fixed names, and values are bound


EDITOR_TABLES = ("ItemTable", "cursorDiskKV")
"""Tables of which a database of the editor has at least one."""
_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_EDITOR_HEADER = ("composerId", "name", "createdAt", "unifiedMode", "forceMode", "subagentInfo", "tabId", "chatTitle")
"""Fields that describe a conversation. Other fields are editor state and change often."""


def editor_sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield every conversation, ordered by ID.

    Raises:
        SourceUnreadable: The database cannot be read.
        PartlyRead: After the last conversation, if a table is missing or lacks columns.
    """
    database = ForeignDatabase(path)
    own = workspace_folder(path.parent)
    tables = {table: columns for table in EDITOR_TABLES if (columns := database.columns(table))}
    lacking = [f"table {table} has no column key or value" for table in tables if not is_readable(tables[table])]
    if is_readable(tables.get("cursorDiskKV", ())):
        folders = conversation_folders(path)
        for session_id, state in sorted(_states(database).items()):
            folder = folders.get(session_id, own)
            rows = partial(_composer_lines, database, session_id, folder)
            yield _session(path, session_id, fingerprint(state, folder), 0, rows)
    for tab in mappings(entry(database, _TABS).get("tabs")):
        session_id = string(tab.get("tabId"))
        bubbles = [(_id(bubble), bubble) for bubble in listing(tab.get("bubbles"))]
        lines = list(_editor_lines(session_id, tab, own, bubbles))
        at = instant(tab.get("lastSendTime")) or 0
        yield _session(path, session_id, fingerprint(*lines), at, partial(iter, lines))
    if lacking or not tables:
        problem = "; ".join(lacking) or f"no table {' or '.join(EDITOR_TABLES)}"
        raise PartlyRead(path, problem, hint="A newer version of Palaver may read it. Please report it.")


def _session(path: Path, session_id: str, state: int, at: int, lines: "partial[Iterator[bytes]]") -> ContainedSession:
    name = file_name(session_id)
    return ContainedSession(path / name, f"{path.parent.name}/{name}", state, at, lines)


def _states(database: ForeignDatabase) -> dict[str, int]:
    """Return a fingerprint of each conversation, computed from the keys, lengths and row IDs of its values.

    A change always changes the fingerprint, because the editor stores a changed value in a new row.
    """
    rows: dict[str, list[str]] = {}
    for prefix in (_COMPOSER, _BUBBLE):
        query = "SELECT CAST(key AS BLOB), rowid, octet_length(value) FROM cursorDiskKV WHERE key >= ? AND key < ?"
        for key, *values in database.rows(query, _range(prefix)):
            session_id, _, bubble = as_text(key).removeprefix(prefix).partition(":")
            rows.setdefault(session_id, []).append(repr((prefix, bubble, *values)))
    return {session_id: fingerprint(*sorted(fingerprints)) for session_id, fingerprints in rows.items()}


def _range(prefix: str) -> tuple[str, str]:
    """Return the key range of a prefix: inclusive start and exclusive end."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _composer_lines(database: ForeignDatabase, session_id: str, folder: str) -> Iterator[bytes]:
    """Yield the lines of a conversation: the messages in the recorded order, then messages without a recorded position.

    All lines come from one consistent state of the database.
    """
    prefix = f"{_BUBBLE}{session_id}:"
    rows = database.rows(
        f"SELECT CAST(key AS BLOB), {as_bytes('value')} FROM cursorDiskKV"
        " WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid",
        (_COMPOSER + session_id, *_range(prefix)),
    )
    values = {as_text(key): value for key, value in rows}
    composer = decoded(values.pop(_COMPOSER + session_id, None))
    bubbles = {_id(bubble): bubble for bubble in listing(composer.get("conversation"))}
    bubbles |= {key.removeprefix(prefix): exact_json(value) for key, value in values.items()}
    order = [_id(header) for header in listing(composer.get("fullConversationHeadersOnly"))]
    ordered = dict.fromkeys([*(each for each in order if each in bubbles), *bubbles])
    yield from _editor_lines(session_id, composer, folder, [(each, bubbles[each]) for each in ordered])


def _editor_lines(session_id: str, header: Record, folder: str, bubbles: list[tuple[str, object]]) -> Iterator[bytes]:
    fields = {name: header[name] for name in _EDITOR_HEADER if name in header}
    project = {"folder": folder} if folder else {}
    yield message_line(session_id, conversation={"composerId": session_id, **fields, **project})
    for bubble, value in bubbles:
        yield message_line(bubble, bubble=value)


def _id(bubble: object) -> str:
    return first_string(mapping(bubble), "bubbleId", "id")


_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_ADDED = tuple(
    f"<{name}>"
    for name in ("additional_data", "external_links", "project_layout", "rules", "system_reminder", "user_info")
)
_TIMESTAMP = re.compile(r"<timestamp>\s*(.*?)\s*</timestamp>\s*", re.DOTALL)
_TIME = re.compile(
    r"(?:\w+, )?(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2}), (?P<year>\d{4}),? (?:at )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?: (?P<half>[AP]M))?"
    r"(?: \((?:UTC|GMT)(?P<zone>(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?)?\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_USER, _ASSISTANT = 1, 2
_CALLS, _RESULTS = {"tool_use", "tool_call", "tool-call"}, {"tool_result", "tool-result"}
_THOUGHTS = {"thinking", "reasoning", "redacted-reasoning"}
_ENDED = {"completed", "error", "cancelled", "rejected"}
_FAILED = {"error", "rejected"}


class CursorReader(RecordReader):
    """Reader of one conversation."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record and "role" not in record:
            facts = {
                Fact.SESSION: ("composerId", "agentId"),
                Fact.TITLE: ("name", "chatTitle"),
                Fact.CWD: ("folder",),
            }
            return self._header_facts(record, line, facts)
        if "bubble" in record:
            return self._bubble(mapping(record["bubble"]), line)
        if record.get("type") == "turn_ended":
            return SkipReason.BOOKKEEPING
        message = mapping(record.get("message"))
        role = string(record.get("role")) or string(message.get("role"))
        # Without an ID, two equal lines may be different messages.
        own_id = record_id("", line.data) if string(record.get("id")) else ""
        stamp = RecordStamp(line.number, instant(record.get("timestamp")), own_id)
        return self._message(role, message.get("content"), stamp)

    # Bubbles of the editor.

    def _bubble(self, bubble: Record, line: Line) -> RecordEvents:
        at = instant(bubble.get("createdAt")) or instant(mapping(bubble.get("timingInfo")).get("clientStartTime"))
        stamp = RecordStamp(line.number, at, record_id("", line.data))
        kind, text = bubble.get("type"), clean(first_string(bubble, "text", "rawText"))
        if kind in (_USER, "user"):
            cwd = self._facts.note(line.number, Fact.CWD, bubble.get("workspaceProjectDir"))
            return [*self._prompt(text, stamp), *cwd] if text else SkipReason.EMPTY
        if kind not in (_ASSISTANT, "ai"):
            return unknown_type(f"bubble {kind}") if bubble else SkipReason.EMPTY
        return [
            *stamp.reply(Kind.THINKING, string(mapping(bubble.get("thinking")).get("text"))),
            *stamp.reply(Kind.PROSE, text),
            *self._tool(mapping(bubble.get("toolFormerData")), stamp),
            *self._about(bubble, line.number),
        ] or SkipReason.EMPTY

    def _tool(self, tool: Record, stamp: RecordStamp) -> Sequence[Turn]:
        name, call, status = string(tool.get("name")), string(tool.get("toolCallId")), string(tool.get("status"))
        if not name:
            return ()
        turns = [self._calls.call(stamp, call, name, tool.get("rawArgs") or tool.get("params"))]
        result = first_string(tool, "result", "error")
        if status in _ENDED or (result and not status):
            turns.append(self._calls.result(stamp, call, result, failed=status in _FAILED))
        return turns

    def _about(self, bubble: Record, line: int) -> list[Note]:
        counts, name = mapping(bubble.get("tokenCount")), string(bubble.get("bubbleId")) or str(line)
        used = usage(name, total(counts, "inputTokens"), total(counts, "outputTokens"))
        model = mapping(bubble.get("modelInfo")).get("modelName")
        return self._facts.notes(line, {Fact.MODEL: model, Fact.USAGE: used})

    # Messages of chats and agents.

    def _message(self, role: str, content: object, stamp: RecordStamp) -> RecordEvents:
        blocks = content_blocks(content)
        match role:
            case "system":
                return SkipReason.CONTEXT
            case "user" | "tool":
                results = [self._result(block, stamp) for block in blocks if string(block.get("type")) in _RESULTS]
                text = "\n".join(filter(None, map(_text, blocks))) if role == "user" else ""
                asked, stamp = _asked(text), replace(stamp, at=stamp.at or _time_in(text))
                return results or (self._prompt(asked, stamp) if asked else SkipReason.EMPTY)
            case "assistant":
                return [turn for block in blocks for turn in self._block(block, stamp)] or SkipReason.EMPTY
            case _:
                return unknown_type(f"role {role}")

    def _block(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        kind = string(block.get("type"))
        if kind in _CALLS:
            arguments = block.get("input") or block.get("args")
            return [self._calls.call(stamp, _call(block), first_string(block, "name", "toolName"), arguments)]
        if kind in _RESULTS:
            return [self._result(block, stamp)]
        text = string(block.get("thinking")) or _text(block)
        return stamp.reply(Kind.THINKING if kind in _THOUGHTS else Kind.PROSE, text)

    def _result(self, block: Record, stamp: RecordStamp) -> Turn:
        text = joined_text(block.get("content") or block.get("result") or block.get("output"), _text)
        failed = block.get("is_error") is True or block.get("isError") is True
        name = first_string(block, "name", "toolName")
        return self._calls.result(stamp, _call(block), text, failed=failed, tool=name)


def _call(block: Record) -> str:
    return first_string(block, "id", "toolCallId", "tool_use_id")


def _text(block: Record) -> str:
    return string(block.get("text"))


def _asked(text: str) -> str:
    """Return the text that the user typed, without text that the program added.

    The result is empty if the user typed nothing.
    """
    typed, text_left = _QUERY.findall(text), clean(_TIMESTAMP.sub("", text))
    if typed:
        return clean("\n\n".join(typed))
    return "" if text_left.startswith(_ADDED) else text_left


def _time_in(text: str) -> Milliseconds | None:
    """Return the time that the program wrote above a prompt, such as `Monday, Jul 6, 2026, 1:06 PM (UTC+3)`.

    A time without a time zone is read as UTC.
    """
    written = _TIMESTAMP.search(text)
    time = _TIME.fullmatch(written[1]) if written else None
    if written is None or time is None or time["month"] not in _MONTHS:
        return instant(written[1]) if written else None
    hour = int(time["hour"]) % 12 + 12 * (time["half"] == "PM") if time["half"] else int(time["hour"])
    offset = timedelta(hours=int(time["hours"] or 0), minutes=int(time["minutes"] or 0))
    try:
        local = datetime(
            int(time["year"]),
            _MONTHS.index(time["month"]) + 1,
            int(time["day"]),
            hour,
            int(time["minute"]),
            int(time["second"] or 0),
            tzinfo=UTC,
        )
        return round((local + (offset if time["sign"] == "-" else -offset)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


_TRANSCRIPTS, _SUBAGENTS = "agent-transcripts", "subagents"
_EDITOR, _CHAT = "state.vscdb", "store.db"


class Cursor(FolderFormat):
    """Conversations in editor databases, in one database per command-line chat, and in agent transcripts.

    An agent transcript is `<id>.jsonl` or `<id>/<id>.jsonl` in `~/.cursor/projects/<project>/agent-transcripts`.
    """

    agent = "cursor"
    reader_class = CursorReader
    home_folder, root_folders = ".cursor", ("projects",)

    def containers(self) -> Iterator[Path]:
        """Yield this user's editor databases and chat databases."""
        user = _editor_data()
        patterns = [(user, f"globalStorage/{_EDITOR}"), (user, f"workspaceStorage/*/{_EDITOR}")]
        return record_reader.matching([*patterns, (Path.home() / ".cursor" / "chats", f"*/*/{_CHAT}")])

    def is_container(self, path: Path) -> bool:
        """Return whether a file is an editor or chat database. A temporarily unreadable database counts too."""
        if path.name not in {_EDITOR, _CHAT} or not path.is_file():
            return False
        try:
            tables = EDITOR_TABLES if path.name == _EDITOR else CHAT_TABLES
            return any(map(ForeignDatabase(path).columns, tables))
        except SourceUnreadable:
            return True

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the database changes."""
        return fingerprint(*ForeignDatabase(path).state())

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every conversation, with its header before its messages."""
        return chat_sessions(path) if path.name == _CHAT else editor_sessions(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        An agent transcript contains few times. The modification time of its file is used as the session's time.
        """
        header = header_of(head)
        session_id = first_string(header, "composerId", "agentId", "tabId")
        if session_id:
            return Session(self.agent, session_id, cwd=string(header.get("folder")))
        parent = path.parent.parent.name if path.parent.name == _SUBAGENTS else ""
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        at = modified(path)
        name = path.parts[path.parts.index(_TRANSCRIPTS) - 1] if _TRANSCRIPTS in path.parts else ""
        cwd = folder_called(name, _editor_data())
        return Session(self.agent, path.stem, kind, parent, cwd=cwd, started=at, ended=at, scope=parent)

    def _is_from_agent(self, record: Record) -> bool:
        content = mapping(record.get("message")).get("content")
        is_message = string(record.get("role")) in {"user", "assistant"} and isinstance(content, list | str)
        return is_message and "type" not in record

    def _has_transcript_path(self, path: Path) -> bool:
        return _TRANSCRIPTS in path.parts


def _editor_data() -> Path:
    """Return the folder of the editor's user data."""
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        data = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return data / "Cursor" / "User"


FORMAT: ContainerFormat = Cursor()
