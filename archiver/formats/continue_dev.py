"""Support for Continue: the extensions of editors, and the program `cn`.

Continue stores one JSON document per session in `~/.continue/sessions`.

- Supported: prompts with the names and the text of attached context, replies, reasoning, tool calls with results,
  compactions, titles, models, token usage.
- Not supported: the state of the input field, logs of requests to the model, rules. No record has a time.
- Tested with: 78 published documents of the extensions and of `cn`, written between 2024 and 2026.
- Test data: `examples/continue-dev.jsonl`.
"""

from pathlib import Path

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, Turn
from ..lines import Line, Record, clean, head_records
from .container_formats import json_of
from .json_values import (
    first_string,
    instant,
    joined_text,
    mapping,
    mappings,
    media_label,
    modified,
    path_of_uri,
    string,
    total,
)
from .record_reader import FolderFormat, RecordReader
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, is_unique, unknown_type, usage

_LIST = "sessions.json"
_UNTITLED = {"New Session", "Untitled Session"}
_FAILED = {"errored", "canceled"}


class ContinueReader(RecordReader):
    """Reader of one session. Each record after the header is one message, with its context and its tool calls.

    The extensions record the result of a call twice: in the reply, and as a message of its own.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._answered = set[str]()
        """IDs of the calls in the current exchange whose results were recorded in the reply."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "message" not in record:
            return self._header(record, line.number)
        message = mapping(record["message"])
        # Many messages have no ID, so that equal messages of two sessions are not copies.
        own_id = string(message.get("id"))
        stamp = RecordStamp(line.number, self._session.started, own_id if is_unique(own_id) else "")
        match string(message.get("role")):
            case "user":
                events = self._user(record, message, stamp)
            case "assistant":
                events = self._assistant(record, message, stamp)
            case "thinking":
                events = [*stamp.reply(Kind.THINKING, joined_text(message.get("content"), _text))]
            case "tool":
                return self._result(message, stamp)
            case "system":
                return SkipReason.CONTEXT
            case role:
                return unknown_type(f"role {role}")
        summary = string(record.get("conversationSummary"))
        return [*events, *(self._compacted(summary, stamp) if summary else [])] or SkipReason.EMPTY

    def _header(self, record: Record, line: int) -> RecordEvents:
        if "sessionId" not in record:
            return unknown_type("")
        title = string(record.get("title"))
        facts = {
            Fact.SESSION: record.get("sessionId"),
            Fact.CWD: path_of_uri(string(record.get("workspaceDirectory"))),
            Fact.TITLE: "" if title in _UNTITLED else title,
            Fact.MODEL: record.get("chatModelTitle"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _user(self, record: Record, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the prompt with the names of its context, and a separate turn with the text of each."""
        context = mappings(record.get("contextItems"))
        names = [f"[{name}]" for item in context if (name := clean(_name(item))) and item.get("hidden") is not True]
        text = "\n".join([clean(joined_text(message.get("content"), _text)), *dict.fromkeys(names)]).strip()
        self._answered.clear()
        events = self._prompt(text, stamp) if text else []
        return [*events, *(turn for item in context for turn in self._injected(string(item.get("content")), stamp))]

    def _assistant(self, record: Record, message: Record, stamp: RecordStamp) -> list[Turn | Note]:
        group, used = stamp.record or f"line-{stamp.line}", mapping(message.get("usage"))
        turns = stamp.reply(Kind.THINKING, string(mapping(record.get("reasoning")).get("text")), group)
        turns += stamp.reply(Kind.PROSE, joined_text(message.get("content"), _text), group)
        states = mappings(record.get("toolCallStates")) or [mapping(record.get("toolCallState"))]
        for state in states if any(states) else _unfinished(message):
            turns += self._call(state, stamp, group)
        # The extensions count in camel case. The program `cn` copies the counts of the model's interface.
        sent = total(used, "promptTokens", "prompt_tokens")
        received = total(used, "completionTokens", "completion_tokens")
        facts = {Fact.USAGE: usage(group, sent, received), Fact.MODEL: used.get("model")}
        return [*turns, *self._facts.notes(stamp.line, facts)]

    def _call(self, state: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        """Return a call, followed by its result if the reply contains it."""
        call = mapping(state.get("toolCall"))
        function, name = mapping(call.get("function")), first_string(state, "toolCallId") or string(call.get("id"))
        if not function:
            return []
        call_turn = self._calls.call(stamp, name, string(function.get("name")), function.get("arguments"), group=group)
        text = joined_text(state.get("output"), lambda item: string(item.get("content")))
        failed = string(state.get("status")) in _FAILED
        if not text and not failed:
            return [call_turn]
        self._answered.add(name)
        return [call_turn, self._calls.result(stamp, name, text, failed=failed)]

    def _result(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        call = string(message.get("toolCallId"))
        if call in self._answered:
            return SkipReason.REPEATED
        return [self._calls.result(stamp, call, joined_text(message.get("content"), _text), failed=False)]


def _text(part: Record) -> str:
    if part.get("type") == "imageUrl":
        return media_label("image", mapping(part.get("imageUrl")).get("url"))
    return string(part.get("text"))


def _unfinished(message: Record) -> list[Record]:
    """Return the states of calls whose results are messages of their own."""
    return [{"toolCall": call} for call in mappings(message.get("toolCalls"))]


def _name(item: Record) -> str:
    """Return the path or the name of a context item, such as a file or the output of a terminal."""
    return path_of_uri(first_string(mapping(item.get("uri")), "value")) or first_string(item, "description", "name")


def _created(path: Path, session_id: str) -> Milliseconds | None:
    """Return the time at which a session was created, from the list beside its file."""
    try:
        listed = mappings(json_of(path.with_name(_LIST)))
    except (OSError, ValueError):
        return None
    dates = (string(each.get("dateCreated")) for each in listed if each.get("sessionId") == session_id)
    date = next(dates, "")
    return instant(int(date)) if date.isdecimal() and len(date) < 17 else instant(date)


class Continue(FolderFormat):
    """Sessions in `~/.continue/sessions/<session>.json`. The file `sessions.json` lists them."""

    agent = "continue-dev"
    reader_class = ContinueReader
    home_variable, home_folder, root_folders = "CONTINUE_GLOBAL_DIR", ".continue", ("sessions",)
    suffixes, other_files = (".json",), frozenset({_LIST})

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by its header or, without a header, by the file name.

        No record has a time. All have the time of the session's creation in the list, or else that of its file.
        """
        header = next(filter(self._is_from_agent, head_records(head)), Record())
        session_id = string(header.get("sessionId")) or path.stem
        changed = modified(path)
        return Session(self.agent, session_id, started=_created(path, session_id) or changed, ended=changed)

    def _is_from_agent(self, record: Record) -> bool:
        return {"sessionId", "workspaceDirectory", "title"} <= record.keys() and isinstance(record["sessionId"], str)


FORMAT: TranscriptFormat = Continue()
