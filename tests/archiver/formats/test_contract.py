"""Contract `transcripts`: guarantees of every registered format.

Each test runs on every format, with the records of its example in `examples/<agent>.jsonl`.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from itertools import compress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.formats import ContainerFormat, TranscriptFormat
from palaver.archiver.formats.containers import ExportFormat
from palaver.archiver.formats.registry import all_formats, by_agent, container_formats, recognise
from palaver.core.agent_names import AGENTS, NAMES, agent_named
from palaver.core.conversation import Kind, Skipped, Speaker, Turn

from .examples import FOLDER, example, records
from .mutations import KEEPING_ORDER, REARRANGED, mutations_of
from .reading import (
    changed_by_resuming,
    events,
    exchanges,
    jsonl,
    lines,
    session,
    system_zone,
    times,
    unaccounted,
)

every_format = pytest.mark.parametrize("known", all_formats(), ids=lambda known: known.agent)
every_container = pytest.mark.parametrize("known", container_formats(), ids=lambda known: known.agent)

ODD: list[Any] = [
    None, True, False, -1, 0, 1.5, 1e300, 10**30, "", "x", "a b\nc", "\x00\x1b[31m", "\ud800", "<recalled>", [], {},
    [[]], [None], [{}], ["x", 3], [{"type": ["text"]}], {"type": {}}, {"type": None}, {"x": {"y": [{"z": []}]}},
    [{"type": "text", "text": 3}], {"text": {"text": "x"}}, {"role": []}, "user", "assistant", "{", '{"path": 3}',
]  # fmt: skip
"""Unexpected values of a field."""

NOT_RECORDED = {"gemini-apps": {Kind.THINKING, Kind.CALL, Kind.RESULT}}
"""Kinds of turns that an agent does not record."""

LOCAL_TIMES = {"aider", "gptme", "openhands", "trae"}
"""Agents whose examples have times without a zone, which are in the zone of the system. The page names them."""


def places(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a record."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = cast("dict[str | int, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[object]", value))
    for key, inner in items:
        yield (*here, key)
        yield from places(inner, (*here, key))


def changed(record: Any, place: Sequence[str | int], odd: Any, *, drop: bool) -> Any:
    """Return the record with one value replaced or removed."""
    made = deepcopy(record)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    if drop:
        del inner[place[-1]]
    else:
        inner[place[-1]] = odd
    return made


@st.composite
def mutated(draw: st.DrawFn, record: Any) -> bytes:
    """Draw a record that is unchanged, or has unexpected, missing or additional fields, or is truncated."""
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(record))
        if found:
            record = changed(record, draw(st.sampled_from(found)), draw(st.sampled_from(ODD)), drop=draw(st.booleans()))
    if draw(st.booleans()):
        record = {**record, draw(st.sampled_from(["new", "type", "data"])): draw(st.sampled_from(ODD))}
    data = json.dumps(record).encode()
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


@st.composite
def hostile(draw: st.DrawFn, known: TranscriptFormat) -> bytes:
    """Draw records of one format in any order, some of them mutated or joined on one line."""
    chosen = draw(st.lists(st.sampled_from(records(known)), max_size=8))
    made = [draw(mutated(record)) for record in chosen]
    return b"".join(line + draw(st.sampled_from([b"\n", b"\n", b"\n", b""])) for line in made) + b"\n"


@every_format
def test_a_record_on_several_lines_reads_like_one_on_one_line(known: TranscriptFormat) -> None:
    """Unescaped line feeds in a record change neither its turns nor the detection of its format."""
    compact = jsonl(records(known))
    spread = b"".join(json.dumps(each, indent=1).encode() + b"\n" for each in records(known))

    def read(data: bytes) -> list[tuple[object, ...]]:
        turns = [turn for each in exchanges(known, data) for turn in each.turns]
        return [(turn.speaker, turn.kind, turn.text, turn.tool, turn.reads, turn.writes) for turn in turns]

    assert read(spread) == read(compact)
    assert recognise(spread) == recognise(compact)
    assert [line.line_count > 1 for line in lines(spread)] == [True] * len(records(known))
    assert unaccounted(known, spread) == {}


# Registry and transcript locations


def test_agents_have_one_format_each_and_an_example() -> None:
    """Every agent has one format of the same name and an example, so this suite covers new formats."""
    assert [by_agent(agent).agent for agent in AGENTS] == list(AGENTS)
    assert {known.agent for known in all_formats()} <= {path.stem for path in FOLDER.iterdir()}


def test_every_alias_names_one_agent() -> None:
    """An alias is the name of no agent, and of one agent only."""
    aliases = [alias for names in NAMES.values() for alias in names]

    assert len({*aliases, *AGENTS}) == len(aliases) + len(AGENTS)
    assert {alias: agent_named(alias) for alias in aliases} == {
        alias: agent for agent, names in NAMES.items() for alias in names
    }
    assert [agent_named(name) for name in ("Gemini CLI", "Roo Code", "none at all")] == [
        "gemini",
        "roo-code",
        "none at all",
    ]


def test_an_unknown_agent_is_an_error() -> None:
    """An unknown agent raises an error without importing a module."""
    with pytest.raises(ValueError, match="tuple"):
        by_agent("os")


@every_format
def test_without_an_agent_there_are_no_transcripts(known: TranscriptFormat, home: Path) -> None:
    """An empty home has no roots and no containers."""
    assert known.roots() == []
    assert not isinstance(known, ContainerFormat) or list(known.containers()) == []
    assert list(known.transcripts(home)) == []


@every_format
def test_names_in_the_archive_stay_below_the_agents_folder(known: TranscriptFormat, tmp_path: Path) -> None:
    """Archive names are relative, have at least one folder, and contain no parent references."""
    for path in (tmp_path / "a.jsonl", tmp_path / "x" / ".." / "b.jsonl", Path("/elsewhere/c:d.jsonl")):
        parts = known.archive_name(path, tmp_path).split("/")
        assert len(parts) > 1
        assert not {"", ".", ".."} & set(parts)


@every_container
def test_a_file_of_another_kind_is_not_a_container(known: ContainerFormat, tmp_path: Path) -> None:
    """A file of another kind is not a container, whatever its name and content."""
    (tmp_path / "notes.json").write_text('{"a": 1}')
    (tmp_path / "empty.zip").touch()

    assert [path.name for path in sorted(tmp_path.iterdir()) if known.is_container(path)] == []


# Detection


@every_format
def test_a_transcript_is_recognised_by_its_content(known: TranscriptFormat) -> None:
    """Only a transcript's own format recognises its content.

    Sessions of containers are identified by their container instead.
    """
    found = [other.agent for other in all_formats() if other.recognises(records(known))]

    assert found == ([] if known in container_formats() and not found else [known.agent])
    assert not (isinstance(known, ExportFormat) and found)


@every_format
@settings(max_examples=40)
@given(data=st.data())
def test_detection_never_fails(known: TranscriptFormat, data: st.DataObject) -> None:
    """Detection of hostile content returns no format, or a format that identifies its session."""
    made = data.draw(hostile(known))
    found = recognise(made)

    assert found is None or found.identify(Path("folder/name.jsonl"), made).native_id


# Reading lines into exchanges


@every_format
def test_the_example_has_everything_a_conversation_has(known: TranscriptFormat) -> None:
    """In the example, a user asks for a login fix. The agent thinks, answers and uses tools, if it records them."""
    turns = [turn for exchange in exchanges(known, example(known)) for turn in exchange.turns]
    prompt = next(turn for turn in turns if turn.kind is Kind.PROMPT)

    assert (prompt.speaker, prompt.text[:13]) == (Speaker.HUMAN, "Fix the login")
    kinds = {Kind.THINKING, Kind.PROSE, Kind.CALL, Kind.RESULT} - NOT_RECORDED.get(known.agent, set())
    assert kinds <= {turn.kind for turn in turns}


@every_format
@settings(max_examples=60)
@given(data=st.data())
def test_every_line_is_accounted_for(known: TranscriptFormat, data: st.DataObject) -> None:
    """Unknown types, wrong types, missing fields and invalid data yield turns, notes or one named reason."""
    assert unaccounted(known, data.draw(hostile(known))) == {}


@every_format
def test_every_field_may_have_any_value(known: TranscriptFormat) -> None:
    """Every field of every record may have any unexpected value, or no value."""
    for record in records(known):
        for place in places(record):
            made = [json.dumps(changed(record, place, odd, drop=False)).encode() for odd in ODD]
            made.append(json.dumps(changed(record, place, None, drop=True)).encode())
            assert unaccounted(known, jsonl(made)) == {}


@every_format
@given(data=st.binary(max_size=300))
def test_any_bytes_are_accounted_for(known: TranscriptFormat, data: bytes) -> None:
    """Content of another format or of no format raises no error."""
    assert unaccounted(known, data) == {}


@every_format
@settings(max_examples=60)
@given(data=st.data())
def test_reading_may_resume_at_any_exchange(known: TranscriptFormat, data: st.DataObject) -> None:
    """Resumed reading yields the same exchanges as a full read, even if records are missing."""
    made = records(known)
    kept = data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))

    assert changed_by_resuming(known, jsonl(compress(made, kept))) == []


@every_format
def test_a_record_of_an_unknown_type_is_skipped_with_its_name(known: TranscriptFormat) -> None:
    """An unknown record does not affect the lines around it.

    Container formats may ignore the record, because Palaver itself writes the records of containers.
    """
    made = [*records(known), {"kind_of_tomorrow": 1}]
    reasons = [event.reason for event in events(known, *made) if isinstance(event, Skipped)]

    assert unaccounted(known, jsonl(made)) == {}
    assert reasons[-1].startswith("unknown-type") or known in container_formats()
    assert exchanges(known, jsonl(made[:-1]))[0].turns == exchanges(known, jsonl(made))[0].turns


@every_format
def test_events_precede_the_next_exchange(known: TranscriptFormat) -> None:
    """Reading a line yields events of that line and of earlier lines only."""
    taken = list[int]()

    def tapped() -> Iterator[Any]:
        for line in lines(example(known)):
            taken.append(line.number)
            yield line

    for event in known.reader(session(known, example(known))).read(tapped()):
        assert event.line <= taken[-1]


@every_format
def test_shortening_changes_long_texts_only(known: TranscriptFormat) -> None:
    """Shortening keeps the lines, the kinds and the number of events."""
    short, long = (events(known, *records(known), shorten=shorten) for shorten in (True, False))

    assert [(type(event), event.line) for event in short] == [(type(event), event.line) for event in long]


# Times


@every_format
def test_times_do_not_depend_on_the_zone_of_the_system(known: TranscriptFormat) -> None:
    """A transcript has the same times wherever it is read, unless the agent records times without a zone."""
    hours = set[float]()
    with system_zone("UTC"):
        in_utc = times(known, example(known))
    for zone, offset in (("Asia/Tokyo", 9), ("America/New_York", -5)):
        with system_zone(zone):
            here = times(known, example(known))
        assert [at is None for at in here] == [at is None for at in in_utc]
        shifts = {(there - at) / 3_600_000 for there, at in zip(in_utc, here, strict=True) if there and at}
        hours |= {shift / offset for shift in shifts}

    assert hours - {0} == ({1} if known.agent in LOCAL_TIMES else set())


@every_format
def test_times_of_other_zones_are_read(known: TranscriptFormat) -> None:
    """A time in another zone than UTC is the same instant."""

    def elsewhere(time: re.Match[bytes]) -> bytes:
        moment = datetime.fromisoformat(time[1].decode()) + timedelta(hours=5, minutes=30)
        return moment.isoformat().encode() + (time[2] or b"") + b"+05:30"

    data = re.sub(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z", elsewhere, example(known))

    assert times(known, data) == times(known, example(known))


# Damaged and rearranged transcripts


def said(known: TranscriptFormat, data: bytes) -> Counter[tuple[Speaker, Kind, str]]:
    """Count the texts of prompts and replies, by speaker. The archive keeps one of two turns with the same record."""
    turns = [event for event in known.reader(session(known, data)).read(lines(data)) if isinstance(event, Turn)]
    unique = dict.fromkeys(
        (turn.record or place, turn.speaker, turn.kind, turn.text)
        for place, turn in enumerate(turns)
        if turn.kind in {Kind.PROMPT, Kind.PROSE}
    )
    return Counter(key[1:] for key in unique)


def strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, dict):
        yield from strings(list(cast("dict[str, object]", value).values()))
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from strings(inner)


@every_format
def test_damage_adds_and_doubles_no_text(known: TranscriptFormat) -> None:
    """Of a damaged or rearranged transcript, every line is accounted for, and only the user's own words are human.

    `make fuzz` tries 10,000 mutations of each format.
    """
    before = said(known, example(known))
    typed = {text for speaker, _, text in before if speaker is Speaker.HUMAN}
    shown, recorded = {text for _, _, text in before}, set(strings(records(known)))
    for number, (mutation, data) in enumerate(mutations_of(example(known), int(os.environ.get("MUTATIONS", "300")))):
        place = f"{mutation.__name__}, number {number}"
        assert unaccounted(known, data) == {}, place
        if mutation in REARRANGED:
            after = said(known, data)
            added = [text for _, _, text in after - before] if mutation in KEEPING_ORDER else []
            # Without its last version, an earlier version of a text remains.
            assert [text for text in added if text in shown or text not in recorded] == [], place
            assert {text for speaker, _, text in after if speaker is Speaker.HUMAN} <= typed, place


@every_format
def test_other_line_ends_change_nothing(known: TranscriptFormat) -> None:
    """A byte order mark and the line ends of Windows change no text."""
    data = b"\xef\xbb\xbf" + example(known).replace(b"\n", b"\r\n")

    assert said(known, data) == said(known, example(known))


@every_format
def test_names_and_texts_of_any_script_are_kept(known: TranscriptFormat) -> None:
    """A prompt keeps its letters, whatever script they belong to."""
    words = "Fix the login: Grüße, 東京 и «тест» 🦜"
    data = example(known).replace(b"Fix the login", words.encode())

    assert any(text.startswith(words) for _, _, text in said(known, data))


@every_format
def test_a_file_may_be_cut_at_any_byte(known: TranscriptFormat) -> None:
    """Wherever a line is cut, it is accounted for, and so is the first line of the file."""
    first, *rows = example(known).splitlines(keepends=True)
    for head, row in ((b"", first), *((first, row) for row in rows)):
        assert [end for end in range(1, len(row)) if unaccounted(known, head + row[:end])] == []
