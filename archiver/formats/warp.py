"""Support for Warp.

Warp stores the conversations with its agent in the database `warp.sqlite`, as messages in the encoding of Protocol
Buffers. Conversations of early versions have prompts only. `docs/formats/warp.md` names the sources.

- Supported: prompts, replies, reasoning, tool calls with results, compactions, titles, working folders, models,
  sub-agents, and the prompts of conversations without stored messages.
- Not supported: to-do lists, review comments, searches on the web, screenshots, token counts, conversations that are
  stored in the cloud only.
- Tested with: the published source and message definitions of August 2026.
- Test data: `examples/warp.jsonl`.
"""

import base64
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import orjson

from ...core.conversation import Fact, Kind, Turn
from ...core.errors import PartlyRead
from ..lines import Line, Record, clean
from .container_formats import REPORT_HINT, ContainedFormat, message_of
from .containers import ForeignDatabase, Value, as_bytes, as_text, exact_json, file_name, fingerprint, message_line
from .json_values import first_string, instant, listing, mapping, mappings, string
from .protobuf import Field, Schema, decoded, fields
from .record_reader import RecordReader
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    record_id,
    unknown_type,
)

_DATABASE = "warp.sqlite"
_TABLES = {
    "agent_conversations": frozenset({"conversation_id", "conversation_data", "last_modified_at"}),
    "agent_tasks": frozenset({"conversation_id", "task_id", "task"}),
    "ai_queries": frozenset({"exchange_id", "conversation_id", "start_ts", "input", "working_directory", "model_id"}),
}
"""Tables, with the columns that are needed."""


def _text(*names: str) -> Schema:
    """Return the schema of a message whose first fields are texts with these names."""
    return {number: Field(name) for number, name in enumerate(names, start=1)}


def _list(name: str, schema: Schema | None = None) -> Schema:
    """Return the schema of a message whose first field is repeated."""
    return {1: Field(name, schema, repeated=True)}


