"""Support for Antigravity, the successor of Gemini CLI.

Antigravity stores sessions as JSON lines in `~/.gemini/antigravity*/brain`.

- Supported: prompts, replies, thinking, tool calls with results, checkpoints, messages that Antigravity added.
- Not supported: conversations in `~/.gemini/antigravity*/conversations`, which are encrypted or in databases.
- Not available: the full text of tool results that Antigravity truncated.
- Tested with: fixtures of unknown versions. Steps without number and type are based on descriptions.
- Test data: `examples/antigravity.jsonl`, and `agents/antigravity/cli_*.jsonl` from the project agent-sessions.
"""

import os
import re
from collections import deque
from pathlib import Path
from typing import Any

import orjson

from ...core.conversation import Kind, Session, Turn
from ..lines import Line, Record, clean
from . import record_reader
from .json_values import instant, mapping, mappings, string
from .record_reader import FolderFormat, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, record_id, unknown_type

_TRANSCRIPT = "transcript.jsonl"
_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_USER, _MODEL = "USER_EXPLICIT", "MODEL"
_PROGRAM = {"SYSTEM", "USER_IMPLICIT"}
_NAMES = {"TargetFile": "path", "AbsolutePath": "path", "CommandLine": "command"}


class AntigravityReader(RecordReader):
    """Reader of one session. Each record is a numbered step. In some versions, steps have neither number nor type.

    Tool results have no call ID. They occur in the order of the calls.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._open: deque[str] = deque()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        source, kind = string(record.get("source")), string(record.get("type"))
        text = clean(string(record.get("content")))
        stamp = RecordStamp(line.number, instant(record.get("created_at")), record_id("", line.data))
        if kind == "USER_INPUT" or (source == _USER and not kind):
            return self._user(text, stamp)
        if kind == "PLANNER_RESPONSE" or (source == _MODEL and not kind):
            return self._assistant(record, text, stamp) or SkipReason.EMPTY
        if source == _MODEL:
            call, failed = self._open.popleft() if self._open else "", record.get("status") == "ERROR"
            return [self._calls.result(stamp, call, text, failed=failed, tool=kind.lower())]
        if kind == "CHECKPOINT":
            return self._compacted(text, stamp)
        if source in _PROGRAM:
            return self._injected(text, stamp) or SkipReason.BOOKKEEPING
        return unknown_type(f"{source}/{kind}")

    def _user(self, text: str, stamp: RecordStamp) -> RecordEvents:
        asked = clean("\n\n".join(_REQUEST.findall(text)) or text)
        if not asked:
            return SkipReason.EMPTY
        self._open.clear()
        return self._prompt(asked, stamp)

    def _assistant(self, record: Record, text: str, stamp: RecordStamp) -> list[Turn]:
        group = stamp.record
        turns = stamp.reply(Kind.THINKING, string(record.get("thinking")), group) + stamp.reply(Kind.PROSE, text, group)
        for number, call in enumerate(mappings(record.get("tool_calls"))):
            name = f"{group}:{number}"
            self._open.append(name)
            arguments = {_NAMES.get(key, key): _decoded(value) for key, value in mapping(call.get("args")).items()}
            turns.append(self._calls.call(stamp, name, string(call.get("name")), arguments, group=group))
        return turns


def _decoded(value: Any) -> Any:
    """Return an argument of a tool call. If the argument is a JSON string literal in quotes, decode it."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


class Antigravity(FolderFormat):
    """Sessions in `~/.gemini/antigravity*/brain/<session>/.system_generated/logs/transcript.jsonl`."""

    agent = "antigravity"
    reader_class = AntigravityReader
    home_variable = "GEMINI_CLI_HOME"
    name_pattern = re.compile(re.escape(_TRANSCRIPT))

    def roots(self) -> list[Path]:
        """Return the existing folders `~/.gemini/antigravity*/brain`, including folders that this user cannot read."""
        home = Path(os.environ.get(self.home_variable) or Path.home()).expanduser()
        found = [edition / "brain" for edition in record_reader.matching([(home / ".gemini", "antigravity*")])]
        return [folder for folder in found if record_reader.is_unreadable(folder) or folder.is_dir()]

    def encrypted(self) -> list[Path]:
        """Return the encrypted conversations of older versions, except for those with a transcript."""
        home = Path(os.environ.get(self.home_variable) or Path.home()).expanduser()
        conversations = record_reader.matching([(home / ".gemini", "antigravity*/conversations/*.pb")])
        transcripts = (path for root in self.roots() for path in self.transcripts(root))
        readable = {path.parents[2].name for path in transcripts}
        return [path for path in conversations if path.stem not in readable]

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by the name of its folder."""
        in_session_folder = path.name == _TRANSCRIPT and len(path.parents) > 2
        return Session(self.agent, (path.parents[2].name if in_session_folder else "") or path.stem)

    def _is_from_agent(self, record: Record) -> bool:
        source = record.get("source")
        named = isinstance(source, str) and source in {_USER, _MODEL, *_PROGRAM}
        return ("step_index" in record and "source" in record) or (named and {"created_at", "content"} <= record.keys())

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _TRANSCRIPT


FORMAT: TranscriptFormat = Antigravity()
