"""Reads made-up transcripts of any format, and checks what every reader promises."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from palaver.archiver.files.lines import HEAD_BYTES, Line, split
from palaver.archiver.formats import Event, TranscriptFormat
from palaver.archiver.reading.exchange_grouping import group_exchanges
from palaver.core.conversation import Exchange, Fact, Kind, Note, Session, Skipped, Turn


def written(records: Iterable[object]) -> bytes:
    """The transcript, one record per line; bytes are taken as they are."""
    return b"".join((each if isinstance(each, bytes) else orjson.dumps(each)) + b"\n" for each in records)


def lines(data: bytes, start_line: int = 1, start_byte: int = 0) -> list[Line]:
    """The lines from one on."""
    return list(split(io.BytesIO(data), start_line=start_line, start_byte=start_byte))


def session(known: TranscriptFormat, data: bytes, path: Path = Path("transcript.jsonl")) -> Session:
    """The session that a transcript belongs to."""
    return known.identify(path, data[:HEAD_BYTES])


def events(known: TranscriptFormat, *records: object, shorten: bool = True) -> list[Event]:
    """What a transcript says, in the order of its lines."""
    data = written(records)
    found = known.reader(session(known, data), shorten=shorten).read(lines(data))
    return sorted(found, key=lambda event: event.line)


def turns(known: TranscriptFormat, *records: object, shorten: bool = True) -> list[Turn]:
    """The turns only."""
    return [event for event in events(known, *records, shorten=shorten) if isinstance(event, Turn)]


def prompts(known: TranscriptFormat, *records: object) -> list[str]:
    """What was asked."""
    return [turn.text for turn in turns(known, *records) if turn.kind is Kind.PROMPT]


def notes(found: Sequence[Event], fact: Fact) -> list[tuple[int, str]]:
    """Line and value of every note of one fact."""
    return [(event.line, event.value) for event in found if isinstance(event, Note) and event.fact is fact]


def skipped(found: Sequence[Event]) -> list[tuple[int, str]]:
    """Line and reason of everything passed over."""
    return [(event.line, event.reason) for event in found if isinstance(event, Skipped)]


def unaccounted(known: TranscriptFormat, data: bytes) -> dict[int, list[Event]]:
    """The lines that give neither turns or notes nor exactly one reason for being skipped."""
    given: dict[int, list[Event]] = {line.number: [] for line in lines(data)}
    for event in known.reader(session(known, data)).read(lines(data)):
        given[event.line].append(event)
    return {
        line: found
        for line, found in given.items()
        if not found or (len(found) > 1 and any(isinstance(event, Skipped) for event in found))
    }


def exchanges(
    known: TranscriptFormat, data: bytes, start_line: int = 1, start_byte: int = 0, first: int = 0
) -> list[Exchange]:
    """The exchanges from a place on."""
    found = group_exchanges(
        known.reader(session(known, data)), lines(data, start_line, start_byte), first_ordinal=first
    )
    return [event for event in found if isinstance(event, Exchange)]


def changed_by_resuming(known: TranscriptFormat, data: bytes) -> list[int]:
    """The ordinals of exchanges from which reading on does not give what reading everything gave."""
    whole = exchanges(known, data)
    return [
        start.ordinal
        for start in whole
        if [(each.span, each.turns) for each in whole[start.ordinal :]]
        != [
            (each.span, each.turns)
            for each in exchanges(known, data, start.span.start_line, start.span.start_byte, start.ordinal)
        ]
    ]
