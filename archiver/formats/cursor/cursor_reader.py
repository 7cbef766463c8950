"""Reader of Cursor conversations.

The reader supports messages of the editor (called bubbles), of command-line chats and of agent transcripts.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from ....core.conversation import Fact, Kind, Milliseconds, Note, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..json_values import content_blocks, first_string, instant, joined_text, mapping, string, total
from ..record_events import RecordEvents, RecordStamp, SkipReason, record_id, unknown_type, usage
from ..record_reader import RecordReader

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_ADDED = tuple(
    f"<{name}>"
    for name in ("additional_data", "external_links", "project_layout", "rules", "system_reminder", "user_info")
)
_TIMESTAMP = re.compile(r"<timestamp>\s*(.*?)\s*</timestamp>\s*", re.DOTALL)
_TIME = re.compile(
    r"(?:\w+, )?(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2}), (?P<year>\d{4}),? (?:at )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?: (?P<half>[AP]M))?"
    r"(?: \((?:UTC|GMT)(?P<zone>(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?)?\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_USER, _ASSISTANT = 1, 2
_CALLS, _RESULTS = {"tool_use", "tool_call", "tool-call"}, {"tool_result", "tool-result"}
_THOUGHTS = {"thinking", "reasoning", "redacted-reasoning"}
_ENDED = {"completed", "error", "cancelled", "rejected"}
_FAILED = {"error", "rejected"}


class CursorReader(RecordReader):
    """Reader of one conversation."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record and "role" not in record:
            return self._header(mapping(record["conversation"]), line.number)
        if "bubble" in record:
            return self._bubble(mapping(record["bubble"]), line)
        if record.get("type") == "turn_ended":
            return SkipReason.BOOKKEEPING
        message = mapping(record.get("message"))
        role = string(record.get("role")) or string(message.get("role"))
        # Without an ID, two equal lines may be different messages.
        own_id = record_id("", line.data) if string(record.get("id")) else ""
        stamp = RecordStamp(line.number, instant(record.get("timestamp")), own_id)
        return self._message(role, message.get("content"), stamp)

    def _header(self, header: Record, line: int) -> RecordEvents:
        facts = {
            Fact.SESSION: first_string(header, "composerId", "agentId"),
            Fact.TITLE: first_string(header, "name", "chatTitle"),
            Fact.CWD: header.get("folder"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    # Bubbles of the editor.

    def _bubble(self, bubble: Record, line: Line) -> RecordEvents:
        at = instant(bubble.get("createdAt")) or instant(mapping(bubble.get("timingInfo")).get("clientStartTime"))
        stamp = RecordStamp(line.number, at, record_id("", line.data))
        kind, text = bubble.get("type"), clean(first_string(bubble, "text", "rawText"))
        if kind in (_USER, "user"):
            cwd = self._facts.note(line.number, Fact.CWD, bubble.get("workspaceProjectDir"))
            return [*self._prompt(text, stamp), *cwd] if text else SkipReason.EMPTY
        if kind not in (_ASSISTANT, "ai"):
            return unknown_type(f"bubble {kind}") if bubble else SkipReason.EMPTY
        return [
            *stamp.reply(Kind.THINKING, string(mapping(bubble.get("thinking")).get("text"))),
            *stamp.reply(Kind.PROSE, text),
            *self._tool(mapping(bubble.get("toolFormerData")), stamp),
            *self._about(bubble, line.number),
        ] or SkipReason.EMPTY

    def _tool(self, tool: Record, stamp: RecordStamp) -> Sequence[Turn]:
        name, call, status = string(tool.get("name")), string(tool.get("toolCallId")), string(tool.get("status"))
        if not name:
            return ()
        turns = [self._calls.call(stamp, call, name, tool.get("rawArgs") or tool.get("params"))]
        result = first_string(tool, "result", "error")
        if status in _ENDED or (result and not status):
            turns.append(self._calls.result(stamp, call, result, failed=status in _FAILED))
        return turns

    def _about(self, bubble: Record, line: int) -> list[Note]:
        counts, name = mapping(bubble.get("tokenCount")), string(bubble.get("bubbleId")) or str(line)
        used = usage(name, total(counts, "inputTokens"), total(counts, "outputTokens"))
        model = mapping(bubble.get("modelInfo")).get("modelName")
        return self._facts.notes(line, {Fact.MODEL: model, Fact.USAGE: used})

    # Messages of chats and agents.

    def _message(self, role: str, content: object, stamp: RecordStamp) -> RecordEvents:
        blocks = content_blocks(content)
        match role:
            case "system":
                return SkipReason.CONTEXT
            case "user" | "tool":
                results = [self._result(block, stamp) for block in blocks if string(block.get("type")) in _RESULTS]
                text = "\n".join(filter(None, map(_text, blocks))) if role == "user" else ""
                asked, stamp = _asked(text), replace(stamp, at=stamp.at or _time_in(text))
                return results or (self._prompt(asked, stamp) if asked else SkipReason.EMPTY)
            case "assistant":
                return [turn for block in blocks for turn in self._block(block, stamp)] or SkipReason.EMPTY
            case _:
                return unknown_type(f"role {role}")

    def _block(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        kind = string(block.get("type"))
        if kind in _CALLS:
            arguments = block.get("input") or block.get("args")
            return [self._calls.call(stamp, _call(block), first_string(block, "name", "toolName"), arguments)]
        if kind in _RESULTS:
            return [self._result(block, stamp)]
        text = string(block.get("thinking")) or _text(block)
        return stamp.reply(Kind.THINKING if kind in _THOUGHTS else Kind.PROSE, text)

    def _result(self, block: Record, stamp: RecordStamp) -> Turn:
        text = joined_text(block.get("content") or block.get("result") or block.get("output"), _text)
        failed = block.get("is_error") is True or block.get("isError") is True
        name = first_string(block, "name", "toolName")
        return self._calls.result(stamp, _call(block), text, failed=failed, tool=name)


def _call(block: Record) -> str:
    return first_string(block, "id", "toolCallId", "tool_use_id")


def _text(block: Record) -> str:
    return string(block.get("text"))


def _asked(text: str) -> str:
    """Return the text that the user typed, without text that the program added.

    The result is empty if the user typed nothing.
    """
    typed, rest = _QUERY.findall(text), clean(_TIMESTAMP.sub("", text))
    if typed:
        return clean("\n\n".join(typed))
    return "" if rest.startswith(_ADDED) else rest


def _time_in(text: str) -> Milliseconds | None:
    """Return the time that the program wrote above a prompt, such as `Monday, Jul 6, 2026, 1:06 PM (UTC+3)`.

    A time without a time zone is read as UTC.
    """
    written = _TIMESTAMP.search(text)
    found = _TIME.fullmatch(written[1]) if written else None
    if written is None or found is None or found["month"] not in _MONTHS:
        return instant(written[1]) if written else None
    hour = int(found["hour"]) % 12 + 12 * (found["half"] == "PM") if found["half"] else int(found["hour"])
    offset = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    try:
        local = datetime(
            int(found["year"]),
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            hour,
            int(found["minute"]),
            int(found["second"] or 0),
            tzinfo=UTC,
        )
        return round((local + (offset if found["sign"] == "-" else -offset)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
