"""Contract `transcripts`, second part: what the archive makes of copies, forks, doubled lines and growing files.

Each test runs on every format, with its example in `examples/<agent>.jsonl`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import Transcript
from palaver.core.conversation import Kind, Speaker, Turn

from ..history import ORIGINAL, History
from .examples import example
from .reading import session, turns

every_format = pytest.mark.parametrize("known", all_formats(), ids=lambda known: known.agent)


def ingest(history: History, known: TranscriptFormat, *paths: Path) -> None:
    """Ingest files as transcripts of one format."""
    report = Ingest(history.store, history.raw).run(Transcript(path, path, path.parent, known) for path in paths)
    assert report.problems == []


def said(history: History) -> Counter[tuple[Speaker, Kind, str]]:
    """Count the stored prompts and replies."""
    return count(turn for stored in history.stored() for turn in stored.exchange.turns)


def count(found: Iterable[object]) -> Counter[tuple[Speaker, Kind, str]]:
    """Count the prompts and replies among events."""
    return Counter(
        (event.speaker, event.kind, event.text)
        for event in found
        if isinstance(event, Turn) and event.kind in {Kind.PROMPT, Kind.PROSE}
    )


def write(folder: Path, data: bytes, name: str = "transcript.jsonl") -> Path:
    """Write a transcript."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@every_format
def test_a_growing_file_ends_like_a_complete_one(known: TranscriptFormat, tmp_path: Path) -> None:
    """A file that is ingested after every third line has the same exchanges as a complete one."""
    rows = example(known).splitlines(keepends=True)
    with History(tmp_path / "whole") as whole, History(tmp_path / "grown") as grown:
        ingest(whole, known, write(whole.folder / "a", example(known)))
        for end in [*range(3, len(rows), 3), len(rows)]:
            path = write(grown.folder / "a", b"".join(rows[:end]))
            ingest(grown, known, grown.touch(path, end))

        assert said(grown) == said(whole)


@every_format
def test_a_copy_of_a_file_adds_no_text(known: TranscriptFormat, tmp_path: Path) -> None:
    """The same content in another folder, or under another name, is one session, or repeats its records."""
    with History(tmp_path) as history:
        first = write(history.folder / "a", example(known))
        ingest(history, known, first)
        before = said(history)
        ingest(history, known, first, write(history.folder / "b", example(known)))
        ingest(history, known, first, write(history.folder / "a", example(known), "copy.jsonl"))

        assert said(history) == before


ANONYMOUS = {
    "continue-dev": ["Done."],
    "cursor": ["And now?"],
    "kimi-cli": ["And now?"],
    "windsurf": ["Fix the login", "I look."],
}
"""Messages of the examples that have neither an ID nor a time. If they are on two lines, they were written twice."""


@every_format
def test_doubled_lines_add_no_text(known: TranscriptFormat, tmp_path: Path) -> None:
    """A tool that wrote every line twice added nothing, except messages that have neither an ID nor a time."""
    rows = example(known).splitlines(keepends=True)
    with History(tmp_path / "one") as one, History(tmp_path / "two") as two:
        ingest(one, known, write(one.folder / "a", example(known)))
        ingest(two, known, write(two.folder / "a", b"".join(row * 2 for row in rows)))

        assert sorted(text for _, _, text in (said(two) - said(one)).elements()) == ANONYMOUS.get(known.agent, [])


SHARED = re.compile(r"session|conversation|parent|task|group|call|model", re.IGNORECASE)
"""Names of fields whose IDs the records of a session share."""
PATHS = {
    "antigravity": "{}/.system_generated/logs/transcript.jsonl",
    "gptme": "{}/conversation.jsonl",
    "windsurf": "{}.jsonl",
}
"""Paths of transcripts whose agents name the session only in the path."""
NO_FORKS = {"windsurf": "Transcripts have no IDs and times, so a copy under another ID is a conversation of its own."}
"""Agents whose sessions cannot be forked, with the reason."""
TIME = re.compile(r"(?<=2026-03-01.)10:\d\d")


