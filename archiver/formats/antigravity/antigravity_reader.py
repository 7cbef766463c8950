"""Reader of Antigravity sessions."""

import re
from collections import deque
from typing import Any

import orjson

from ....core.conversation import Kind, Session, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..json_values import instant, mapping, mappings, string
from ..record_events import RecordEvents, RecordStamp, SkipReason, record_id, unknown_type
from ..record_reader import RecordReader

_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_NAMES = {"TargetFile": "path", "AbsolutePath": "path", "CommandLine": "command"}


class AntigravityReader(RecordReader):
    """Reader of one session, with a numbered step per record.

    Results contain no call ID. They occur in the order of the calls.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._open: deque[str] = deque()

    def _record(self, record: Record, line: Line) -> RecordEvents:
        source, kind = string(record.get("source")), string(record.get("type"))
        text = clean(string(record.get("content")))
        stamp = RecordStamp(line.number, instant(record.get("created_at")), record_id("", line.data))
        if kind == "USER_INPUT":
            return self._user(text, stamp)
        if kind == "PLANNER_RESPONSE":
            return self._assistant(record, text, stamp) or SkipReason.EMPTY
        if source == "MODEL" and kind:
            call, failed = self._open.popleft() if self._open else "", record.get("status") == "ERROR"
            return [self._calls.result(stamp, call, text, failed=failed, tool=kind.lower())]
        if kind == "CHECKPOINT":
            return self._compacted(text, stamp)
        if source == "SYSTEM":
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
        turns = stamp.said(Kind.THINKING, string(record.get("thinking")), group) + stamp.said(Kind.PROSE, text, group)
        for number, call in enumerate(mappings(record.get("tool_calls"))):
            name = f"{group}:{number}"
            self._open.append(name)
            arguments = {_NAMES.get(key, key): _decoded(value) for key, value in mapping(call.get("args")).items()}
            turns.append(self._calls.call(stamp, name, string(call.get("name")), arguments, group=group))
        return turns


def _decoded(value: Any) -> Any:
    """Return a decoded argument; the program may encode it as JSON within JSON."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
