"""Whatever stands on a line, is it either read or counted under a name?"""

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats, container_formats, recognise
from palaver.core.conversation import Kind, Skipped, Speaker

from .examples import FOLDER, example, records
from .reading import events, exchanges, unaccounted, written

every_format = pytest.mark.parametrize("known", all_formats(), ids=lambda known: known.agent)

ODD: list[Any] = [
    None, True, False, -1, 0, 1.5, 1e300, 10**30, "", "x", "a b\nc", "\x00\x1b[31m", "\ud800", "<recalled>", [], {},
    [[]], [None], [{}], ["x", 3], [{"type": ["text"]}], {"type": {}}, {"type": None}, {"x": {"y": [{"z": []}]}},
    [{"type": "text", "text": 3}], {"text": {"text": "x"}}, {"role": []}, "user", "assistant", "{", '{"path": 3}',
]  # fmt: skip
"""What can stand in a field where nobody expects it."""


def places(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a record."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = cast("dict[str | int, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[object]", value))
    for key, inner in items:
        yield (*here, key)
        yield from places(inner, (*here, key))


def changed(record: Any, place: Sequence[str | int], odd: Any, *, drop: bool) -> Any:
    """The record with something else, or nothing, in one place."""
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
    """A record of real shape as it is, with odd fields, without some, with more, or cut off."""
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(record))
        if found:
            record = changed(record, draw(st.sampled_from(found)), draw(st.sampled_from(ODD)), drop=draw(st.booleans()))
    if draw(st.booleans()):
        record = {**record, draw(st.sampled_from(["new", "type", "data"])): draw(st.sampled_from(ODD))}
    data = json.dumps(record).encode()
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 9)) == 0 else data


@st.composite
def transcript(draw: st.DrawFn, known: TranscriptFormat) -> bytes:
    """Records of one format in any order, some of them changed, some glued together on a line."""
    chosen = draw(st.lists(st.sampled_from(records(known)), max_size=8))
    lines = [draw(mutated(record)) for record in chosen]
    return b"".join(line + draw(st.sampled_from([b"\n", b"\n", b"\n", b""])) for line in lines) + b"\n"


@every_format
@settings(max_examples=60)
@given(data=st.data())
def test_no_line_is_lost_and_none_is_an_error(known: TranscriptFormat, data: st.DataObject) -> None:
    """Unknown kinds, wrong types in any field, missing fields and garbage give turns, notes or one named reason."""
    made = data.draw(transcript(known))

    assert unaccounted(known, made) == {}


@every_format
def test_each_field_may_hold_anything(known: TranscriptFormat) -> None:
    """Every field of every record, one after another, with everything odd in it, and without it."""
    for record in records(known):
        for place in places(record):
            made = [json.dumps(changed(record, place, odd, drop=False)).encode() for odd in ODD]
            made.append(json.dumps(changed(record, place, None, drop=True)).encode())
            assert unaccounted(known, written(made)) == {}


@every_format
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_a_file_begins_with_it_is_told_whose_it_is(known: TranscriptFormat, data: st.DataObject) -> None:
    """Telling a format and a session never fails: at worst nobody knows the file, or its name tells."""
    made = data.draw(transcript(known))
    found = recognise(made)

    assert found is None or found.identify(Path("folder/name.jsonl"), made).native_id


@every_format
def test_an_unknown_kind_is_kept_and_counted(known: TranscriptFormat) -> None:
    """Under a reason that names it; the lines around it are read as before. Rows of containers are written by us."""
    made = [*records(known), {"kind_of_tomorrow": 1}]
    reasons = [event.reason for event in events(known, *made) if isinstance(event, Skipped)]

    assert unaccounted(known, written(made)) == {}
    assert reasons[-1].startswith("unknown-type") or known in container_formats()
    assert exchanges(known, written(made[:-1]))[0].turns == exchanges(known, written(made))[0].turns


@every_format
def test_the_example_says_what_a_conversation_says(known: TranscriptFormat) -> None:
    """A person asks for the login to be fixed, and the agent thinks, answers and uses tools."""
    said = [turn for exchange in exchanges(known, example(known)) for turn in exchange.turns]

    asked = next(turn for turn in said if turn.kind is Kind.PROMPT)

    assert (asked.speaker, asked.text[:13]) == (Speaker.HUMAN, "Fix the login")
    assert {Kind.THINKING, Kind.PROSE, Kind.CALL, Kind.RESULT} <= {turn.kind for turn in said}


def test_every_format_has_an_example() -> None:
    """A new format brings one, and is then tested as the others are."""
    assert {known.agent for known in all_formats()} <= {path.stem for path in FOLDER.iterdir()}
