"""Parsing: what the lines of one archived file say, without its secrets, before anybody asks what of it is new."""

import io
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from ...core.conversation import Exchange, Fact, Kind, Note, ResumePoint, Session, Skipped, Speaker, Turn
from ..files.lines import PARSED, REPEATED, Line, decode, split
from ..formats import Event, TranscriptFormat, TranscriptReader
from ..redaction import Redactor
from ..redaction.private_spans import Unindexed, asked_for
from ..redaction.transcript_redactor import Discretion
from .exchange_grouping import group


class Parsed(Struct):
    """The lines of a file from `start` on.

    `outcomes` has one entry a line, `records` maps the ids of its records to lines. `pending` bytes after `end` are a
    last line that is still being written. `unindexed` is true when the person asked to keep the session out.
    """

    start: ResumePoint
    end: int
    pending: int = 0
    unindexed: bool = False
    outcomes: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    records: dict[str, int] = field(default_factory=dict[str, int])


def parse(
    known: TranscriptFormat,
    session: Session,
    start: ResumePoint,
    file: BinaryIO,
    redactor: Redactor,
    repeated: Collection[str] = frozenset(),
) -> Parsed:
    """Read to the end. Turns of records that are `repeated`, or come again, are only counted.

    A last line that is still being written is left for the next time.
    """
    found = Parsed(start, start.byte)
    lines = _counted(split(file, start_byte=start.byte, start_line=start.line), found)
    for event in group(_Fresh(known.reader(session), found, repeated), lines, first_ordinal=start.ordinal):
        match event:
            case Exchange():
                found.exchanges.append(event)
            case Note():
                found.notes.append(event)
            case Skipped(line, reason):
                found.outcomes[line - start.line] = reason
    _keep_secrets(found, Discretion(redactor))
    return found


def folder_in(known: TranscriptFormat, path: Path, head: bytes) -> str:
    """Return the working folder that the first lines of a file name; empty if they name none."""
    session = known.identify(path, head)
    events = known.reader(session).read(split(io.BytesIO(head)))
    return session.cwd or next(
        (event.value for event in events if isinstance(event, Note) and event.fact is Fact.CWD), ""
    )


def _keep_secrets(found: Parsed, discretion: Discretion) -> None:
    records = discretion.records(found.records)
    found.exchanges = discretion.exchanges(found.exchanges, records.keys() & found.records.keys())
    found.records = records
    found.notes = discretion.notes(found.notes)
    found.outcomes = discretion.reasons(found.outcomes)


def _counted(lines: Iterable[Line], found: Parsed) -> Iterator[Line]:
    for line in lines:
        if not line.complete and not (line.data and isinstance(decode(line.data), list)):
            found.pending = line.end - line.start
            return
        found.outcomes.append(PARSED)
        found.end = line.end
        yield line


class _Fresh(TranscriptReader):
    """A reader that says of repeated turns only that they are: who repeats a prompt does not go back to it."""

    def __init__(self, reader: TranscriptReader, found: Parsed, repeated: Collection[str]) -> None:
        self._reader, self._found, self._elsewhere = reader, found, repeated

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        repeated = 0
        for event in self._reader.read(lines):
            if isinstance(event, Turn) and event.speaker is Speaker.HUMAN and event.kind is Kind.PROMPT:
                self._found.unindexed |= asked_for(event.text) is Unindexed.SESSION
            if isinstance(event, Turn) and self._is_repeated(event):
                repeated = event.line
                yield Skipped(event.line, REPEATED)
            elif not (isinstance(event, Note) and event.fact is Fact.REWOUND and event.line == repeated):
                yield event

    def _is_repeated(self, turn: Turn) -> bool:
        """Whether the turn's record is known from another line, here or elsewhere."""
        if not turn.record:
            return False
        return turn.record in self._elsewhere or self._found.records.setdefault(turn.record, turn.line) != turn.line