_TIME, _FILE = _text("seconds", "nanos"), _text("file_path", "content")
_QUERY: Schema = {1: Field("query"), 2: Field("context", {1: Field("directory", _text("pwd"))})}
_FINISHED = Field("finished", _text("output", "exit_code"))
_FAULT = Field("error", _text("message"))
_CALLS: Schema = {
    2: Field("run_shell_command", _text("command")),
    3: Field("search_codebase", {1: Field("query"), 3: Field("codebase_path")}),
    5: Field("read_files", _list("files", _text("name"))),
    6: Field(
        "apply_file_diffs",
        {
            1: Field("summary"),
            2: Field("diffs", _text("file_path", "search", "replace"), repeated=True),
            3: Field("new_files", _FILE, repeated=True),
            4: Field("deleted_files", _text("file_path"), repeated=True),
            5: Field("updates", _text("file_path", "move_to"), repeated=True),
        },
    ),
    7: Field("suggest_plan", _text("summary")),
    9: Field("grep", {1: Field("queries", repeated=True), 2: Field("path")}),
    10: Field("file_glob", {1: Field("patterns", repeated=True), 2: Field("path")}),
    11: Field("read_mcp_resource", _text("uri")),
    12: Field("call_mcp_tool", _text("name")),
    13: Field("write_to_shell_command", _text("input")),
    15: Field("file_glob", {1: Field("patterns", repeated=True), 2: Field("path")}),
    19: Field("subagent", _text("task_id", "payload")),
    23: Field("read_shell_output", _text("command_id")),
    24: Field("use_computer", {3: Field("action_summary")}),
    26: Field("read_skill", {1: Field("skill_path"), 3: Field("name")}),
    29: Field("start_agent", _text("name", "prompt")),
    30: Field("send_message", {2: Field("subject"), 3: Field("message")}),
}
_RESULTS: Schema = {
    2: Field("shell", {1: Field("output"), 2: Field("exit_code"), 5: _FINISHED, 6: Field("denied", {})}),
    3: Field("search", {1: Field("success", _list("files", _FILE)), 2: _FAULT}),
    5: Field(
        "files",
        {
            1: Field("success", _list("files", _FILE)),
            2: _FAULT,
            3: Field("success", _list("files", {6: Field("text", _FILE)})),
        },
    ),
    6: Field(
        "changes",
        {1: Field("success", {2: Field("files", {1: Field("file", _text("file_path"))}, repeated=True)}), 2: _FAULT},
    ),
    9: Field("grep", {1: Field("success", _list("files", _text("file_path"))), 2: _FAULT}),
    10: Field("glob", {1: Field("success", _text("files")), 2: _FAULT}),
    14: Field("cancelled", {}),
    15: Field("resource", {1: Field("success", _list("contents", {2: Field("text", _text("content"))})), 2: _FAULT}),
    16: Field("mcp", {1: Field("success", _list("results", {1: Field("text", _text("text"))})), 2: _FAULT}),
    17: Field("shell", {2: _FINISHED}),
    19: Field("glob", {1: Field("success", _list("files", _text("file_path"))), 2: _FAULT}),
    23: Field("subagent", _text("payload")),
    27: Field("shell", {3: _FINISHED}),
    33: Field("agent", {1: Field("success", _text("agent_id")), 2: _FAULT}),
}
_MESSAGE: Schema = {
    1: Field("id"),
    14: Field("timestamp", _TIME),
    2: Field("user_query", _QUERY),
    3: Field("agent_output", _text("text")),
    4: Field("tool_call", {1: Field("tool_call_id"), **_CALLS}),
    5: Field("tool_call_result", {1: Field("tool_call_id"), **_RESULTS}),
    6: Field("server_event", {}),
    9: Field("system_query", {number: Field("query", _text("text")) for number in (1, 4, 5, 6, 7)}),
    10: Field("update_todos", {}),
    15: Field("agent_reasoning", _text("reasoning")),
    16: Field("summarization", {1: Field("conversation", _text("summary"))}),
    17: Field("code_review", {}),
    18: Field("update_review_comments", {}),
    19: Field("web_search", {}),
    20: Field("web_fetch", {}),
    21: Field("debug_output", {}),
    22: Field("artifact_event", {}),
    23: Field("invoke_skill", {1: Field("skill", {}), 2: Field("user_query", _QUERY)}),
    24: Field("messages_received", _list("messages", {4: Field("subject"), 5: Field("body")})),
    25: Field("model_used", _text("model_id")),
    26: Field("events_received", {}),
}
_TASK: Schema = {
    1: Field("id"),
    2: Field("description"),
    3: Field("dependencies", _text("parent_task_id")),
}
_MESSAGES = 5
"""Number of the field of a task that contains its messages."""
_SKIPPED = {
    *("server_event", "update_todos", "code_review", "update_review_comments", "debug_output", "artifact_event"),
    *("events_received", "web_search", "web_fetch"),
}


