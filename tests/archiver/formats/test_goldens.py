"""Everything that each reader makes of its example. `--update-golden` rewrites the files for review."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.formats import Event, TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Note, Skipped, show_instant

from ...cases import for_each
from .examples import example, records
from .reading import events, session

FOLDER = Path(__file__).with_name("goldens")


def described(event: Event) -> Iterator[str]:
    """Yield the parts of an event that are not empty."""
    yield f"{event.line:>3}"
    if isinstance(event, Skipped):
        yield f"skipped: {event.reason}"
    elif isinstance(event, Note):
        yield f"note {event.fact.value}: {event.value}"
    else:
        yield f"{event.speaker.value} {event.kind.value}: {event.text.encode('unicode_escape').decode()}"
        yield from (f"{name}={value}" for name, value in (("tool", event.tool), ("call", event.call)) if value)
        yield from ("reads " + path for path in event.reads)
        yield from ("writes " + path for path in event.writes)
        yield from ("failed",) * event.failed
        yield show_instant(event.at) if event.at is not None else "no time"


@for_each("known", all_formats(), label=lambda known: known.agent)
def test_the_events_of_an_example_are_those_of_its_golden_file(
    known: TranscriptFormat, request: pytest.FixtureRequest
) -> None:
    """The turns, notes and skipped lines of an example do not change unnoticed."""
    head = session(known, example(known))
    rows = [f"session {head.native_id} {head.kind.value} {head.parent_id} {head.cwd}".rstrip()]
    rows += [" | ".join(described(event)) for event in events(known, *records(known))]
    text, path = "\n".join(rows) + "\n", FOLDER / f"{known.agent}.txt"
    if request.config.getoption("--update-golden", default=False):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    assert text == path.read_text()
