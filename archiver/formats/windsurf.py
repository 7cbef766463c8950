"""Support for Windsurf (since 2026 Devin Desktop).

Windsurf encrypts its conversations in `~/.codeium/windsurf/cascade`. If a hook `post_cascade_response_with_transcript`
is configured, it also writes each conversation as JSON lines to `~/.windsurf/transcripts`. `docs/formats/windsurf.md`
names the sources.

- Supported: prompts, replies, changed files, commands and other steps of such transcripts.
- Not supported: the encrypted conversations. Transcripts have no folder, and most have no times.
- Tested with: the vendor's documentation of the hook, and lines that other readers use as fixtures.
- Test data: `examples/windsurf.jsonl`.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from ...core.conversation import Kind, Session, Turn
from ..lines import Line, Record, clean
from .json_values import first_string, instant, mapping, modified, string
from .record_reader import FolderFormat, RecordReader, matching
from .transcript_format import (
    UUID,
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    record_id,
    unknown_type,
)

_TOOLS: Final = {
    "code_action": "write_file",
    "command_action": "run_command",
    "run_command": "run_command",
    "view_file": "read_file",
    "grep_search": "grep_search",
    "list_directory": "list_directory",
    "mcp_tool": "mcp_tool",
    "web_search": "web_search",
}
"""Types of steps in which Windsurf used a tool, with a name for the tool."""
_OUTPUTS = ("output", "result", "content", "stdout")


class WindsurfReader(RecordReader):
    """Reader of one transcript, with one step per record. The content of a step is in the field named by its type."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        kind = string(record.get("type"))
        step = mapping(record.get(kind))
        stamp = RecordStamp(line.number, instant(record.get("timestamp")))
        match kind:
            case "user_input":
                text = clean(string(step.get("user_response")))
                return self._prompt(text, stamp) if text else SkipReason.EMPTY
            case "planner_response":
                thought = stamp.reply(Kind.THINKING, string(step.get("thinking")))
                return [*thought, *stamp.reply(Kind.PROSE, string(step.get("response")))] or SkipReason.EMPTY
            case _ if kind in _TOOLS:
                return self._step(kind, step, stamp, failed=string(record.get("status")) in {"error", "failed"})
            case _:
                return unknown_type(kind)

    def _step(self, kind: str, step: Record, stamp: RecordStamp, *, failed: bool) -> list[Turn]:
        """Return the call and the result of a tool. One step contains both."""
        arguments = {name: value for name, value in step.items() if name not in _OUTPUTS}
        if "path" in arguments:
            arguments["path"] = _local(string(arguments["path"]))
        tool = first_string(step, "tool_name") or _TOOLS[kind]
        call = self._calls.call(stamp, str(stamp.line), tool, arguments)
        return [call, self._calls.result(stamp, call.call, first_string(step, *_OUTPUTS), failed=failed)]


def _local(path: str) -> str:
    return unquote(urlparse(path).path) if path.startswith("file://") else path


class Windsurf(FolderFormat):
    """Transcripts in `~/.windsurf/transcripts/<conversation>.jsonl`."""

    agent = "windsurf"
    reader_class = WindsurfReader
    home_folder, root_folders = ".windsurf", ("transcripts",)

    def encrypted(self) -> list[Path]:
        """Return the encrypted conversations, except for those with a transcript."""
        conversations = matching([(Path.home() / ".codeium" / "windsurf" / "cascade", "*.pb")])
        readable = {path.stem for root in self.roots() for path in self.transcripts(root)}
        return [path for path in conversations if path.stem not in readable]

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the ID in the file name or else by the first line.

        The modification time of the file is used as the session's time, because steps have none.
        """
        match, at = re.search(UUID, path.stem), modified(path)
        session_id = match[0] if match else record_id("", head.partition(b"\n")[0])
        return Session(self.agent, session_id, started=at, ended=at)

    def _is_from_agent(self, record: Record) -> bool:
        kind = string(record.get("type"))
        return kind in {"user_input", "planner_response"} and isinstance(record.get(kind), dict)


FORMAT: TranscriptFormat = Windsurf()