class WarpReader(RecordReader):
    """Reader of one conversation or of one sub-agent's task."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            facts = {Fact.PARENT: ("parent",), Fact.CWD: ("working_directory",), Fact.TITLE: ("title",)}
            return self._header_facts(record, line, facts)
        message, query = message_of(record), mapping(record.get("query"))
        own_id = record_id(string(record.get("id")), line.data)
        if query:
            return self._query(query, RecordStamp(line.number, instant(query.get("start_ts")), own_id))
        if not message:
            return unknown_type("message")
        at = mapping(message.get("timestamp"))
        stamp = RecordStamp(line.number, instant(at.get("seconds")), own_id)
        kind = next((name for name in message if name not in {"id", "timestamp"}), "")
        return self._message(kind, mapping(message.get(kind)), stamp) or SkipReason.EMPTY

    def _message(self, kind: str, message: Record, stamp: RecordStamp) -> RecordEvents:
        match kind:
            case "user_query":
                return self._user(message, stamp)
            case "invoke_skill":
                return self._user(mapping(message.get("user_query")), stamp)
            case "agent_output":
                return stamp.reply(Kind.PROSE, string(message.get("text")))
            case "agent_reasoning":
                return stamp.reply(Kind.THINKING, string(message.get("reasoning")))
            case "tool_call":
                return self._call(message, stamp)
            case "tool_call_result":
                return self._result(message, stamp)
            case "system_query":
                return self._injected(string(mapping(message.get("query")).get("text")), stamp)
            case "summarization":
                summary = string(mapping(message.get("conversation")).get("summary"))
                return self._compacted(summary, stamp) if summary else SkipReason.BOOKKEEPING
            case "messages_received":
                return self._injected("\n\n".join(_texts(message.get("messages"))), stamp)
            case "model_used":
                return self._facts.note(stamp.line, Fact.MODEL, message.get("model_id")) or SkipReason.REPEATED
            case _:
                return SkipReason.BOOKKEEPING if kind in _SKIPPED else unknown_type(kind)

    def _user(self, query: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(string(query.get("query")))
        cwd = mapping(mapping(query.get("context")).get("directory")).get("pwd")
        notes = self._facts.note(stamp.line, Fact.CWD, cwd)
        return [*(self._prompt(text, stamp) if text else []), *notes]

    def _query(self, query: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the prompt of an exchange whose messages are not stored."""
        text = clean("\n\n".join(filter(None, (_typed(item) for item in mappings(query.get("input"))))))
        facts = {Fact.CWD: query.get("working_directory"), Fact.MODEL: query.get("model_id")}
        prompt = self._prompt(text, stamp) if text else []
        return [*prompt, *self._facts.notes(stamp.line, facts)] or SkipReason.EMPTY

    def _call(self, message: Record, stamp: RecordStamp) -> list[Turn]:
        tool = next((name for name in message if name != "tool_call_id"), "")
        if not tool:
            return []  # A call that the service resolves itself.
        arguments = mapping(message.get(tool))
        call, files = string(message.get("tool_call_id")), _changed(arguments)
        if tool == "call_mcp_tool":
            tool, arguments = first_string(arguments, "name") or tool, Record()
        elif tool == "read_files":
            arguments = {"files": [{"path": string(file.get("name"))} for file in mappings(arguments.get("files"))]}
        elif files:
            tool, arguments = "edit_file", {"path": files[0], **arguments} if len(files) == 1 else arguments
        return [self._calls.call(stamp, call, tool, arguments)]

    def _result(self, message: Record, stamp: RecordStamp) -> list[Turn]:
        kind = next((name for name in message if name != "tool_call_id"), "")
        result = mapping(message.get(kind))
        finished = mapping(result.get("finished")) or result
        failed = "error" in result or "denied" in result or kind == "cancelled" or bool(finished.get("exit_code"))
        text = "\n".join(_texts(finished)) or ("cancelled" if kind == "cancelled" else "")
        return [self._calls.result(stamp, string(message.get("tool_call_id")), text, failed=failed)]


def _texts(value: object) -> list[str]:
    """Return all texts in a decoded message, in order."""
    if isinstance(value, str):
        return [value] if value else []
    values = [*mapping(value).values()] or listing(value)
    return [text for inner in values for text in _texts(inner)]


def _typed(item: Record) -> str:
    return string(mapping(item.get("Query")).get("text"))


def _changed(arguments: Record) -> list[str]:
    """Return the paths of the files that a call changes."""
    names = ("diffs", "new_files", "deleted_files", "updates")
    return [string(file.get("file_path")) for name in names for file in mappings(arguments.get(name))]


