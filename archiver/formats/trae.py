"""Support for Trae, and for trajectories of Trae Agent.

The editor Trae stored conversations in its `state.vscdb` databases. Later versions encrypt them in
`ModularData/ai-agent/database.db`, and only the prompts of a workspace remain readable. The program Trae Agent saves
each run as a JSON document. `docs/formats/trae.md` names the sources.

- Supported: prompts, replies, plans with tool calls and results, models and folders of readable conversations; prompts
  of encrypted ones; tasks, replies, tool calls with results, errors and token usage of trajectories.
- Not supported: encrypted conversations.
- Tested with: descriptions of the databases, and the published source of Trae Agent.
- Test data: `examples/trae.jsonl`.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse

import orjson

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ..lines import Line, Record, clean, head_records
from .container_formats import ContainedFormat, message_of
from .containers import ForeignDatabase, as_text, file_name, fingerprint, header_of, message_line
from .json_values import first_string, json_file, listing, local_instant, mapping, mappings, string, total
from .record_reader import RecordReader
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

_DATABASE = "state.vscdb"
_SESSIONS, _INPUTS = "memento/icube-ai-agent-storage", "icube-ai-agent-storage-input-history"
_OLDER = "memento/icube-ai-%chat-storage-%"
"""Pattern of the keys under which early versions stored conversations."""
_PRODUCTS = ("Trae", "Trae CN", "TRAE SOLO", "TRAE SOLO CN")
_TRAJECTORY = re.compile(r"trajectory_\d{8}_\d{6}\.json")


class TraeReader(RecordReader):
    """Reader of one conversation or of one trajectory."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header_facts(
                record, line, {Fact.CWD: ("cwd",), Fact.TITLE: ("title",), Fact.MODEL: ("model",)}
            )
        message = message_of(record) or record
        at = local_instant(message.get("timestamp") or message.get("start_time"))
        stamp = RecordStamp(line.number, at, record_id("", f"{self._session.native_id}/".encode() + line.data))
        if "task" in message and "agent_steps" not in message:
            return self._task(message, stamp)
        if "step_number" in message:
            return self._step(message, stamp) or SkipReason.EMPTY
        if "input_messages" in message:
            return self._usage(message, stamp) or SkipReason.REPEATED
        return self._message(message, stamp) or SkipReason.EMPTY

    # Conversations of the editor.

    def _message(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(first_string(message, "content", "inputText", "text"))
        match string(message.get("role")):
            case "user":
                return self._prompt(text, stamp) if text else []
            case "assistant" | "agent":
                work = mapping(message.get("agentTaskContent"))
                turns = [turn for item in _plan(work) for turn in self._item(item, stamp)]
                said = text or first_string(work, "content", "text", "proposal")
                model = self._facts.note(stamp.line, Fact.MODEL, message.get("model"))
                return [*turns, *stamp.reply(Kind.PROSE, said, stamp.record), *model]
            case "system":
                return SkipReason.CONTEXT
            case role:
                return unknown_type(f"role {role}")

    def _item(self, item: object, stamp: RecordStamp) -> list[Turn]:
        """Return the turns of an item of a plan: a text, or a thought with a tool call."""
        if isinstance(item, str):
            return stamp.reply(Kind.PROSE, item, stamp.record)
        values = mapping(item)
        turns = stamp.reply(Kind.THINKING, string(values.get("thought")), stamp.record)
        if tool := first_string(values, "toolName"):
            call = f"{stamp.record}/{len(self._calls.waiting)}"
            turns.append(self._calls.call(stamp, call, tool, values.get("params"), group=stamp.record))
            if "result" in values:
                turns.append(self._calls.result(stamp, call, _text(values["result"]), failed=False))
            return turns
        return turns + stamp.reply(Kind.PROSE, string(values.get("content")), stamp.record)

    # Trajectories of Trae Agent.

    def _task(self, run: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(string(run.get("task")))
        model = self._facts.note(stamp.line, Fact.MODEL, run.get("model"))
        return [*(self._prompt(text, stamp) if text else []), *model] or SkipReason.EMPTY

    def _step(self, step: Record, stamp: RecordStamp) -> RecordEvents:
        said = string(mapping(step.get("llm_response")).get("content"))
        turns: list[Turn | Note] = [*stamp.reply(Kind.PROSE, said, stamp.record)]
        for call in mappings(step.get("tool_calls")):
            name, arguments = string(call.get("name")), call.get("arguments")
            if name == "sequentialthinking":
                turns += stamp.reply(Kind.THINKING, string(mapping(arguments).get("thought")), stamp.record)
                continue
            turns.append(self._calls.call(stamp, string(call.get("call_id")), name, arguments, group=stamp.record))
        for result in mappings(step.get("tool_results")):
            call_id = string(result.get("call_id"))
            if call_id in self._calls.waiting:
                text = first_string(result, "result", "error")
                turns.append(self._calls.result(stamp, call_id, text, failed=result.get("success") is False))
        turns += stamp.reply(Kind.THINKING, string(step.get("reflection")), stamp.record)
        return [*turns, *self._injected(string(step.get("error")), stamp, failed=True)]

    def _usage(self, interaction: Record, stamp: RecordStamp) -> list[Note]:
        used = mapping(mapping(interaction.get("response")).get("usage"))
        tokens_in = total(used, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return self._facts.note(stamp.line, Fact.USAGE, usage(stamp.record, tokens_in, total(used, "output_tokens")))


def _plan(work: Record) -> list[object]:
    return listing(mapping(work.get("guideline")).get("planItems"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else first_string(mapping(value), "content", "text", "output")


class Trae(ContainedFormat):
    """Conversations in the databases of the editor, and trajectories in files that the user names."""

    agent = "trae"
    reader_class = TraeReader
    suffixes = (".json",)
    name_pattern = _TRAJECTORY
    folder_fields = ("cwd",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders with the databases of each variant of the editor, on macOS and Linux."""
        for folder in _product_folders():
            yield folder / "User", f"workspaceStorage/*/{_DATABASE}"
            yield folder / "User", f"globalStorage/{_DATABASE}"

    def encrypted(self) -> list[Path]:
        """Return the databases that later versions encrypt."""
        databases = (folder / "ModularData" / "ai-agent" / "database.db" for folder in _product_folders())
        return [path for path in databases if path.is_file()]

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database of the editor."""
        is_trae = any(folder.name in _PRODUCTS for folder in path.parents)
        return is_trae and path.name == _DATABASE and path.is_file()

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield each conversation and, if none is readable, the prompts of the workspace.

        Raises `SourceUnreadable`.
        """
        database, cwd = ForeignDatabase(path), _folder(path.with_name("workspace.json"))
        if not database.columns("ItemTable"):
            return
        rows = database.rows(
            "SELECT key, value FROM ItemTable WHERE key IN (?1, ?2) OR key LIKE ?3", (_SESSIONS, _INPUTS, _OLDER)
        )
        values = {as_text(key): _loaded(as_text(value)) for key, value in rows}
        conversations = [item for key, value in values.items() if key != _INPUTS for item in _conversations(value)]
        for conversation in conversations:
            header = {name: value for name, value in conversation.items() if name in {"title", "model"}}
            header |= {"id": first_string(conversation, "sessionId", "id"), "cwd": cwd}
            yield _session(path, header, mappings(conversation.get("messages")))
        if inputs := mappings(values.get(_INPUTS)) if not conversations else []:
            header = {"id": f"prompts-{path.parent.name}", "cwd": cwd}
            yield _session(path, header, [{"role": "user", "inputText": typed.get("inputText")} for typed in inputs])

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, for a trajectory, by the file name and the time."""
        session = super().identify(path, head)
        if not header_of(head):
            started = (string(record.get("start_time")) for record in head_records(head))
            session.native_id = "@".join(filter(None, (path.stem, next(filter(None, started), ""))))
        return session

    def _is_from_agent(self, record: Record) -> bool:
        return {"task", "start_time", "provider", "max_steps"} <= record.keys()


def _product_folders() -> Iterator[Path]:
    """Yield the possible settings folders of each variant of the editor, on macOS and Linux."""
    home = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config").expanduser()
    for folder in (home / "Library" / "Application Support", configuration):
        yield from (folder / product for product in _PRODUCTS)


def _session(path: Path, header: Mapping[str, object], messages: Iterable[Record]) -> ContainedSession:
    session_id, seen = string(header["id"]), Counter[str]()
    lines = [message_line(session_id, conversation=header)]
    for message in messages:
        message_id = string(message.get("id")) or record_id("", orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS))
        seen[message_id] += 1
        number = f"-{seen[message_id]}" if seen[message_id] > 1 else ""
        lines.append(message_line(f"{session_id}/{message_id}{number}", message=message))
    name = file_name(session_id)
    archived = f"{path.parent.name}/{name}"
    return ContainedSession(path / name, archived, fingerprint(*lines), 0, partial(iter, lines))


def _conversations(value: object) -> list[Record]:
    """Return the conversations in a stored value that have an ID and messages."""
    stored = mapping(value)
    conversations = mappings(stored.get("list")) or mappings(stored.get("sessions"))
    return [item for item in conversations if first_string(item, "sessionId", "id") and mappings(item.get("messages"))]


def _loaded(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _folder(workspace: Path) -> str:
    uri = string(json_file(workspace).get("folder"))
    return unquote(urlparse(uri).path) if uri.startswith("file://") else ""


FORMAT: ContainerFormat = Trae()
