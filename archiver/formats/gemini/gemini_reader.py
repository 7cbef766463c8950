"""Reads the records of a Gemini CLI conversation into turns and notes.

The file is a journal: a message that stands in it twice was corrected, and the person may go back to any message. What
an exchange says is therefore told when it ends.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import orjson
from msgspec import Struct, field

from ....core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ...files.clipping import clean, one_line
from ...files.lines import Line, Record, records
from ..calls import Calls
from ..given import BOOKKEEPING, EMPTY, REPEATED, Given, of_line, of_records, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Facts, Mark, identity
from .gemini_messages import is_command, output_of, text_of

REPLACED = "replaced"
"""A message that stands again below, in its last state."""

_TITLE_RANK = 1
_HEADER = {"sessionId", "projectHash", "startTime", "lastUpdated", "messages"}
_REPLIES = {"gemini", "model"}
_NOTICES = {"info", "warning", "error"}


class _Journal(Struct):
    """The messages of the file so far, and those of this exchange that may still be corrected."""

    partial: bool = False
    """Whether reading began in the middle of the file, so that there may be earlier messages."""
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """Where each message that counts was first written, in the order of the conversation."""
    held: dict[str, tuple[Line, Record]] = field(default_factory=dict[str, tuple[Line, Record]])

    def add(self, message: str, line: int) -> None:
        """A message, unless it has no id: then nobody can go back to it."""
        if message:
            self.lines.setdefault(message, line)

    def back_to(self, message: str, line: int) -> list[Note]:
        """The person took back this message and all that follow; one that is not known means all there are."""
        known = self.lines.get(message)
        if known is None and self.partial:
            return [Note(line, Fact.REWOUND, "")]
        first = known if known is not None else min(self.lines.values(), default=0)
        self.lines = {name: place for name, place in self.lines.items() if place < first}
        return [Note(line, Fact.REWOUND, str(first))] if first else []

    def keep(self, messages: set[str], line: int) -> list[Note]:
        """The conversation goes on from these messages: whatever stands after the last one of them was left.

        One that begins anew, as after a compression, leaves nothing that was said.
        """
        if self.partial:
            return [Note(line, Fact.REWOUND, "")]
        last = max((place for name, place in self.lines.items() if name in messages), default=0)
        left = next((name for name, place in self.lines.items() if place > last), "")
        return self.back_to(left, line) if last and left else []


class GeminiReader:
    """Reads one file. What it remembers of earlier lines never reaches over the start of an exchange, except for facts
    of the whole session.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = Facts(session)
        self._journal = _Journal()
        self._calls = Calls(shorten)
        self._settled: list[Turn | Note | Skipped] = []

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; those of a message come once it can no longer be corrected."""
        for count, line in enumerate(lines):
            self._journal.partial = self._journal.partial or (count == 0 and line.number > 1)
            events = self._line(line)
            yield from self._take()
            yield from events
        self._settle()
        yield from self._take()

    def _take(self) -> list[Turn | Note | Skipped]:
        settled, self._settled = self._settled, []
        return settled

    def _line(self, line: Line) -> Sequence[Turn | Note | Skipped]:
        found = records(line)
        return of_records(line, found, partial(self._record, alone=len(found) == 1))

    def _record(self, record: Record, line: Line, *, alone: bool) -> Given:
        if "$set" in record:
            return self._changed(mapping(record["$set"]), line) or BOOKKEEPING
        if "$rewindTo" in record:
            return self._journal.back_to(string(record["$rewindTo"]), line.number) or BOOKKEEPING
        if "type" in record:
            return self._message(record, line, alone=alone)
        return self._changed(record, line) or REPEATED if not _HEADER.isdisjoint(record) else unknown("")

    # What the session is

    def _changed(self, about: Record, line: Line) -> list[Turn | Note]:
        """What the header, or a change of it, tells; with the whole conversation where it brings one."""
        learn, number = self._facts.learn, line.number
        named = [string(folder) for folder in listing(about.get("directories"))]
        events: list[Turn | Note] = [
            *learn(number, Fact.SESSION, string(about.get("sessionId"))),
            *learn(number, Fact.CWD, named[0] if named else ""),
            *learn(number, Fact.TITLE, one_line(string(about.get("summary"))), rank=_TITLE_RANK),
        ]
        if "messages" not in about:
            return events
        messages = [mapping(each) for each in listing(about.get("messages"))]
        events += self._journal.keep({string(each.get("id")) for each in messages}, number)
        new = [each for each in messages if string(each.get("id")) not in self._journal.lines]
        given = [self._message(each, line, alone=False) for each in new]
        return events + [event for each in given if not isinstance(each, str) for event in each]

    # What was said and done

    def _message(self, message: Record, line: Line, *, alone: bool) -> Given:
        kind, name = string(message.get("type")), string(message.get("id"))
        if kind == "user":
            return self._typed(message, line)
        if kind not in _REPLIES:
            self._journal.add(name, line.number)
            return self._notice(kind, message, line) if kind in _NOTICES else unknown(kind)
        if name in self._journal.held:
            earlier, _ = self._journal.held.pop(name)
            self._settled.append(Skipped(earlier.number, REPLACED))
        self._journal.add(name, line.number)
        if not alone or not name:
            return self._reply(message, self._mark(message, line)) or EMPTY
        self._journal.held[name] = line, message
        return []

    def _typed(self, message: Record, line: Line) -> Given:
        name, mark = string(message.get("id")), self._mark(message, line)
        if name in self._journal.lines:
            return REPEATED
        self._journal.add(name, line.number)
        text = clean(text_of(message.get("displayContent")) or _text(message))
        if not text:
            return EMPTY
        if is_command(text):
            return [mark.injected(text, shorten=self._shorten)]
        self._settle()
        self._calls.clear()
        speaker = Speaker.HOST if self._session.kind is SessionKind.SUBAGENT else Speaker.HUMAN
        return [mark.turn(speaker, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _notice(self, kind: str, message: Record, line: Line) -> Given:
        text, mark = clean(_text(message)), self._mark(message, line)
        return [mark.injected(text, shorten=self._shorten, failed=kind == "error")] if text else EMPTY

    def _settle(self) -> None:
        """The exchange ends: its replies are what they are now."""
        for line, message in self._journal.held.values():
            self._settled += of_line(line, [self._reply(message, self._mark(message, line)) or EMPTY])
        self._journal.held.clear()

    def _reply(self, message: Record, mark: Mark) -> list[Turn | Note]:
        group = string(message.get("id"))
        said = [
            *((Kind.THINKING, _thought(mapping(each))) for each in listing(message.get("thoughts"))),
            (Kind.PROSE, clean(_text(message))),
        ]
        turns = [mark.turn(Speaker.ASSISTANT, kind, text, group=group) for kind, text in said if text]
        for call in map(mapping, listing(message.get("toolCalls"))):
            turns += self._call(call, mark, group)
        usage, learn = mapping(message.get("tokens")), self._facts.learn
        given, made = whole(usage.get("input")), whole(usage.get("output")) + whole(usage.get("thoughts"))
        return [
            *turns,
            *learn(mark.line, Fact.MODEL, string(message.get("model"))),
            *learn(mark.line, Fact.USAGE, f"{group or mark.record} {given} {made}" if given or made else ""),
        ]

    def _call(self, call: Record, mark: Mark, group: str) -> list[Turn]:
        """A call with what it brought, which is empty while it runs."""
        name, status = string(call.get("id")), string(call.get("status"))
        asked = self._calls.call(mark, name, string(call.get("name")), call.get("args"), group=group)
        if "result" not in call and not status:
            return [asked]
        failed = status in {"error", "cancelled"}
        return [asked, self._calls.result(mark, name, output_of(call), failed=failed)]

    def _mark(self, message: Record, line: Line) -> Mark:
        """A corrected reply has an id of its own; a prompt keeps its id in whatever form it is written again."""
        name = string(message.get("id"))
        prompt = message.get("type") == "user"
        record = f"user:{identity(name, line.data)}" if prompt else f"gemini:{identity('', _canonical(message, line))}"
        return Mark(line.number, instant(message.get("timestamp")), record)


def _canonical(message: Record, line: Line) -> bytes:
    """A message in the same bytes, however it was written: an older document is copied into lines when it goes on."""
    try:
        return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested more deeply, or a larger number, than orjson writes
        return line.data


def _text(message: Record) -> str:
    return text_of(message.get("content") or message.get("parts"))


def _thought(thought: Record) -> str:
    return clean("\n".join(filter(None, (string(thought.get("subject")), string(thought.get("description"))))))
