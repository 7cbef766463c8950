"""Parsing of a file into redacted exchanges, notes and an outcome for each line, without access to a store."""

import io
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from ...core.conversation import Exchange, Fact, Kind, Note, ResumePoint, Session, Skipped, Speaker, Turn
from ..files.lines import PARSED, REPEATED, Line, decode, split
from ..formats import Event, FormatReader, TranscriptFormat
from ..redaction import Redactor
from ..redaction.private_spans import Unindexed, opt_out_in
from ..redaction.transcript_redactor import TranscriptRedactor
from .exchange_grouping import group_exchanges, mark_rewound


class ParsedLines(Struct):
    """Result of parsing the lines of a file from `start` on.

    `outcomes` has one entry per line: `parsed`, or the reason why the line has no events. `records` maps record IDs to
    lines. `pending` is the size in bytes of an incomplete last line, which begins at `end`. `unindexed` is true if the
    user excluded the session in a prompt.
    """

    start: ResumePoint
    end: int
    pending: int = 0
    unindexed: bool = False
    outcomes: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    records: dict[str, int] = field(default_factory=dict[str, int])
    joined: dict[int, int] = field(default_factory=dict[int, int])
    """Number of lines of each record that is on several lines, by its first line. All of them have one outcome."""

    def set_outcome(self, line: int, reason: str) -> None:
        """Set the outcome of a line, and of the lines on which its record continues."""
        start = line - self.start.line
        count = self.joined.get(line, 1)
        self.outcomes[start : start + count] = [reason] * count

    def with_rewinds(self) -> list[Exchange]:
        """Return the exchanges with the turns marked that the user abandoned by a rewind."""
        exchanges = self.exchanges
        for note in self.notes:
            if note.fact is Fact.REWOUND and note.value:
                exchanges = [mark_rewound(exchange, int(note.value), note.line) for exchange in exchanges]
        return exchanges

    def count_as(self, reason: str, lines: Iterable[int]) -> None:
        """Change the outcome of these lines from `parsed` to `reason`. Other outcomes do not change."""
        for line in lines:
            if self.outcomes[line - self.start.line] == PARSED:
                self.set_outcome(line, reason)


def parse(
    transcript_format: TranscriptFormat,
    session: Session,
    start: ResumePoint,
    file: BinaryIO,
    redactor: Redactor,
    repeated: Collection[str] = (),
    copied: Collection[int] = (),
) -> ParsedLines:
    """Parse a file to its end, except a last line that is still being written.

    Turns are skipped as repeated if `repeated` contains the ID of their record, if `copied` contains their line, or if
    the record also occurs on an earlier line.
    """
    found = ParsedLines(start, start.byte)
    lines = _counted(split(file, start_byte=start.byte, start_line=start.line), found)
    reader = RepetitionFilter(transcript_format.reader(session), found.records, repeated, copied)
    for event in group_exchanges(reader, lines, first_ordinal=start.ordinal):
        match event:
            case Exchange():
                found.exchanges.append(event)
            case Note():
                found.notes.append(event)
            case Skipped(line, reason):
                found.set_outcome(line, reason)
    found.unindexed = reader.unindexed
    _redact(found, TranscriptRedactor(redactor))
    return found


def folder_in(transcript_format: TranscriptFormat, path: Path, head: bytes) -> str:
    """Return the working folder recorded in the first lines of a file, or an empty string if none is recorded."""
    session = transcript_format.identify(path, head)
    events = transcript_format.reader(session).read(split(io.BytesIO(head)))
    return session.cwd or next(
        (event.value for event in events if isinstance(event, Note) and event.fact is Fact.CWD), ""
    )


def _redact(found: ParsedLines, redactor: TranscriptRedactor) -> None:
    records = redactor.records(found.records)
    found.exchanges = redactor.exchanges(found.exchanges, records.keys() & found.records.keys())
    found.records = records
    found.notes = redactor.notes(found.notes)
    found.outcomes = redactor.outcomes(found.outcomes)


def _counted(lines: Iterable[Line], found: ParsedLines) -> Iterator[Line]:
    for line in lines:
        if not line.complete and not (line.data and isinstance(decode(line.data), list)):
            found.pending = line.end - line.start
            return
        found.outcomes += [PARSED] * line.line_count
        if line.line_count > 1:
            found.joined[line.number] = line.line_count
        found.end = line.end
        yield line


class RepetitionFilter(FormatReader):
    """Reader that skips the turns of repeated records.

    Rewind notes on the lines of these turns are omitted too, because a repeated record is not a rewind by the user.
    """

    def __init__(
        self,
        reader: FormatReader,
        records: dict[str, int],
        repeated: Collection[str] = (),
        copied: Collection[int] = (),
        *,
        first_line: int = 1,
    ) -> None:
        """Prepare to read. The line of each record that is not repeated is added to `records`.

        Args:
            reader: Reader of the transcript.
            records: Line numbers by record ID.
            repeated: IDs of records that another file contains.
            copied: Lines that another file contains under other IDs.
            first_line: Line from which on repeated records are skipped.
        """
        self._reader, self._records, self._repeated, self._copied = reader, records, repeated, copied
        self._first_line = first_line
        self.unindexed = False
        """True if the user excluded the session in a prompt."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line, with a `Skipped` event in place of each repeated turn."""
        repeated_line = 0
        for event in self._reader.read(lines):
            if isinstance(event, Turn) and event.speaker is Speaker.HUMAN and event.kind is Kind.PROMPT:
                self.unindexed |= opt_out_in(event.text) is Unindexed.SESSION
            if isinstance(event, Turn) and self._is_repeated(event):
                repeated_line = event.line
                yield Skipped(event.line, REPEATED)
            elif not (isinstance(event, Note) and event.fact is Fact.REWOUND and event.line == repeated_line):
                yield event

    def _is_repeated(self, turn: Turn) -> bool:
        """Return whether the turn's record occurred on another line of this or another file."""
        if turn.line in self._copied or turn.record in self._repeated:
            return True
        if not turn.record or turn.line < self._first_line:
            return False
        return self._records.setdefault(turn.record, turn.line) != turn.line
