"""Support for Crush.

Crush stores the sessions of a project in a database, `.crush/crush.db`. It lists its projects in `projects.json`.

- Supported: prompts with the names of attached files, replies, reasoning, tool calls with results, shell commands of
  the user, errors, summaries, titles, models, sub-agents.
- Not supported: versions of files, lists of files that were read, the token usage of a session.
- Tested with: 6 published databases of versions before 0.13, with 18 sessions; later versions from the source code.
- Test data: `examples/crush.jsonl`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...core.conversation import Fact, Kind, Note, Turn
from ..lines import Line, Record, clean
from .container_formats import DatabaseFormat, Row, Table, message_of
from .containers import ForeignDatabase
from .json_values import first_string, instant, json_file, mapping, mappings, string
from .record_reader import RecordReader, data_home
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type

_NAME = "crush.db"
_AGENTS = {"agent", "agentic_fetch"}
"""Tools that start a sub-agent."""
_UNTITLED = {"New Session", "Untitled Session"}
_INITIALISE = re.compile(r"`?(?:Please a|A)nalyze this codebase and create")
"""Beginning of the prompt with which the program asks for a file of instructions."""


class CrushReader(RecordReader):
    """Reader of one session. Each record is a message, which consists of parts."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        message = message_of(record)
        parts = [(string(part.get("type")), mapping(part.get("data"))) for part in mappings(message.get("parts"))]
        own_id = record_id(string(message.get("id")), line.data)
        stamp = RecordStamp(line.number, instant(message.get("created_at")), own_id)
        if message.get("is_summary_message") == 1:
            return self._compacted(_text(parts), stamp)
        match string(message.get("role")):
            case "user":
                return self._user(parts, stamp) or SkipReason.EMPTY
            case "assistant":
                return self._assistant(message, parts, stamp) or SkipReason.EMPTY
            case "tool":
                return [turn for kind, data in parts for turn in self._result(kind, data, stamp)] or SkipReason.EMPTY
            case "system":
                return SkipReason.CONTEXT
            case role:
                return unknown_type(f"role {role}")

    def _header(self, header: Record, line: int) -> RecordEvents:
        title = string(header.get("title"))
        facts = {
            Fact.SESSION: header.get("id"),
            Fact.TITLE: "" if title in _UNTITLED else title,
            Fact.CWD: header.get("folder"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _user(self, parts: list[tuple[str, Record]], stamp: RecordStamp) -> list[Turn | Note]:
        names = [f"[file {clean(name)}]" for _, data in parts if (name := first_string(data, "Path", "url"))]
        text = "\n".join(filter(None, [_text(parts), *names]))
        events: list[Turn | Note] = []
        for kind, data in parts:
            if kind == "shell_command":
                command, output = clean(string(data.get("command"))), string(data.get("output"))
                failed = data.get("exit_code") not in (None, 0)
                events += self._user_command(command, output, stamp, tool="bash", failed=failed)
        if _INITIALISE.match(text):
            return [*events, *self._injected(text, stamp)]
        return [*events, *(self._prompt(text, stamp) if text else [])]

    def _assistant(self, message: Record, parts: list[tuple[str, Record]], stamp: RecordStamp) -> list[Turn | Note]:
        events: list[Turn | Note] = []
        for kind, data in parts:
            match kind:
                case "reasoning":
                    events += stamp.reply(Kind.THINKING, string(data.get("thinking")), stamp.record)
                case "text":
                    events += stamp.reply(Kind.PROSE, string(data.get("text")), stamp.record)
                case "tool_call":
                    events += self._call(string(message.get("id")), data, stamp)
                case "tool_result":
                    events += self._result(kind, data, stamp)
                case _:
                    notice = filter(None, (string(data.get("message")), string(data.get("details"))))
                    events += self._injected(": ".join(notice), stamp, failed=True)
        return [*events, *self._facts.note(stamp.line, Fact.MODEL, message.get("model"))]

    def _call(self, message: str, data: Record, stamp: RecordStamp) -> list[Turn | Note]:
        """Return a call, with notes on the sub-agent that it started.

        The ID of the sub-agent's session is that of the call. Since version 0.13, the ID of the message precedes it.
        """
        call, tool = string(data.get("id")), string(data.get("name"))
        turn = self._calls.call(stamp, call, tool, data.get("input"), group=stamp.record)
        if tool not in _AGENTS or not call:
            return [turn]
        return [turn, *(Note(stamp.line, Fact.SUBAGENT, child, about=call) for child in (call, f"{message}$${call}"))]

    def _result(self, kind: str, data: Record, stamp: RecordStamp) -> list[Turn]:
        if kind != "tool_result":
            return []
        call, text = string(data.get("tool_call_id")), string(data.get("content"))
        failed = data.get("is_error") is True
        return [self._calls.result(stamp, call, text, failed=failed, tool=string(data.get("name")))]


def _text(parts: list[tuple[str, Record]]) -> str:
    return clean("\n".join(string(data.get("text")) for kind, data in parts if kind == "text"))


class Crush(DatabaseFormat):
    """Sessions in the database of each project that Crush lists."""

    agent = "crush"
    reader_class = CrushReader
    database_name = _NAME
    session_table = Table(
        "sessions",
        frozenset({"id", "title"}),
        known=frozenset({"parent_session_id", "created_at"}),
        order="created_at",
        changing=frozenset(
            {
                *("message_count", "prompt_tokens", "completion_tokens", "cost", "updated_at"),
                *("summary_message_id", "todos"),
            }
        ),
    )
    message_table = Table(
        "messages",
        frozenset({"id", "session_id", "role", "parts"}),
        known=frozenset({"model", "provider", "created_at", "is_summary_message"}),
        session="session_id",
        order="created_at, rowid",
        json=frozenset({"parts"}),
        changing=frozenset({"updated_at", "finished_at"}),
    )
    parent_fields, folder_fields = ("parent_session_id",), ("folder",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the data folders of the projects that Crush lists."""
        return [(Path(folder), _NAME) for folder in _projects()]

    def _lines(
        self, database: ForeignDatabase, session_id: str, header: Row, others: Sequence[Table]
    ) -> Iterator[bytes]:
        folder = str(database.path.parent)
        project = _projects().get(folder) or str(database.path.parent.parent)
        return super()._lines(database, session_id, {**header, "folder": project}, others)


def _projects() -> dict[str, str]:
    """Return the folder of each listed project by its data folder. Crush lists projects since version 0.25."""
    folder = Path(os.environ.get("CRUSH_GLOBAL_DATA") or data_home() / "crush").expanduser()
    projects = mappings(json_file(folder / "projects.json").get("projects"))
    folders = {string(project.get("data_dir")): string(project.get("path")) for project in projects}
    return {data_dir: folder for data_dir, folder in folders.items() if Path(data_dir).is_absolute()}


FORMAT: ContainerFormat = Crush()