@every_format
@pytest.mark.parametrize("original_first", [True, False], ids=["in-order", "reversed"])
@pytest.mark.parametrize("same_id", [True, False], ids=["copy", "fork"])
def test_a_copy_that_continues_differently_adds_only_its_own_part(
    known: TranscriptFormat, tmp_path: Path, *, same_id: bool, original_first: bool
) -> None:
    """The shared part of a session and its copy is stored once, whichever is read first, and both ends are stored."""
    if not same_id and known.agent in NO_FORKS:
        pytest.skip(NO_FORKS[known.agent])
    native_id = ORIGINAL if known.agent in PATHS else session(known, example(known)).native_id
    path = PATHS.get(known.agent, "{}.jsonl")
    copied = native_id if same_id else f"{native_id[:-1]}{'8' if native_id[-1] == '7' else '7'}"
    data = b"".join(map(dumped, renamed(rows_of(example(known)), native_id, copied)))
    ends = [ending(known, example(known), "Add the logout", 1), ending(known, data, "Add the menu", 2)]
    with History(tmp_path / "whole") as whole, History(tmp_path / "both") as both:
        ingest(whole, known, write(whole.folder / "a", example(known), path.format(native_id)))
        first = write(both.folder / "a", example(known) + dumped(ends[0]), path.format(native_id))
        second = write(both.folder / "b", data + dumped(ends[1]), path.format(copied))
        assert session(known, second.read_bytes(), second).native_id == copied
        files = [both.touch(first, 1), both.touch(second, 2)]
        ingest(both, known, *(files if original_first else reversed(files)))

        assert said(both) - said(whole) == count(turn for end in ends for turn in turns(known, end))
        assert said(whole) - said(both) == Counter()


def rows_of(data: bytes) -> list[Any]:
    """Return the records of a transcript."""
    return [orjson.loads(row) for row in data.splitlines()]


def dumped(record: object) -> bytes:
    """Return the line of a record."""
    return orjson.dumps(record) + b"\n"


def renamed(value: Any, native_id: str, other_id: str) -> Any:
    """Return a value of JSON in which a session has another ID."""
    if isinstance(value, dict):
        return {name: renamed(field, native_id, other_id) for name, field in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [renamed(element, native_id, other_id) for element in cast("list[object]", value)]
    is_id = isinstance(value, str) and value.partition("/")[0] == native_id
    return value.replace(native_id, other_id, 1) if is_id else value


def ending(known: TranscriptFormat, data: bytes, prompt: str, number: int) -> dict[str, Any]:
    """Return a record that continues a transcript: its first prompt with another text, ID and time."""
    rows = rows_of(data)
    first = next(row for row in rows if any(turn.kind is Kind.PROMPT for turn in turns(known, row)))
    last = next((row_id for row in reversed(rows) if (row_id := row.get("uuid") or row.get("id"))), None)
    end: dict[str, Any] = later(first, number, prompt)
    return end | {name: last for name in end if name in {"parent", "parentId", "parentUuid"}}


def later(value: Any, number: int, prompt: str, name: str = "") -> Any:
    """Return a value of a record for a later record."""
    is_id = name.lower().endswith("id") and not SHARED.search(name)
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return {name: later(field, number, prompt, name) for name, field in fields.items()}
        case list():
            return [later(element, number, prompt) for element in cast("list[object]", value)]
        case str() if is_id:
            return f"{value[:-2]}e{number}"
        case str():
            return TIME.sub(f"1{number}:00", value.replace("Fix the login", prompt))
        case int() | float() if value > 1e9:
            return value + number * (3_600_000 if value > 1e11 else 3_600)
        case int() if is_id and not isinstance(value, bool):
            return value + 50 + number
        case _:
            return value
