"""Deletions of records that are on several lines, because their line feeds are not escaped."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.deletion.suppression import SuppressionList
from palaver.archiver.lines import split

from ..formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..history import FORK, ORIGINAL, History
from .steps import copied_bytes, exchange, forget, undo

BREAK = "\ue000"
PRINTED = f"Sizes:{BREAK}kettle 12{BREAK}{{teapot}}"


def session(name: str) -> bytes:
    """Return a session with two exchanges. The second and the fourth record of the first are on several lines."""
    records = [
        user("How large?", uuid="q1", sessionId=name),
        assistant(tool("Bash", {"command": f"ls{BREAK}pwd"}, id="t1"), id="m1", uuid="c1", sessionId=name),
        result(PRINTED, id="t1", uuid="r1", sessionId=name),
        assistant(text(f"Twelve.{BREAK}And a teapot."), id="m2", uuid="e1", sessionId=name),
        user("Thanks", uuid="q2", sessionId=name),
    ]
    rows = (json.dumps(record, ensure_ascii=False).replace(BREAK, "\n") for record in records)
    return "".join(f"{row}\n" for row in rows).encode()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        made.write(session(ORIGINAL))
        made.ingest()
        yield made


def test_every_line_has_the_outcome_of_its_record(history: History) -> None:
    """All lines of a record are counted as parsed, and turns and exchanges have the lines of the file."""
    [first, second] = history.exchanges(ORIGINAL)
    source = history.source()

    assert (source.lines, source.coverage) == (9, {"parsed": 9})
    assert [(each.span.start_line, each.span.end_line) for each in (first, second)] == [(1, 8), (9, 9)]
    assert [turn.line for turn in first.turns] == [1, 2, 4, 7]
    assert first.answer == "Twelve.\nAnd a teapot."
    assert first.turns[2].text == "Sizes:\nkettle 12\n{teapot}"


@pytest.mark.parametrize("erase", [False, True])
def test_a_deletion_includes_all_lines_of_a_record(history: History, erase: bool) -> None:
    """No part of a deleted record stays or returns, in its own file or in a copy at another path."""
    number = forget(history, exchange(history, "How large?"), erase=erase)
    history.write(session(FORK).replace(FORK.encode(), ORIGINAL.encode()), FORK, at=2)
    history.store.sources.outdate()
    history.ingest()

    assert sorted({each.exchange.prompt for each in history.stored()}) == ["Thanks"]
    assert history.source().coverage == {"forgotten": 8, "parsed": 1}
    assert all((word in copied_bytes(history)) is not erase for word in (b"kettle", b"teapot", b"pwd", b"Twelve"))
    assert copied_bytes(history).count(b"Thanks") == 2
    if not erase:
        undo(history, number)
        assert "How large?" in {each.exchange.prompt for each in history.stored()}


@pytest.mark.parametrize("line", [4, 5, 6])
def test_any_line_of_a_record_selects_its_exchange(history: History, line: int) -> None:
    """A deletion that names one line of a record deletes the exchange, with all lines of the record."""
    forget(history, f"{history.source().archived}:{line}-{line}", erase=True)

    assert history.prompts() == ["Thanks"]
    assert b"kettle" not in copied_bytes(history)
    assert b"teapot" not in copied_bytes(history)


def test_tombstones_of_single_lines_stay_valid(history: History) -> None:
    """A tombstone of the first or last line alone, as earlier versions stored, applies to the whole record."""
    suppression, path = SuppressionList(history.store, history.home.key()), history.path()
    whole = list(split(io.BytesIO(session(ORIGINAL))))[2]
    first, *_, last = whole.data.split(b"\n")
    single = whole._replace(data=first, line_count=1), whole._replace(number=whole.last, data=last, line_count=1)

    assert whole.line_count == 3
    assert all(suppression.hashes([path], each) < suppression.hashes([path], whole) for each in single)
    assert suppression.hashes([Path("/copy")], single[1]) & suppression.hashes([path], whole)


def test_a_record_that_is_being_written_is_read_when_it_is_complete(history: History) -> None:
    """The first lines of an unfinished record are read again together with the rest."""
    row = session("other").splitlines(keepends=True)[3:6]
    for count, piece in enumerate(row, 1):
        history.append(piece, at=1 + count)
        history.ingest()
    history.append(jsonl([user("More?", uuid="q3")]), at=9)
    history.ingest()

    assert history.prompts() == ["How large?", "Thanks", "More?"]
    assert history.exchanges(ORIGINAL)[1].turns[1].text == "Sizes:\nkettle 12\n{teapot}"
    assert history.source().coverage == {"parsed": 13}
