"""Reads the entries of a pi session, of every version, into turns and notes."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from ....core.conversation import Fact, Kind, Note, Session, Skipped, Speaker, Turn
from ...files.clipping import clean, one_line
from ...files.lines import Line, Record, records
from ..actions import UNKNOWN, said
from ..branches import Tree
from ..calls import Calls
from ..given import BOOKKEEPING, COPIED_HEADER, EMPTY, REPEATED, Given, of_records, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Facts, Mark, identity

_TITLE_RANK = 4
_SKIPPED_TYPES = {"custom", "label", "thinking_level_change"}
_SKILL = re.compile(r'<skill name="([^"]+)" location="[^"]*">\n.*?\n</skill>(?:\n\n(.*))?', re.DOTALL)


class PiReader:
    """Reads one file. What it remembers of earlier lines never reaches over the start of an exchange, except for facts
    of the whole session.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = Facts(session)
        self._tree = Tree()
        self._calls = Calls(shorten)
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "session": self._header,
            "session_info": self._info,
            "model_change": self._model,
            "compaction": self._compaction,
            "branch_summary": self._branch_summary,
            "custom_message": self._custom,
            "message/user": self._typed,
            "message/assistant": self._assistant,
            "message/toolResult": self._result,
            "message/bashExecution": self._ran,
            "message/custom": self._custom,
            "message/hookMessage": self._custom,
            "message/compactionSummary": self._compaction,
            "message/branchSummary": self._branch_summary,
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; at the end it is known which branches were left."""
        for count, line in enumerate(lines):
            self._tree.partial = self._tree.partial or (count == 0 and line.number > 1)
            yield from of_records(line, records(line), self._record)
        yield from self._tree.left()

    def _record(self, record: Record, line: Line) -> Given:
        kind, message = string(record.get("type")), mapping(record.get("message"))
        entry, written = string(record.get("id")), record.get("timestamp")
        if kind != "session":
            self._tree.grow(entry, string(record.get("parentId")))
        key = f"message/{message.get('role')}" if kind == "message" else kind
        handler = self._handlers.get(key)
        if handler is None:
            return BOOKKEEPING if kind in _SKIPPED_TYPES else unknown(key)
        # An entry's id is short and no other entry's in its file; a fork copies it with its time.
        named = f"{entry}@{written}" if entry and written else identity("", line.data)
        given = handler(message if kind == "message" else record, Mark(line.number, instant(written), named))
        if kind != "session" and not isinstance(given, str):
            self._tree.tell(entry, line.number)
        return given

    # What the session is

    def _header(self, record: Record, mark: Mark) -> Given:
        native_id = string(record.get("id"))
        if native_id != self._session.native_id:
            return COPIED_HEADER
        origin = PurePath(string(record.get("parentSession")).replace("\\", "/")).stem.rpartition("_")[2]
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.SESSION, native_id),
            *learn(mark.line, Fact.PARENT, origin),
            *learn(mark.line, Fact.CWD, string(record.get("cwd"))),
            *learn(mark.line, Fact.MODEL, string(record.get("modelId"))),
        ] or REPEATED

    def _info(self, record: Record, mark: Mark) -> Given:
        name = one_line(string(record.get("name")))
        return self._facts.learn(mark.line, Fact.TITLE, name, rank=_TITLE_RANK) or REPEATED

    def _model(self, record: Record, mark: Mark) -> Given:
        return self._facts.learn(mark.line, Fact.MODEL, string(record.get("modelId"))) or REPEATED

    def _compaction(self, record: Record, mark: Mark) -> Given:
        text = clean(string(record.get("summary"))) or "Conversation compacted"
        return [mark.turn(Speaker.HOST, Kind.COMPACTION, text)]

    def _branch_summary(self, record: Record, mark: Mark) -> Given:
        text = clean(string(record.get("summary")))
        return [mark.turn(Speaker.HOST, Kind.RECAP, text)] if text else EMPTY

    # What was said and done

    def _typed(self, message: Record, mark: Mark) -> Given:
        text = clean(_text(message.get("content")))
        if not text:
            return EMPTY
        skill = _SKILL.fullmatch(text)
        self._calls.clear()
        asked = f"/skill:{skill[1]} {skill[2] or ''}".strip() if skill else text
        return [mark.turn(Speaker.HUMAN, Kind.PROMPT, asked), *self._facts.place(mark.line)]

    def _custom(self, message: Record, mark: Mark) -> Given:
        text = clean(_text(message.get("content")))
        return [mark.injected(text, shorten=self._shorten)] if text else EMPTY

    def _assistant(self, message: Record, mark: Mark) -> Given:
        group = string(message.get("responseId")) or mark.record
        turns = [self._reply(block, mark, group) for block in map(mapping, listing(message.get("content")))]
        fault = clean(string(message.get("errorMessage")))
        usage, learn = mapping(message.get("usage")), self._facts.learn
        given = sum(whole(usage.get(name)) for name in ("input", "cacheRead", "cacheWrite"))
        made = whole(usage.get("output"))
        return [
            *(turn for turn in turns if turn is not None),
            *([mark.injected(fault, shorten=self._shorten, failed=True)] if fault else []),
            *learn(mark.line, Fact.MODEL, string(message.get("model"))),
            *learn(mark.line, Fact.USAGE, f"{group} {given} {made}" if given or made else ""),
        ] or EMPTY

    def _reply(self, block: Record, mark: Mark, group: str) -> Turn | None:
        kind = block.get("type")
        if kind == "toolCall":
            call, tool = string(block.get("id")), string(block.get("name"))
            return self._calls.call(mark, call, tool, block.get("arguments"), group=group)
        if kind == "thinking":
            text, said_as = clean(string(block.get("thinking"))), Kind.THINKING
        else:
            text, said_as = clean(_text([block])), Kind.PROSE
        return mark.turn(Speaker.ASSISTANT, said_as, text, group=group) if text else None

    def _result(self, message: Record, mark: Mark) -> Given:
        call, tool = string(message.get("toolCallId")), string(message.get("toolName"))
        failed = message.get("isError") is True
        return [self._calls.result(mark, call, _text(message.get("content")), failed=failed, tool=tool)]

    def _ran(self, message: Record, mark: Mark) -> Given:
        """A command that the person ran past the assistant."""
        command, failed = clean(string(message.get("command"))), message.get("exitCode") not in (None, 0)
        text = said(string(message.get("output")), UNKNOWN, failed=failed, shorten=self._shorten)
        return [
            mark.turn(Speaker.HUMAN, Kind.CALL, f"! {command}", tool="bash", call=mark.record),
            mark.turn(Speaker.TOOL, Kind.RESULT, text, tool="bash", call=mark.record, failed=failed),
        ]


def _text(content: object) -> str:
    """The text of a message's content; pictures as their type and size."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_block_text, map(mapping, listing(content)))))


def _block_text(block: Record) -> str:
    if block.get("type") == "image":
        return f"[{string(block.get('mimeType')) or 'picture'}, {len(string(block.get('data'))) * 3 // 4096} KB]"
    return string(block.get("text"))
