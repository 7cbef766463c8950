"""Reads a Kimi CLI session into turns and notes: the journal of its events or, of older versions, the context."""

from collections.abc import Callable, Sequence

from ....core.conversation import Fact, Kind, Session, SessionKind, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..given import BOOKKEEPING, CONTEXT, EMPTY, REPEATED, Given, unknown
from ..json_values import instant, listing, mapping, string
from ..kimi_content import is_envelope, text_of, usage_of
from ..marks import Mark, identity
from ..unrolled import RowReader

_SKIPPED = {
    **dict.fromkeys(
        (
            "ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin", "HookRequest",
            "HookResolved", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "MCPStatusSnapshot", "Notification",
            "PlanDisplay", "QuestionRequest", "QuestionResponse", "StatusUpdate", "StepBegin", "StepInterrupted",
            "StepRetry", "TurnEnd", "role/_checkpoint", "role/_usage", "metadata",
        ),
        BOOKKEEPING,
    ),
    "role/_system_prompt": CONTEXT,
    "role/system": CONTEXT,
    # A sub-agent keeps a journal of its own.
    "SubagentEvent": REPEATED,
    "ToolCallPart": REPEATED,
}  # fmt: skip


class KimiCliReader(RowReader):
    """Reads one file."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "TurnBegin": self._turn,
            "SteerInput": self._turn,
            "ContentPart": self._part,
            "ToolCall": self._call,
            "ToolResult": self._ended,
            "StatusUpdate": self._usage,
            "CompactionEnd": self._compaction,
            "role/user": self._user,
            "role/assistant": self._assistant,
            "role/tool": self._result,
        }

    def _record(self, record: Record, line: Line) -> Given:
        message = mapping(record.get("message"))
        if "role" in record:
            kind, content = f"role/{string(record.get('role'))}", record
        else:
            kind, content = string(message.get("type")) or string(record.get("type")), mapping(message.get("payload"))
        handler = self._handlers.get(kind)
        if handler is None:
            return _SKIPPED.get(kind) or unknown(kind)
        # Contexts hold nothing that tells a message from an equal one in another session.
        named = identity("", line.data) if "timestamp" in record else ""
        return handler(content, Mark(line.number, instant(record.get("timestamp")), named)) or _SKIPPED.get(kind, EMPTY)

    # The journal

    def _turn(self, payload: Record, mark: Mark) -> Given:
        return self._ask(clean(text_of(payload.get("user_input"))), mark)

    def _part(self, payload: Record, mark: Mark) -> Given:
        return self._say([payload], mark)

    def _call(self, payload: Record, mark: Mark) -> Given:
        return [self._asked(payload, mark)]

    def _ended(self, payload: Record, mark: Mark) -> Given:
        value = mapping(payload.get("return_value")) or mapping(payload.get("result"))
        text = text_of(value.get("output")) or string(value.get("message"))
        failed = value.get("is_error") is True
        return [self._calls.result(mark, string(payload.get("tool_call_id")), text, failed=failed)]

    def _usage(self, payload: Record, mark: Mark) -> Given:
        given, made = usage_of(mapping(payload.get("token_usage")))
        step = string(payload.get("message_id")) or mark.record
        return self._facts.learn(mark.line, Fact.USAGE, f"{step} {given} {made}" if given or made else "")

    def _compaction(self, payload: Record, mark: Mark) -> Given:
        text = clean(string(payload.get("summary"))) or "Conversation compacted"
        return [mark.turn(Speaker.HOST, Kind.COMPACTION, text)]

    # The context

    def _user(self, message: Record, mark: Mark) -> Given:
        return self._ask(clean(text_of(message.get("content"))), mark)

    def _assistant(self, message: Record, mark: Mark) -> Given:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
        said = self._say(list(map(mapping, parts)), mark)
        calls = [self._asked(call, mark) for call in map(mapping, listing(message.get("tool_calls")))]
        return [*(said if not isinstance(said, str) else ()), *calls] or EMPTY

    def _result(self, message: Record, mark: Mark) -> Given:
        text = clean(text_of(message.get("content")))
        failed = text.startswith("<system>ERROR")
        return [self._calls.result(mark, string(message.get("tool_call_id")), text, failed=failed)]

    # Both

    def _ask(self, text: str, mark: Mark) -> Given:
        if not text:
            return EMPTY
        if is_envelope(text):
            return [mark.injected(text, shorten=self._shorten)]
        self._calls.clear()
        speaker = Speaker.HOST if self._session.kind is SessionKind.SUBAGENT else Speaker.HUMAN
        return [mark.turn(speaker, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _say(self, parts: Sequence[Record], mark: Mark) -> Given:
        said = ((Kind.THINKING, string(part.get("think"))) if part.get("think") else _prose(part) for part in parts)
        return [mark.turn(Speaker.ASSISTANT, kind, text) for kind, raw in said if (text := clean(raw))] or EMPTY

    def _asked(self, call: Record, mark: Mark) -> Turn:
        function = mapping(call.get("function"))
        return self._calls.call(mark, string(call.get("id")), string(function.get("name")), function.get("arguments"))


def _prose(part: Record) -> tuple[Kind, str]:
    return Kind.PROSE, text_of([part])
