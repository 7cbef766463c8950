"""Fuzz targets, each of which accepts any bytes and checks an invariant."""

import io
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from palaver.archiver import lines
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.reading.parsing import parse
from palaver.archiver.redaction import Redactor
from palaver.archiver.redaction.redactor import find_secrets, normal_form
from palaver.core.conversation import ResumePoint, parse_instant, show_instant, show_minute
from palaver.core.errors import InvalidInput
from palaver.core.query import Filters, Query
from palaver.core.time_expressions import date_range
from palaver.search.index.text_index import TextEntry, TextIndex

SPOKEN: Final = "The lease is taken by flock; see archiver/leases.py and ERR_42 in München, 東京 and the café"
TODAY: Final = date(2026, 3, 4)


def read_lines(data: bytes) -> None:
    """Check that every byte belongs to one line, and that each line has JSON objects or a reason for having none."""
    found = list(lines.split(io.BytesIO(data), limit=64))
    numbers = [number for line in found for number in line.numbers]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [0, *(line.end for line in found)] == [*(line.start for line in found), len(data)]
    for line in found:
        records = lines.records(line)
        assert isinstance(records, lines.Reason) or all(map(orjson.dumps, records))
    list(lines.head_records(lines.head(io.BytesIO(data))))


def read_records(data: bytes) -> None:
    """Check that every format parses any lines and accounts for each line."""
    records = list(lines.head_records(data))
    for known in all_formats():
        known.recognises(records)
        session = known.identify(Path("11111111-0000-4000-8000-000000000001.jsonl"), data)
        found = parse(known, session, ResumePoint(), io.BytesIO(data), redactor())
        read = [line for line in lines.split(io.BytesIO(data)) if line.end <= found.end]
        assert len(found.outcomes) == sum(line.line_count for line in read)


def build_query(data: bytes) -> None:
    """Check that any text is a valid query or a usage error, with and without each filter."""
    text = data.decode(errors="replace")
    with suppress(InvalidInput):
        for concept in Query.parse(text).concepts:
            index().search(concept, Filters(), 5)
    given = (text,)
    index().search("lease", Filters(projects=given, files=given, concepts=given, sessions=given, branches=given), 5)


def redact(data: bytes) -> None:
    """Check that redaction is idempotent and leaves text without findings in its normal form."""
    text = data.decode(errors="replace")
    once = redactor().redact(text)
    assert once.findings or once.text == normal_form(text)
    assert redactor().redact(once.text).text == once.text
    ends = [place for start, end, _ in find_secrets(data) for place in (start, end)]
    assert ends == sorted(ends)


def read_date(data: bytes) -> None:
    """Check that any text is parsed as an instant, an ordered date range, or a usage error."""
    text = data.decode(errors="replace")
    instant = parse_instant(text)
    if instant is not None:
        assert show_instant(instant)
        assert show_minute(instant)
    with suppress(InvalidInput):
        found = date_range(text, TODAY)
        assert found.first <= found.last
    with suppress(InvalidInput):
        Filters.parse(after=text, before=text)


@cache
def index() -> TextIndex:
    found = TextIndex.make()
    found.apply(
        [], [TextEntry(1, 1, 1, 1, 0, 1, 2, SPOKEN, values={"project": ("shop",), "file": ("/archiver/leases.py",)})]
    )
    return found


@cache
def redactor() -> Redactor:
    return Redactor(b"0123456789abcdef")


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "lines": read_lines,
    "records": read_records,
    "query": build_query,
    "redactor": redact,
    "dates": read_date,
}
