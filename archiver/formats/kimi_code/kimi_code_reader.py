"""Reads the journal of one agent of a Kimi Code session into turns and notes.

What a person typed is told twice, when it is sent and when it enters the model's context; the first telling stands.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from ....core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..given import BOOKKEEPING, CONTEXT, EMPTY, REPEATED, Given, unknown
from ..json_values import instant, mapping, string, whole
from ..kimi_content import is_envelope, text_of, usage_of
from ..marks import Mark, identity
from ..prompts import Accounts, Prompts
from ..unrolled import RowReader

_SENT, _TOLD = "sent", "told"
_PERSON = ("user", "")
_FAILED = re.compile(r"Command failed with exit code: \d+\.?\s*$")
_SKIPPED = {
    **dict.fromkeys(("llm.request", "llm.tools_snapshot", "plugin.session_start", "profile.bind"), CONTEXT),
    **dict.fromkeys(
        (
            "config.update", "full_compaction.begin", "full_compaction.complete", "loop/step.begin", "loop/step.end",
            "metadata", "permission.record_approval_result", "permission.set_mode", "plan_mode.enter",
            "plan_mode.exit", "runtime.set_binding", "token_counting.measured", "token_counting.turn_recorded",
            "tools.set_active_tools", "turn.cancel", "turn.ended", "usage.record",
        ),
        BOOKKEEPING,
    ),
}  # fmt: skip


class KimiCodeReader(RowReader):
    """Reads one file."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._accounts = Accounts()
        self._prompts = Prompts()
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "config.update": self._config,
            "profile.bind": self._bound,
            "turn.prompt": self._sent,
            "turn.steer": self._sent,
            "context.append_message": self._told,
            "context.apply_compaction": self._compaction,
            "context.undo": self._undone,
            "loop/content.part": self._part,
            "loop/tool.call": self._call,
            "loop/tool.result": self._result,
            "loop/step.end": self._usage,
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order."""
        return super().read(self._prompts.following(lines))

    def _record(self, record: Record, line: Line) -> Given:
        kind, content = string(record.get("type")), record
        if kind == "context.append_loop_event":
            content = mapping(record.get("event"))
            kind = f"loop/{string(content.get('type'))}"
        handler = self._handlers.get(kind)
        if handler is None:
            return _SKIPPED.get(kind) or unknown(kind)
        # Tools number their calls in each session anew, so only whole lines have an id that is no other's.
        mark = Mark(line.number, instant(record.get("time")), identity("", line.data))
        return handler(content, mark) or _SKIPPED.get(kind) or EMPTY

    # What the session is

    def _config(self, record: Record, mark: Mark) -> Given:
        return self._place(record.get("cwd"), record.get("modelAlias"), mark)

    def _bound(self, record: Record, mark: Mark) -> Given:
        disclosed = mapping(record.get("environmentDisclosure"))
        return self._place(disclosed.get("cwd"), record.get("modelAlias"), mark)

    def _place(self, folder: object, model: object, mark: Mark) -> list[Note]:
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.CWD, string(folder)),
            *learn(mark.line, Fact.MODEL, string(model)),
        ]

    def _usage(self, event: Record, mark: Mark) -> Given:
        given, made = usage_of(mapping(event.get("usage")))
        step = string(event.get("uuid")) or mark.record
        return self._facts.learn(mark.line, Fact.USAGE, f"{step} {given} {made}" if given or made else "")

    # What was said and done

    def _sent(self, record: Record, mark: Mark) -> Given:
        return self._ask(_SENT, _TOLD, record.get("input"), record, mark)

    def _told(self, record: Record, mark: Mark) -> Given:
        message = mapping(record.get("message"))
        if message.get("role") != "user":
            return unknown(f"message/{string(message.get('role'))}")
        return self._ask(_TOLD, _SENT, message.get("content"), message, mark)

    def _ask(self, account: str, other: str, content: object, about: Record, mark: Mark) -> Given:
        text = clean(text_of(content))
        if not text:
            return EMPTY
        if self._accounts.repeats(text, of=other):
            return REPEATED
        by_parent = self._session.kind is SessionKind.SUBAGENT
        by_person = string(mapping(about.get("origin")).get("kind")) in _PERSON
        if is_envelope(text) or not (by_person or by_parent):
            self._accounts.tell(account, text)
            return [mark.injected(text, shorten=self._shorten)]
        self._accounts.clear()
        self._calls.clear()
        self._accounts.tell(account, text)
        self._prompts.add(mark.line)
        speaker = Speaker.HOST if by_parent else Speaker.HUMAN
        return [mark.turn(speaker, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _compaction(self, record: Record, mark: Mark) -> Given:
        text = clean(string(record.get("summary"))) or "Conversation compacted"
        return [mark.turn(Speaker.HOST, Kind.COMPACTION, text)]

    def _undone(self, record: Record, mark: Mark) -> Given:
        return self._prompts.take_back(mark.line, whole(record.get("count"))) or BOOKKEEPING

    def _part(self, event: Record, mark: Mark) -> Given:
        part, group = mapping(event.get("part")), string(event.get("stepUuid"))
        thought = clean(string(part.get("think")))
        if thought:
            return [mark.turn(Speaker.ASSISTANT, Kind.THINKING, thought, group=group)]
        text = clean(text_of([part]))
        return [mark.turn(Speaker.ASSISTANT, Kind.PROSE, text, group=group)] if text else EMPTY

    def _call(self, event: Record, mark: Mark) -> Given:
        call, tool = string(event.get("toolCallId")), string(event.get("name"))
        return [self._calls.call(mark, call, tool, event.get("args"), group=string(event.get("stepUuid")))]

    def _result(self, event: Record, mark: Mark) -> Given:
        result = mapping(event.get("result"))
        text = text_of(result.get("output")) or text_of(result.get("error")) or string(result.get("message"))
        failed = result.get("isError") is True or "error" in result or _FAILED.search(text) is not None
        return [self._calls.result(mark, string(event.get("toolCallId")), text, failed=failed)]
