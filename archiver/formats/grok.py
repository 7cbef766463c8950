"""Support for Grok Build, the coding agent `grok` of xAI.

Each session is a folder in `~/.grok/sessions/<project>`. `chat_history.jsonl` contains the model's context, without
times. `updates.jsonl` contains what was displayed, from which the times and the failures of tools are taken.
`docs/formats/grok.md` names the sources.

- Supported: prompts, text that the program added, replies, reasoning, tool calls with results, searches on the web,
  compactions, titles, models, branches, sub-agents, forks.
- Not supported: encrypted reasoning, token counts, displayed text that a compaction removed from the context.
- Tested with: the published source, and files of versions 0.2 to 1.0 that other readers use as fixtures.
- Test data: `examples/grok.jsonl`, `agents/grok` of agent-sessions, and `grok-build` of agentsview.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Session, SessionKind, Turn
from ..lines import Line, Record, clean, decode
from . import record_reader
from .container_formats import SplitFormat, message_of
from .containers import exact_json, header_of, message_line
from .json_values import content_blocks, first_string, instant, joined_text, json_file, mapping, mappings, string
from .record_reader import RecordReader
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type

_HISTORY, _UPDATES, _SUMMARY = "chat_history.jsonl", "updates.jsonl", "summary.json"
_HEADER = (
    "parent_session_id", "session_kind", "forked_at", "generated_title", "session_summary", "current_model_id",
    "head_branch", "git_root_dir", "agent_name", "created_at",
)  # fmt: skip
_FACTS = {
    Fact.PARENT: ("parent_session_id",),
    Fact.CWD: ("cwd",),
    Fact.BRANCH: ("head_branch",),
    Fact.MODEL: ("current_model_id",),
    Fact.TITLE: ("generated_title", "session_summary"),
}
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TYPED = {"", "interjection"}
"""Reasons for a message of the user that the user typed. The program wrote the messages with other reasons."""


class GrokReader(RecordReader):
    """Reader of one session. A record contains one item of the model's context and, if known, its time."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header_facts(record, line, _FACTS)
        item = message_of(record) or record
        stamp = RecordStamp(line.number, instant(record.get("at") or item.get("timestamp")), record_id("", line.data))
        events = self._item(item, record.get("failed") is True, stamp)
        return events or SkipReason.EMPTY

    def _item(self, item: Record, failed: bool, stamp: RecordStamp) -> RecordEvents:
        match string(item.get("type")) or string(item.get("role")):
            case "user":
                return self._user(item, stamp)
            case "assistant":
                return self._assistant(item, stamp)
            case "reasoning":
                thought = joined_text(item.get("summary"), _block_text)
                return stamp.reply(Kind.THINKING, thought) or SkipReason.ENCRYPTED
            case "tool_result" | "tool":
                text = joined_text(item.get("content"), _block_text)
                return [self._calls.result(stamp, string(item.get("tool_call_id")), text, failed=failed)]
            case "backend_tool_call":
                return self._search(mapping(item.get("kind")), stamp)
            case "system":
                return SkipReason.CONTEXT
            case kind:
                return unknown_type(kind)

    def _user(self, item: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean("\n".join(filter(None, map(_block_text, content_blocks(item.get("content"))))))
        reason = string(item.get("synthetic_reason"))
        if reason == "compaction_meta":
            return self._compacted(text, stamp)
        if reason not in _TYPED:
            return self._injected(text, stamp)
        if text.startswith("<user_info>"):
            return SkipReason.CONTEXT
        asked = "\n\n".join(_QUERY.findall(text)) or text
        return self._prompt(asked, stamp) if asked else []

    def _assistant(self, item: Record, stamp: RecordStamp) -> RecordEvents:
        group = stamp.record
        turns: list[Turn] = [
            *stamp.reply(Kind.THINKING, string(item.get("reasoning_content")), group),
            *stamp.reply(Kind.PROSE, joined_text(item.get("content"), _block_text), group),
        ]
        for call in mappings(item.get("tool_calls")):
            function = mapping(call.get("function")) or call
            arguments, tool = function.get("arguments"), string(function.get("name"))
            turns.append(self._calls.call(stamp, string(call.get("id")), tool, arguments, group=group))
        return [*turns, *self._facts.note(stamp.line, Fact.MODEL, item.get("model_id"))]

    def _search(self, kind: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a call that the service ran. Its result is not recorded."""
        action = mapping(kind.get("action"))
        query = {name: value for name, value in action.items() if name in {"query", "url", "pattern"}}
        arguments = query or first_string(kind, "input", "code")
        return [self._calls.call(stamp, string(kind.get("id")), string(kind.get("tool_type")), arguments)]


def _block_text(block: Record) -> str:
    kind = string(block.get("type"))
    return f"[{kind}]" if kind in {"image", "image_url"} else string(block.get("text"))


class Grok(SplitFormat):
    """Sessions in `~/.grok/sessions/<project>/<session>`."""

    agent = "grok"
    reader_class = GrokReader
    main_files = (_HISTORY,)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folder of the sessions, which are below a folder for each project."""
        home = Path(os.environ.get("GROK_HOME") or Path.home() / ".grok").expanduser()
        return [(home / "sessions", f"*/*/{_HISTORY}")]

    def parts(self, path: Path) -> Iterable[Path]:
        """Return the files of a session."""
        return [path, path.with_name(_UPDATES), path.with_name(_SUMMARY)]

    def session_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the header, and each item of the context with its time. Raises `OSError`.

        An item has no ID, so its ID is the digest of its line. A compaction rewrites the file, and keeps some items. If
        nothing says when the first prompt was typed, its time is that of the session.
        """
        about = json_file(path.with_name(_SUMMARY))
        info = mapping(about.get("info"))
        header = {name: about[name] for name in _HEADER if about.get(name) is not None}
        header |= {"id": string(info.get("id")) or path.parent.name, "cwd": info.get("cwd")}
        header["parent_session_id"] = header.get("parent_session_id") or _parent(path.parent)
        yield message_line(string(header["id"]), conversation=header)
        updates, seen = _Updates(path.with_name(_UPDATES)), Counter[str]()
        started = {"at": instant(about.get("created_at"))}
        with path.open("rb") as file:
            for data in file:
                item = data.strip()
                if item and data.endswith(b"\n"):
                    digest = record_id("", item)
                    seen[digest] += 1
                    item_id = f"{digest}-{seen[digest]}" if seen[digest] > 1 else digest
                    values = updates.about(item)
                    if b'"prompt_index"' in item:
                        values, started = {**started, **values}, {}
                    yield message_line(item_id, message=exact_json(item), **values)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name."""
        header = header_of(head)
        is_subagent = string(header.get("session_kind")).startswith("subagent")
        kind = SessionKind.SUBAGENT if is_subagent else SessionKind.MAIN
        parent = string(header.get("parent_session_id")) if is_subagent else ""
        session_id = string(header.get("id")) or path.stem
        return Session(self.agent, session_id, kind, parent, cwd=string(header.get("cwd")))


class _Updates(Struct):
    """Times and failures from the record of what was displayed."""

    path: Path
    _prompts: dict[int, Milliseconds] = field(default_factory=dict[int, Milliseconds])
    _replies: dict[int, Milliseconds] = field(default_factory=dict[int, Milliseconds])
    _calls: dict[str, list[Milliseconds]] = field(default_factory=dict[str, list[Milliseconds]])
    _failed: set[str] = field(default_factory=set[str])
    _prompt: int = -1

    def __post_init__(self) -> None:
        try:
            with self.path.open("rb") as file:
                for data in file:
                    decoded = decode(data) if b"sessionUpdate" in data else []
                    for record in decoded if isinstance(decoded, list) else []:
                        self._add(record)
        except FileNotFoundError:
            pass
        self._prompt = -1

    def _add(self, record: Record) -> None:
        params = mapping(record.get("params"))
        update = mapping(params.get("update"))
        about = mapping(params.get("_meta")) | mapping(update.get("_meta"))
        at, index = instant(about.get("agentTimestampMs") or record.get("timestamp")), about.get("promptIndex")
        kind, call = string(update.get("sessionUpdate")), string(update.get("toolCallId"))
        if at is None:
            return
        if kind == "user_message_chunk" and isinstance(index, int):
            self._prompt = index
            self._prompts.setdefault(index, at)
        elif kind == "agent_message_chunk":
            self._replies[self._prompt] = at
        elif call:
            self._calls.setdefault(call, []).append(at)
            if update.get("status") == "failed":
                self._failed.add(call)

    def about(self, data: bytes) -> dict[str, object]:
        """Return the time of an item and whether the tool failed, as far as they are known."""
        decoded = decode(data)
        item = decoded[0] if isinstance(decoded, list) else Record()
        index, result = item.get("prompt_index"), string(item.get("tool_call_id"))
        calls = [string(call.get("id")) for call in mappings(item.get("tool_calls"))]
        at: Milliseconds | None = None
        if isinstance(index, int):
            self._prompt = index
            at = self._prompts.get(index)
        elif result or calls:
            times = self._calls.get(result or calls[0], [])
            at = (times[-1] if result else times[0]) if times else None
        elif item.get("type") == "assistant":
            at = self._replies.get(self._prompt)
        values: dict[str, object] = {} if at is None else {"at": at}
        return values | ({"failed": True} if result in self._failed else {})


def _parent(folder: Path) -> str:
    """Return the ID of the session that started a sub-agent, which has a folder for it, or an empty string."""
    paths = record_reader.matching([(folder.parent, f"*/subagents/{record_reader.safe(folder.name)}/meta.json")])
    return next((string(json_file(path).get("parent_session_id")) or path.parents[2].name for path in paths), "")


FORMAT: ContainerFormat = Grok()
