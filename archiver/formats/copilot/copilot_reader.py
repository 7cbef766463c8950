"""Reads the events of a Copilot CLI session into turns and notes."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ....core.conversation import Fact, Kind, Note, Session, Skipped, Speaker, Turn
from ...files.clipping import clean, one_line
from ...files.lines import Line, Record, records
from ..calls import Calls
from ..echoes import Echoes
from ..given import BOOKKEEPING, CONTEXT, EMPTY, REPEATED, Given, of_records, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Facts, Mark, identity

HOOK_OUTPUT = "hook-output"

_TITLE_RANK = 2
_SKIPPED_FAMILIES = {
    "hook": HOOK_OUTPUT,
    "permission": BOOKKEEPING,
    "session": BOOKKEEPING,
    "subagent": BOOKKEEPING,
}
_SKIPPED_TYPES = {
    "assistant.turn_start": BOOKKEEPING,
    "assistant.turn_end": BOOKKEEPING,
    "assistant.usage": BOOKKEEPING,
    "system.message": CONTEXT,
    "tool.execution_partial_result": REPEATED,
    "tool.execution_progress": REPEATED,
}


class CopilotReader:
    """Reads one file. What it remembers of earlier lines never reaches over the start of an exchange, except for facts
    of the whole session.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._shorten = shorten
        self._facts = Facts(session)
        self._echoes = Echoes()
        self._calls = Calls(shorten)
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "session.start": self._started,
            "session.resume": self._started,
            "session.context_changed": self._moved,
            "session.model_change": self._model,
            "session.title_changed": self._title,
            "session.compaction_complete": self._compaction,
            "session.error": self._notice,
            "session.shutdown": self._shutdown,
            "user.message": self._typed,
            "assistant.message": self._message,
            "assistant.reasoning": self._reasoning,
            "tool.execution_start": self._call_again,
            "tool.execution_complete": self._result,
            "tool.user_requested": self._call_again,
            "skill.invoked": self._skill,
            "system.notification": self._notification,
            "abort": self._notice,
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; a call comes once it is known whether a message announced it."""
        return self._echoes.among(map(self._line, lines))

    def _line(self, line: Line) -> Sequence[Turn | Note | Skipped]:
        found = records(line)
        self._echoes.alone = len(found) == 1
        return of_records(line, found, self._record)

    def _record(self, record: Record, line: Line) -> Given:
        kind = string(record.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            known = _SKIPPED_TYPES.get(kind) or _SKIPPED_FAMILIES.get(kind.partition(".")[0])
            return known or unknown(kind)
        named = identity(string(record.get("id")), line.data)
        return handler(mapping(record.get("data")), Mark(line.number, instant(record.get("timestamp")), named))

    # What the session is

    def _started(self, data: Record, mark: Mark) -> Given:
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.SESSION, string(data.get("sessionId"))),
            *learn(mark.line, Fact.VERSION, string(data.get("copilotVersion"))),
            *learn(mark.line, Fact.MODEL, string(data.get("selectedModel"))),
            *self._place(mapping(data.get("context")), mark),
        ] or REPEATED

    def _moved(self, data: Record, mark: Mark) -> Given:
        return self._place(data, mark) or REPEATED

    def _place(self, context: Record, mark: Mark) -> list[Note]:
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.CWD, string(context.get("cwd"))),
            *learn(mark.line, Fact.BRANCH, string(context.get("branch"))),
        ]

    def _model(self, data: Record, mark: Mark) -> Given:
        return self._facts.learn(mark.line, Fact.MODEL, string(data.get("newModel"))) or REPEATED

    def _title(self, data: Record, mark: Mark) -> Given:
        title = one_line(string(data.get("title")))
        return self._facts.learn(mark.line, Fact.TITLE, title, rank=_TITLE_RANK) or REPEATED

    def _compaction(self, data: Record, mark: Mark) -> Given:
        text = clean(string(data.get("summaryContent"))) or "Conversation compacted"
        return [mark.turn(Speaker.HOST, Kind.COMPACTION, text)]

    def _shutdown(self, data: Record, mark: Mark) -> Given:
        """The end tells which files the session changed, and what it cost."""
        usages = [mapping(mapping(each).get("usage")) for each in mapping(data.get("modelMetrics")).values()]
        given, made = (sum(whole(usage.get(name)) for usage in usages) for name in ("inputTokens", "outputTokens"))
        usage = f"{mark.record} {given} {made}" if given or made else ""
        named = listing(mapping(data.get("codeChanges")).get("filesModified"))
        paths = tuple(clean(path) for path in map(string, named) if path)
        turns = [mark.turn(Speaker.HOST, Kind.INJECTED, f"Changed: {', '.join(paths)}", writes=paths)] if paths else []
        return [*turns, *self._facts.learn(mark.line, Fact.USAGE, usage)] or BOOKKEEPING

    # What was said and done

    def _typed(self, data: Record, mark: Mark) -> Given:
        attached = [mapping(each) for each in listing(data.get("attachments"))]
        names = [string(each.get("path")) or string(each.get("displayName")) for each in attached]
        text = "\n".join([clean(string(data.get("content"))), *(f"[{clean(name)}]" for name in names if name)]).strip()
        if not text:
            return EMPTY
        if data.get("isAutopilotContinuation") is True or data.get("source") not in (None, "", "user"):
            return [mark.injected(text, shorten=self._shorten)]
        self._echoes.settle()
        self._calls.clear()
        return [mark.turn(Speaker.HUMAN, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _message(self, data: Record, mark: Mark) -> Given:
        group = string(data.get("messageId"))
        thought, text = clean(string(data.get("reasoningText"))), clean(string(data.get("content")))
        turns: list[Turn] = []
        if thought:
            self._echoes.hear(f"thought {thought}")
            turns.append(mark.turn(Speaker.ASSISTANT, Kind.THINKING, thought, group=group))
        if text:
            turns.append(mark.turn(Speaker.ASSISTANT, Kind.PROSE, text, group=group))
        for request in map(mapping, listing(data.get("toolRequests"))):
            call = string(request.get("toolCallId"))
            self._echoes.hear(call)
            tool, given = string(request.get("name")), request.get("arguments")
            turns.append(self._calls.call(mark, call, tool, given, group=group))
        return [*turns, *self._facts.learn(mark.line, Fact.MODEL, string(data.get("model")))] or EMPTY

    def _reasoning(self, data: Record, mark: Mark) -> Given:
        text = clean(string(data.get("content")))
        return (
            self._echoes.give(f"thought {text}", mark.turn(Speaker.ASSISTANT, Kind.THINKING, text)) if text else EMPTY
        )

    def _call_again(self, data: Record, mark: Mark) -> Given:
        call, tool = string(data.get("toolCallId")), string(data.get("toolName"))
        return self._echoes.give(call, self._calls.call(mark, call, tool, data.get("arguments")))

    def _result(self, data: Record, mark: Mark) -> Given:
        result, fault = mapping(data.get("result")), string(mapping(data.get("error")).get("message"))
        text = string(result.get("content")) or string(result.get("detailedContent")) or fault
        call, failed = string(data.get("toolCallId")), data.get("success") is False
        return [self._calls.result(mark, call, text, failed=failed)]

    def _skill(self, data: Record, mark: Mark) -> Given:
        named = (string(data.get("name")), string(data.get("path")))
        return [mark.injected(f"Skill: {' '.join(filter(None, named))}", shorten=self._shorten)]

    def _notification(self, data: Record, mark: Mark) -> Given:
        text = string(data.get("content"))
        return [mark.injected(text, shorten=self._shorten)] if text else EMPTY

    def _notice(self, data: Record, mark: Mark) -> Given:
        text = string(data.get("message")) or f"Aborted: {string(data.get('reason')) or 'no reason given'}"
        return [mark.injected(text, shorten=self._shorten, failed=True)]
