"""Support for Mistral Vibe.

Vibe stores one folder per session in `~/.vibe/logs/session`: the messages as JSON lines, and a file that describes the
session. Versions before 2.0 stored one JSON document per session.

- Supported: prompts with the names of pictures, text that the program added, replies, reasoning, tool calls with
  results, titles, models, branches, times of sessions, sub-agents, sessions that continue others.
- Not supported: token usage, which is only known for the whole session; scheduled tasks. Messages have no time.
- Tested with: the source code of July 2026 and fixtures of another reader, because no real files are public.
- Test data: `examples/vibe.jsonl`.
"""

import re
from pathlib import Path

from ...core.conversation import Fact, Kind, Session, SessionKind, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import first_string, instant, json_file, mapping, mappings, string
from .record_reader import FolderFormat, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, is_unique, unknown_type

_MESSAGES, _ABOUT, _AGENTS = "messages.jsonl", "meta.json", "agents"
_TAGGED = re.compile(r"<(tool_error|user_cancellation|vibe_stop_event|vibe_warning)>(.*?)</\1>", re.DOTALL)
_FAILURES = {"tool_error", "user_cancellation"}


class VibeReader(RecordReader):
    """Reader of one session. Each record is a message."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "role" not in record:
            return self._header(mapping(record.get("metadata")), line.number)
        own_id = string(record.get("message_id"))
        stamp = RecordStamp(line.number, self._session.started, own_id if is_unique(own_id) else "")
        text = clean(string(record.get("content")))
        match string(record.get("role")):
            case "user":
                return self._user(record, text, stamp) or SkipReason.EMPTY
            case "assistant":
                return self._reply(record, text, stamp) or SkipReason.EMPTY
            case "tool":
                return [self._result(record, text, stamp)]
            case "system":
                return SkipReason.CONTEXT
            case role:
                return unknown_type(f"role {role}")

    def _header(self, about: Record, line: int) -> RecordEvents:
        """Return the facts of a document, which versions before 2.0 wrote."""
        if not about:
            return unknown_type("")
        environment = mapping(about.get("environment"))
        facts = {Fact.SESSION: about.get("session_id"), Fact.CWD: environment.get("working_directory")}
        return self._facts.notes(line, facts | {Fact.BRANCH: about.get("git_branch")}) or SkipReason.REPEATED

    def _user(self, record: Record, text: str, stamp: RecordStamp) -> RecordEvents:
        if record.get("injected") is True:
            return self._injected(text, stamp)
        names = [f"[{clean(name)}]" for each in mappings(record.get("images")) if (name := string(each.get("alias")))]
        prompt = "\n".join(filter(None, [text, *names]))
        return self._prompt(prompt, stamp) if prompt else []

    def _reply(self, record: Record, text: str, stamp: RecordStamp) -> list[Turn]:
        group = stamp.record or f"line-{stamp.line}"
        turns = stamp.reply(Kind.THINKING, string(record.get("reasoning_content")), group)
        turns += stamp.reply(Kind.PROSE, text, group)
        for call in mappings(record.get("tool_calls")):
            function = mapping(call.get("function"))
            tool, arguments = string(function.get("name")), function.get("arguments")
            turns.append(self._calls.call(stamp, string(call.get("id")), tool, arguments, group=group))
        return turns

    def _result(self, record: Record, text: str, stamp: RecordStamp) -> Turn:
        """Return a result. The program encloses errors and refusals in a tag."""
        failed = any(tagged[1] in _FAILURES for tagged in _TAGGED.finditer(text))
        text = _TAGGED.sub(lambda tagged: tagged[2], text)
        call, tool = string(record.get("tool_call_id")), string(record.get("name"))
        return self._calls.result(stamp, call, text, failed=failed, tool=tool)


class Vibe(FolderFormat):
    """Sessions in `~/.vibe/logs/session/<session>`, and their sub-agents in `<session>/agents`."""

    agent = "vibe"
    reader_class = VibeReader
    home_variable, home_folder, root_folders = "VIBE_HOME", ".vibe", ("logs/session",)
    suffixes, other_files = (".jsonl", ".json"), frozenset({_ABOUT})

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, described by the file beside it or by the header of its document.

        No record has a time. All have the time at which the session started.
        """
        about = json_file(path.with_name(_ABOUT)) if path.name == _MESSAGES else Record()
        if not about:
            about = mapping(next(head_records(head), Record()).get("metadata"))
        folder = path.parent if path.name == _MESSAGES else path
        is_subagent = folder.parent.name == _AGENTS
        above = json_file(folder.parent.parent / _ABOUT) if is_subagent else Record()
        parent = string(above.get("session_id")) or first_string(about, "parent_session_id")
        title, config = clean(string(about.get("title"))), mapping(about.get("config"))
        model = first_string(config, "active_model") or string(about.get("model"))
        return Session(
            self.agent,
            string(about.get("session_id")) or folder.stem,
            SessionKind.SUBAGENT if is_subagent else SessionKind.MAIN,
            parent,
            cwd=string(mapping(about.get("environment")).get("working_directory")),
            branch=string(about.get("git_branch")),
            title=title,
            title_rank=4 if title else -1,
            models=[model] if model else [],
            started=instant(about.get("start_time")),
            ended=instant(about.get("end_time")),
        )

    def _is_from_agent(self, record: Record) -> bool:
        is_message = {"role", "content", "message_id"} <= record.keys() and "timestamp" not in record
        return is_message or "session_id" in mapping(record.get("metadata"))

    def _has_transcript_path(self, path: Path) -> bool:
        return path.name == _MESSAGES or path.suffix == ".json"


FORMAT: TranscriptFormat = Vibe()
