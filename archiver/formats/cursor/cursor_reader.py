"""Reads the messages of a Cursor conversation, from wherever it keeps them, into turns and notes."""

import re
from collections.abc import Sequence

from ....core.conversation import Fact, Kind, Note, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..given import BOOKKEEPING, CONTEXT, EMPTY, REPEATED, Given, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Mark, identity
from ..unrolled import TITLE_RANK, RowReader

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_ADDED = tuple(
    f"<{name}>"
    for name in ("additional_data", "external_links", "project_layout", "rules", "system_reminder", "user_info")
)
_USER, _ASSISTANT = 1, 2
_CALLS, _RESULTS = {"tool_use", "tool_call", "tool-call"}, {"tool_result", "tool-result"}
_THOUGHTS = {"thinking", "reasoning", "redacted-reasoning"}
_ENDED = {"completed", "error", "cancelled", "rejected"}
_FAILED = {"error", "rejected"}


class CursorReader(RowReader):
    """Reads one conversation: bubbles of the editor, or messages of an agent."""

    def _record(self, record: Record, line: Line) -> Given:
        if "conversation" in record and "role" not in record:
            return self._header(mapping(record["conversation"]), line.number)
        if "bubble" in record:
            return self._bubble(mapping(record["bubble"]), line)
        if record.get("type") == "turn_ended":
            return BOOKKEEPING
        message, number = mapping(record.get("message")), string(record.get("id"))
        role = string(record.get("role")) or string(message.get("role"))
        # Without an id, the same words may be said twice.
        mark = Mark(line.number, instant(record.get("timestamp")), identity("", line.data) if number else "")
        return self._message(role, message.get("content"), mark)

    def _header(self, header: Record, line: int) -> Given:
        learn = self._facts.learn
        number = string(header.get("composerId")) or string(header.get("agentId"))
        return [
            *learn(line, Fact.SESSION, number),
            *learn(line, Fact.TITLE, string(header.get("name")) or string(header.get("chatTitle")), rank=TITLE_RANK),
            *learn(line, Fact.CWD, string(header.get("folder"))),
        ] or REPEATED

    # Bubbles

    def _bubble(self, bubble: Record, line: Line) -> Given:
        at = instant(bubble.get("createdAt")) or instant(mapping(bubble.get("timingInfo")).get("clientStartTime"))
        mark = Mark(line.number, at, identity("", line.data))
        kind = bubble.get("type")
        if kind in (_USER, "user"):
            text = clean(string(bubble.get("text")) or string(bubble.get("rawText")))
            place = self._facts.learn(line.number, Fact.CWD, string(bubble.get("workspaceProjectDir")))
            return [*self._typed(text, mark), *place] if text else EMPTY
        if kind not in (_ASSISTANT, "ai"):
            return unknown(f"bubble {kind}") if bubble else EMPTY
        return [*self._said(bubble, mark), *self._about(bubble, line.number)] or EMPTY

    def _said(self, bubble: Record, mark: Mark) -> Sequence[Turn]:
        thought = clean(string(mapping(bubble.get("thinking")).get("text")))
        text = clean(string(bubble.get("text")) or string(bubble.get("rawText")))
        return [
            *([mark.turn(Speaker.ASSISTANT, Kind.THINKING, thought)] if thought else []),
            *([mark.turn(Speaker.ASSISTANT, Kind.PROSE, text)] if text else []),
            *self._tool(mapping(bubble.get("toolFormerData")), mark),
        ]

    def _tool(self, tool: Record, mark: Mark) -> Sequence[Turn]:
        name, call, status = string(tool.get("name")), string(tool.get("toolCallId")), string(tool.get("status"))
        if not name:
            return ()
        turns = [self._calls.call(mark, call, name, tool.get("rawArgs") or tool.get("params"))]
        result = string(tool.get("result")) or string(tool.get("error"))
        if status in _ENDED or (result and not status):
            turns.append(self._calls.result(mark, call, result, failed=status in _FAILED))
        return turns

    def _about(self, bubble: Record, line: int) -> Sequence[Note]:
        count = mapping(bubble.get("tokenCount"))
        given, made = whole(count.get("inputTokens")), whole(count.get("outputTokens"))
        learn, name = self._facts.learn, string(bubble.get("bubbleId")) or str(line)
        return [
            *learn(line, Fact.MODEL, string(mapping(bubble.get("modelInfo")).get("modelName"))),
            *learn(line, Fact.USAGE, f"{name} {given} {made}" if given or made else ""),
        ]

    # Messages

    def _message(self, role: str, content: object, mark: Mark) -> Given:
        blocks: list[Record] = [mapping(block) for block in listing(content)]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else blocks
        match role:
            case "system":
                return CONTEXT
            case "user" | "tool":
                results = [self._result(block, mark) for block in blocks if string(block.get("type")) in _RESULTS]
                asked = _asked("\n".join(filter(None, map(_text, blocks)))) if role == "user" else ""
                return results or (self._typed(asked, mark) if asked else EMPTY)
            case "assistant":
                return [turn for block in blocks if (turn := self._block(block, mark)) is not None] or EMPTY
            case _:
                return unknown(f"role {role}")

    def _typed(self, text: str, mark: Mark) -> Sequence[Turn | Note]:
        self._calls.clear()
        return [mark.turn(Speaker.HUMAN, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _block(self, block: Record, mark: Mark) -> Turn | None:
        kind = string(block.get("type"))
        if kind in _CALLS:
            name = string(block.get("name")) or string(block.get("toolName"))
            return self._calls.call(mark, _call(block), name, block.get("input") or block.get("args"))
        if kind in _RESULTS:
            return self._result(block, mark)
        text = clean(string(block.get("thinking")) or _text(block))
        return mark.turn(Speaker.ASSISTANT, Kind.THINKING if kind in _THOUGHTS else Kind.PROSE, text) if text else None

    def _result(self, block: Record, mark: Mark) -> Turn:
        content = block.get("content") or block.get("result") or block.get("output")
        text = (
            content if isinstance(content, str) else "\n".join(filter(None, map(_text, map(mapping, listing(content)))))
        )
        failed = block.get("is_error") is True or block.get("isError") is True
        name = string(block.get("name")) or string(block.get("toolName"))
        return self._calls.result(mark, _call(block), text, failed=failed, tool=name)


def _call(block: Record) -> str:
    return next((string(block[name]) for name in ("id", "toolCallId", "tool_use_id") if block.get(name)), "")


def _text(block: Record) -> str:
    return string(block.get("text"))


def _asked(text: str) -> str:
    """What the person typed, without what the program put around it; empty where only the program speaks."""
    typed, rest = _QUERY.findall(text), clean(text)
    if typed:
        return clean("\n\n".join(typed))
    return "" if rest.startswith(_ADDED) else rest
