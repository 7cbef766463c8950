"""Base class of transcript readers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ..files.clipping import clean, clip
from ..files.lines import Line, Reason, Record, records
from .program_text import split_program_text
from .record_events import RecordEvents, RecordStamp, SessionFacts, SkipReason, line_events
from .tool_calls import INPUT_LIMIT, ToolCall, ToolCalls
from .transcript_format import Event

RecordHandler: TypeAlias = "Callable[[Record, RecordStamp], RecordEvents]"


class RecordReader(ABC):
    """Base class of readers that read one transcript record by record.

    At the start of an exchange, a reader discards all state except facts about the whole session. Therefore, reading
    can start at any exchange and yields the same turns.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = SessionFacts(session)
        self._calls = ToolCalls(shorten)
        self._partial = False
        """True if reading began in the middle of the file, so earlier records may exist."""
        self._only_record = True
        """True if the current record is the only one on its line."""
        self._released: list[Event] = []
        """Delayed events of earlier lines, which are yielded before the events of the current line."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line.

        A reader may delay the events of a line until later lines determine their meaning.
        """
        for count, line in enumerate(lines):
            self._partial = self._partial or (count == 0 and line.number > 1)
            events = self._line(line)
            if self._released:
                yield from self._release()
            yield from events
        self._finish()
        yield from self._release()

    @property
    def _is_subagent(self) -> bool:
        return self._session.kind is SessionKind.SUBAGENT

    def _release(self) -> list[Event]:
        released = self._released.copy()
        self._released.clear()
        return released

    def _line(self, line: Line) -> Sequence[Event]:
        found = self._records(line)
        if isinstance(found, str):
            return [Skipped(line.number, found)]
        self._only_record = len(found) == 1
        return line_events(line, [self._record(record, line) for record in found])

    def _records(self, line: Line) -> list[Record] | Reason:
        return records(line)

    @abstractmethod
    def _record(self, record: Record, line: Line) -> RecordEvents:
        """Return the events of one record, or the reason for skipping it."""

    def _finish(self) -> None:  # noqa: B027 - most readers delay no events
        """Release all delayed events, because no line follows."""

    def _fact_handler(self, fields: Mapping[Fact, str]) -> RecordHandler:
        """Return a handler for records that contain only session facts, such as a title.

        `fields` maps each fact to the name of the field that contains it.
        """

        def handler(record: Record, stamp: RecordStamp) -> RecordEvents:
            facts = {fact: record.get(name) for fact, name in fields.items()}
            return self._facts.notes(stamp.line, facts) or SkipReason.REPEATED

        return handler

    def _prompt(self, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the events that open an exchange. A text that the program added does not open an exchange.

        In a sub-agent's transcript, the speaker is the host, because the parent agent wrote the prompt.
        """
        typed, added, reminders = split_program_text(text)
        if not typed:
            return [*self._injected(added or reminders, stamp)]
        self._calls.clear()
        speaker = Speaker.HOST if self._is_subagent else Speaker.HUMAN
        prompt = stamp.turn(speaker, Kind.PROMPT, typed)
        return [prompt, *self._injected(added, stamp), *self._facts.location(stamp.line)]

    def _injected(self, text: str, stamp: RecordStamp, *, failed: bool = False) -> list[Turn]:
        """Return a turn for text that the agent's program added, as a list. The list is empty if the text is empty."""
        text = clip(clean(text), INPUT_LIMIT if self._shorten else None)
        return [stamp.turn(Speaker.HOST, Kind.INJECTED, text, failed=failed)] if text else []

    def _compacted(self, summary: object, stamp: RecordStamp) -> list[Turn]:
        """Return a turn with the summary that replaced the earlier conversation in the model's context."""
        text = clean(summary) if isinstance(summary, str) else ""
        return [stamp.turn(Speaker.HOST, Kind.COMPACTION, text or "Conversation compacted")]

    def _user_command(self, command: str, output: str, stamp: RecordStamp, *, tool: str, failed: bool) -> list[Turn]:
        """Return the turns of a shell command that the user ran."""
        return [
            stamp.turn(Speaker.HUMAN, Kind.CALL, f"! {command}", tool=tool, call=stamp.record),
            self._calls.result_of(ToolCall(tool, ""), stamp, stamp.record, output, failed=failed),
        ]
