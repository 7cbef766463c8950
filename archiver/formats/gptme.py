"""Support for gptme.

gptme stores one folder per conversation in `~/.local/share/gptme/logs`, with its messages as JSON lines.

- Supported: prompts with the names of files, replies, reasoning, tool calls as code blocks, JSON or XML, their results,
  titles, models, token usage, branches, sub-agents.
- Not supported: events, shortened views of a conversation, attached files. Code blocks in other languages are prose.
- Tested with: the source code of August 2026 and the fixture of another reader, because no real logs are public.
- Test data: `examples/gptme.jsonl`.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import orjson

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Turn
from ..lines import Line, Record, clean
from .json_values import listing, local_instant, mapping, string, total
from .record_reader import FolderFormat, RecordReader, data_home
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type, usage

_MESSAGES, _BRANCHES, _SUBAGENT = "conversation.jsonl", "branches", "subagent-"
_THOUGHT = re.compile(r"<think(?:ing)?>\s*(.*?)(?:<!-- think-sig: .*?-->\s*)?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_SHELLS, _FILE_TOOLS = {"shell", "bash", "sh", "tmux", "ipython", "py"}, {"save", "append", "patch", "read"}
_BLOCK = re.compile(r"^(`{3,})(\w+)(?: ([^\n`]*))?\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(
    r"^@([\w.]+)\(([\w\-:.]+)\):\s*(\{.*?\})[ \t]*$(?=\n\s*(?:@[\w.]+\(|\Z)|\Z)", re.MULTILINE | re.DOTALL
)
_XML = re.compile(r"<tool-use>\s*<(\w+)(?: args=['\"]([^'\"]*)['\"])?>\n?(.*?)\n?</\1>\s*</tool-use>", re.DOTALL)
_FAILED = re.compile(r"\AError\b|^Return code: [1-9]", re.MULTILINE)
_INPUTS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")


class GptmeReader(RecordReader):
    """Reader of one conversation or branch. Each record is a message. Results of tools are messages of the system."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._asked = False
        """True after the first prompt. Messages of the system before it are instructions."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        text = clean(string(record.get("content")))
        stamp = RecordStamp(line.number, local_instant(record.get("timestamp")), record_id("", line.data))
        match string(record.get("role")):
            case "user":
                return self._user(record, text, stamp) or SkipReason.EMPTY
            case "assistant":
                return self._reply(record, text, stamp) or SkipReason.EMPTY
            case "system" | "tool" if not self._asked or record.get("hide") is True:
                return SkipReason.CONTEXT
            case "system" | "tool":
                return self._result(record, text, stamp) or SkipReason.EMPTY
            case role:
                return unknown_type(f"role {role}")

    def _user(self, record: Record, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        names = [f"[file {clean(name)}]" for name in map(string, listing(record.get("files"))) if name]
        prompt = "\n".join(filter(None, [text, *names]))
        self._asked = True
        return self._prompt(prompt, stamp) if prompt else []

    def _reply(self, record: Record, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        """Return thoughts, prose and calls in the order in which they were written."""
        group, events, at = stamp.record, list[Turn | Note](), 0
        thoughts = [turn for each in _THOUGHT.finditer(text) for turn in stamp.reply(Kind.THINKING, each[1], group)]
        text = _THOUGHT.sub("", text)
        for call in _tool_calls(text):
            events += stamp.reply(Kind.PROSE, text[at : call.start], group)
            name = call.name or f"{stamp.line}-{call.start}"
            events.append(self._calls.call(stamp, name, call.tool, call.arguments, group=group))
            at = call.end
        events += stamp.reply(Kind.PROSE, text[at:], group)
        about = mapping(record.get("metadata"))
        counts = mapping(about.get("usage")) or about
        used = usage(group, total(counts, *_INPUTS), total(counts, "output_tokens"))
        facts = {Fact.MODEL: about.get("model"), Fact.USAGE: used}
        return [*thoughts, *events, *self._facts.notes(stamp.line, facts)]

    def _result(self, record: Record, text: str, stamp: RecordStamp) -> list[Turn]:
        """Return the result of a call: of the named call, or else of the earliest call without a result."""
        call = string(record.get("call_id")) or next(iter(self._calls.waiting), "")
        if call not in self._calls.waiting:
            return self._injected(text, stamp)
        return [self._calls.result(stamp, call, text, failed=_FAILED.search(text) is not None)]


class _WrittenCall(NamedTuple):
    """Call of a tool in the text of a reply."""

    start: int
    end: int
    name: str
    """ID of the call. Empty if it has none."""
    tool: str
    arguments: Record


def _tool_calls(text: str) -> list[_WrittenCall]:
    """Return the calls in a reply. A call inside the code of another call is a part of it."""
    found = [_text_call(block, block[2], string(block[3]).strip(), block[4]) for block in _BLOCK.finditer(text)]
    found += [_text_call(tag, tag[1], string(tag[2]).strip(), tag[3]) for tag in _XML.finditer(text)]
    found += [_WrittenCall(*call.span(), call[2], call[1], _object(call[3])) for call in _CALL.finditer(text)]
    calls: list[_WrittenCall] = []
    for call in sorted(found, key=lambda written: written.start):
        if call.arguments and (not calls or call.start >= calls[-1].end):
            calls.append(call)
    return calls


def _text_call(found: re.Match[str], tool: str, path: str, body: str) -> _WrittenCall:
    """Return a call whose argument is text. It has no arguments if the tool is unknown."""
    arguments = Record()
    if tool in _SHELLS:
        arguments = {"command": body.strip()}
    elif tool == "read" or (tool in _FILE_TOOLS and path):
        arguments = {"path": path or body.strip()} | ({} if tool == "read" else {"content": body})
    return _WrittenCall(*found.span(), "", tool, arguments)


def _object(text: str) -> Record:
    try:
        return mapping(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def _settings(folder: Path) -> Record:
    """Return the settings of a conversation, or an empty object if they cannot be read."""
    try:
        return mapping(tomllib.loads((folder / "config.toml").read_text("utf-8", "replace")).get("chat"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


class Gptme(FolderFormat):
    """Conversations in `~/.local/share/gptme/logs/<conversation>`, and their branches in `branches`."""

    agent = "gptme"
    reader_class = GptmeReader
    other_folders = frozenset({"views", "files", "attachments"})
    name_pattern = re.compile(re.escape(_MESSAGES))

    def roots(self) -> list[Path]:
        """Return the folder of the conversations, if it exists."""
        data = data_home() / "gptme"
        mac = Path.home() / "Library/Application Support/gptme"
        logs = os.environ.get("GPTME_LOGS_HOME")
        places = [Path(logs).expanduser()] if logs else [data / "logs", mac / "logs"]
        return [place for place in places if place.is_dir()]

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by its folder. A branch has its conversation as parent."""
        is_branch = path.parent.name == _BRANCHES
        folder = path.parent.parent if is_branch else path.parent
        kind = SessionKind.SUBAGENT if _SUBAGENT in folder.name else SessionKind.MAIN
        settings, link = _settings(folder), folder / "workspace"
        cwd = str(link.resolve()) if link.is_symlink() else string(settings.get("workspace")).removeprefix("@log")
        title, rank = clean(string(settings.get("name"))), 4
        name = f"{folder.name}-{path.stem}" if is_branch else folder.name
        return Session(
            self.agent,
            name or path.stem,
            kind,
            folder.name if is_branch else "",
            cwd=cwd,
            project=self.agent,  # The folder is named like the conversation.
            title=title,
            title_rank=rank if title else -1,
        )

    def _is_from_agent(self, record: Record) -> bool:
        named = {"role", "content", "timestamp"} <= record.keys() and isinstance(record["content"], str)
        return named and not {"type", "id", "uuid", "parts", "sessionId"} & record.keys()

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _MESSAGES or path.parent.name == _BRANCHES


FORMAT: TranscriptFormat = Gptme()
