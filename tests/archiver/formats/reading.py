"""Helpers that read synthetic transcripts of any format and check guarantees of every reader."""

import io
import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import orjson

from palaver.archiver.formats import Event, TranscriptFormat
from palaver.archiver.lines import HEAD_BYTES, Line, split
from palaver.archiver.reading.exchanges import group_exchanges
from palaver.core.conversation import Exchange, Fact, Kind, Note, Session, Skipped, Turn


def jsonl(records: Iterable[object]) -> bytes:
    """Return a transcript with one record per line. Bytes are used as raw lines."""
    return b"".join((each if isinstance(each, bytes) else orjson.dumps(each)) + b"\n" for each in records)


def lines(data: bytes, start_line: int = 1, start_byte: int = 0) -> list[Line]:
    """Return the lines from a start position on."""
    return list(split(io.BytesIO(data), start_line=start_line, start_byte=start_byte))


def session(known: TranscriptFormat, data: bytes, path: Path = Path("transcript.jsonl")) -> Session:
    """Return the session of a transcript."""
    return known.identify(path, data[:HEAD_BYTES])


def events(known: TranscriptFormat, *records: object, shorten: bool = True) -> list[Event]:
    """Return the events of a transcript, in the order of lines."""
    data = jsonl(records)
    found = known.reader(session(known, data), shorten=shorten).read(lines(data))
    return sorted(found, key=lambda event: event.line)


def turns(known: TranscriptFormat, *records: object, shorten: bool = True) -> list[Turn]:
    """Return the turns of a transcript."""
    return [event for event in events(known, *records, shorten=shorten) if isinstance(event, Turn)]


def prompts(known: TranscriptFormat, *records: object) -> list[str]:
    """Return the texts of the prompts."""
    return [turn.text for turn in turns(known, *records) if turn.kind is Kind.PROMPT]


def notes(found: Sequence[Event], fact: Fact) -> list[tuple[int, str]]:
    """Return the line and the value of every note of one fact."""
    return [(event.line, event.value) for event in found if isinstance(event, Note) and event.fact is fact]


def skipped(found: Sequence[Event]) -> list[tuple[int, str]]:
    """Return the line and the reason of every skip."""
    return [(event.line, event.reason) for event in found if isinstance(event, Skipped)]


@contextmanager
def system_zone(name: str) -> Generator[None]:
    """Change the time zone of the system."""
    try:
        with mock.patch.dict(os.environ, TZ=name):
            time.tzset()
            yield
    finally:
        time.tzset()


def times(known: TranscriptFormat, data: bytes) -> list[int | None]:
    """Return the time of each turn of a transcript."""
    found = known.reader(session(known, data)).read(lines(data))
    return [event.at for event in found if isinstance(event, Turn)]


def unaccounted(known: TranscriptFormat, data: bytes) -> dict[int, list[Event]]:
    """Return the lines that yield neither turns or notes nor exactly one skip.

    A note about a sub-agent may accompany a skip.
    """
    given: dict[int, list[Event]] = {line.number: [] for line in lines(data)}
    for event in known.reader(session(known, data)).read(lines(data)):
        if not (isinstance(event, Note) and event.fact is Fact.SUBAGENT):
            given[event.line].append(event)
    return {
        line: found
        for line, found in given.items()
        if not found or (len(found) > 1 and any(isinstance(event, Skipped) for event in found))
    }


def exchanges(known: TranscriptFormat, data: bytes) -> list[Exchange]:
    """Return the exchanges of a transcript."""
    return [
        event
        for event in group_exchanges(known.reader(session(known, data)), lines(data))
        if isinstance(event, Exchange)
    ]


def changed_by_resuming(known: TranscriptFormat, data: bytes) -> list[int]:
    """Return the ordinals of exchanges at which resumed reading differs from a full read.

    Positions are excluded where the reader requests a full read, because the user went back to an earlier line.
    """
    whole = exchanges(known, data)
    changed: list[int] = []
    for start in whole:
        rest = lines(data, start.span.start_line, start.span.start_byte)
        found = list(group_exchanges(known.reader(session(known, data)), rest, first_ordinal=start.ordinal))
        asks_for_all = any(isinstance(each, Note) and (each.fact, each.value) == (Fact.REWOUND, "") for each in found)
        resumed = [(each.span, each.turns) for each in found if isinstance(each, Exchange)]
        if not asks_for_all and resumed != [(each.span, each.turns) for each in whole[start.ordinal :]]:
            changed.append(start.ordinal)
    return changed
