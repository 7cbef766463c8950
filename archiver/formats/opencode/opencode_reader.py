"""Reader of OpenCode sessions, from a database, from files or from an export."""

import hashlib
from collections.abc import Sequence

from ....core.conversation import Fact, Kind, Note, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..json_values import first_string, instant, mapping, mappings, string, total
from ..record_events import RecordEvents, RecordStamp, SkipReason, record_id, unknown_type, usage
from ..record_reader import RecordReader
from .opencode_entries import converted, failure, output_of

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