class Warp(ContainedFormat):
    """Conversations in the database of Warp. The stable version and the preview have one each."""

    agent = "warp"
    reader_class = WarpReader
    parent_fields, folder_fields = ("parent",), ("working_directory",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the databases on macOS and Linux."""
        home = Path.home()
        groups = home / "Library" / "Group Containers"
        state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state").expanduser()
        for below in (_DATABASE, f"tui/{_DATABASE}"):
            yield groups, f"*.dev.warp/Library/Application Support/dev.warp.Warp*/{below}"
            yield home / "Library" / "Application Support", f"dev.warp.Warp*/{below}"
            yield state, f"warp-terminal*/{below}"

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database of Warp."""
        return path.name == _DATABASE and path.is_file()

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield each conversation, followed by the tasks of its sub-agents.

        Raises:
            SourceUnreadable: The database cannot be read.
            PartlyRead: After the last session, if a table or a column is missing.
        """
        database = ForeignDatabase(path)
        columns = {table: database.columns(table) for table in _TABLES}
        missing = {table: needed - columns[table] for table, needed in _TABLES.items() if needed - columns[table]}
        if "agent_conversations" not in missing:
            yield from self._sessions(database, set(missing))
        if missing:
            lacking = "; ".join(f"table {table} lacks {', '.join(sorted(names))}" for table, names in missing.items())
            raise PartlyRead(path, lacking, hint=REPORT_HINT)

    def _sessions(self, database: ForeignDatabase, missing: set[str]) -> Iterator[ContainedSession]:
        conversations = database.rows(
            f"SELECT {as_bytes('conversation_id')}, {as_bytes('conversation_data')}, last_modified_at"  # noqa: S608 - fixed names
            " FROM agent_conversations ORDER BY last_modified_at"
        )
        for conversation, data, changed in conversations:
            native_id, at = as_text(conversation), instant(as_text(changed)) or 0
            query = "SELECT task_id, task FROM agent_tasks WHERE conversation_id = ?1 ORDER BY rowid"
            rows = [] if "agent_tasks" in missing else database.rows(query, (native_id,))
            tasks = {as_text(task): _task(content) for task, content in rows}
            subtasks = {task: about for task, about in tasks.items() if _parent(about) in tasks}
            roots = {task: about for task, about in tasks.items() if task not in subtasks}
            header: dict[str, object] = {"id": native_id, "parent": _settings(data).get("parent_conversation_id")}
            yield self._session(database, header, roots, at, missing)
            for task, about in subtasks.items():
                owner = _parent(about) if _parent(about) in subtasks else native_id
                yield self._session(database, {"id": task, "parent": owner}, {task: about}, at, missing)

    def _session(
        self, database: ForeignDatabase, header: dict[str, object], tasks: dict[str, Record], at: int, missing: set[str]
    ) -> ContainedSession:
        session_id = string(header["id"])
        name = file_name(session_id)
        lines = [line for task in tasks.values() for line in _messages(task)]
        rows = list[bytes]() if lines or "ai_queries" in missing else _queries(database, session_id)
        title = next((string(task.get("description")) for task in tasks.values()), "")
        folder = "" if "ai_queries" in missing else _folder(database, session_id)
        header |= {"title": title, "working_directory": folder}
        lines = [message_line(session_id, conversation=header), *lines, *rows]
        archived = f"{database.path.parent.name}/{name}"
        return ContainedSession(database.path / name, archived, fingerprint(*lines), at, partial(iter, lines))


def _task(content: Value) -> Record:
    """Return the description of a task with the bytes of its messages. A damaged task has no messages."""
    data = content if isinstance(content, bytes) else b""
    try:
        messages = [value for number, value in fields(data) if number == _MESSAGES and isinstance(value, bytes)]
        return {**decoded(data, _TASK), "messages": messages}
    except ValueError:
        return {"messages": []}


def _parent(task: Record) -> str:
    return string(mapping(task.get("dependencies")).get("parent_task_id"))


def _messages(task: Record) -> Iterator[bytes]:
    """Yield a line for each message, with its readable fields and all of its bytes."""
    for data in task["messages"]:
        try:
            message = decoded(data, _MESSAGE)
        except ValueError:
            message = {}
        raw = base64.b64encode(data).decode()
        yield message_line(string(message.get("id")) or record_id("", data), message=message, raw=raw)


def _queries(database: ForeignDatabase, conversation: str) -> Iterator[bytes]:
    names = ("input", "start_ts", "working_directory", "model_id")
    selected = ", ".join(map(as_bytes, ("exchange_id", *names)))
    query = f"SELECT {selected} FROM ai_queries WHERE conversation_id = ?1 ORDER BY start_ts, rowid"  # noqa: S608 - fixed names
    for exchange, typed, *values in database.rows(query, (conversation,)):
        about = dict(zip(names[1:], map(as_text, values), strict=True))
        yield message_line(as_text(exchange), query={"input": exact_json(typed), **about})


def _folder(database: ForeignDatabase, conversation: str) -> str:
    query = "SELECT working_directory FROM ai_queries WHERE conversation_id = ?1 ORDER BY start_ts, rowid LIMIT 1"
    return next((as_text(folder) for (folder,) in database.rows(query, (conversation,))), "")


def _settings(data: Value) -> Record:
    try:
        return mapping(orjson.loads(as_text(data)))
    except orjson.JSONDecodeError:
        return {}


FORMAT: ContainerFormat = Warp()
