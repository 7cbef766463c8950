"""Tests of reading a range of lines from a transcript."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.copies.verification import CopyCompressor
from palaver.core.results import TranscriptExcerpt
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present import transcript_reader
from palaver.templates.json_output import transcript_json
from palaver.templates.render import Renderer

from ...archiver.deletion.steps import exchange as asked
from ...archiver.deletion.steps import forget
from ...archiver.formats.claude_code.claude_lines import assistant, queue, result, text, tool, user
from ...archiver.history import FORK, ORIGINAL, History, talk

STEPS = 40


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Return a session of two exchanges, each with a prompt, forty tool calls with results, and an answer."""
    with History(tmp_path) as made:
        made.write([line for number in range(2) for line in exchange(number)])
        made.ingest()
        yield made


def exchange(number: int) -> Iterator[dict[str, object]]:
    yield user(f"ask {number}", uuid=f"q{number}", sessionId=ORIGINAL)
    for step in range(STEPS):
        name = f"{number}-{step}"
        yield used(
            assistant(tool("Read", {"file_path": f"/x/{step}.py"}, id=f"t{name}"), id=f"m{name}", uuid=f"c{name}")
        )
        yield result(f"printed {name}", id=f"t{name}")
    yield assistant(text(f"answer {number}"), id=f"e{number}", uuid=f"e{number}")


def used(line: dict[str, Any]) -> dict[str, Any]:
    """Return the reply with a usage of ten input tokens and two output tokens."""
    line["message"]["usage"] = {"input_tokens": 10, "output_tokens": 2}
    return line


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lead", [0, 1, 7])
def test_a_range_within_an_exchange_gives_the_same_turns(
    history: History, monkeypatch: pytest.MonkeyPatch, compressed: bool, lead: int
) -> None:
    """Reading from the middle of an exchange gives the same turns and exchange as reading all lines."""
    archived = history.source().archived
    with ArchiveSearch(history.home) as layers:
        expected = {start: turns_of(layers.read(archived, start, start + 9)) for start in range(1, 160, 3)}
        if compressed:
            assert CopyCompressor(history.store, history.raw).run(budget=60).compressed == 1
        monkeypatch.setattr(transcript_reader, "_LEAD", lead)
        assert {start: turns_of(layers.read(archived, start, start + 9)) for start in expected} == expected


def test_a_private_exchange_is_hidden_to_its_end(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines of a private exchange are hidden, however far they are from the prompt."""
    monkeypatch.setattr(transcript_reader, "_LEAD", 3)
    _, *others = exchange(3)
    kept = user("ask 3\n\nDo not index this message.", uuid="q3", sessionId=ORIGINAL)
    history.append([kept, *others, *exchange(4)])
    history.ingest()
    archived, end = history.source().archived, 3 * (STEPS * 2 + 2)
    with ArchiveSearch(history.home) as layers:
        read = [layers.read(archived, line, line).exchanges for line in range(end - STEPS, end + 1)]
        assert not any(read)
        [after] = layers.read(archived, end, end + 1).exchanges
    assert [turn.text for turn in after.turns] == ["ask 4"]


def test_a_queued_prompt_appears_only_where_it_was_sent(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines before the record of the sent prompt show no prompt. A prompt that the assistant read stays there."""
    monkeypatch.setattr(transcript_reader, "_LEAD", 1)
    prompt, *others = exchange(4)
    typed = [queue("enqueue", "ask 4"), queue("enqueue", "and commit"), queue("remove", "and commit")]
    history.append([*exchange(3), *typed, prompt, *others])
    history.ingest()
    archived, line = history.source().archived, 3 * (STEPS * 2 + 2)
    with ArchiveSearch(history.home) as layers:
        for start in (1, line, line + 1):
            read = layers.read(archived, start, line + 3)
            shown = [turn.text for exchange in read.exchanges for turn in exchange.turns]
            assert ("ask 4" in shown, "and commit" in shown) == (False, True)
        sent = layers.read(archived, line, line + 4).exchanges
    assert [exchange.turns[-1].text for exchange in sent] == ["and commit", "ask 4"]


def test_a_part_of_an_exchange_has_the_metadata_of_the_whole(history: History) -> None:
    """Each part has the lines and token usage of the whole exchange, and the range of lines that it shows."""
    archived = history.source().archived
    with ArchiveSearch(history.home) as layers:
        first, second = layers.read(archived).exchanges
        assert (first.span.end_line, second.span.start_line) == (STEPS * 2 + 2, STEPS * 2 + 3)
        assert second.tokens_out == 2 * STEPS
        part = layers.read(archived, 80, 99)
    spans = [(each.ordinal, each.span, each.tokens_in, each.tokens_out) for each in part.exchanges]
    assert spans == [(each.ordinal, each.span, each.tokens_in, each.tokens_out) for each in (first, second)]
    assert [part.shown(each.span) for each in part.exchanges] == [(80, 82), (83, 99)]
    page = Renderer().read(part)
    assert "## Exchange 1 (lines 1-82, " in page
    assert "; shown: lines 80-82)\n" in page
    shape = transcript_json(part)["exchanges"][1]
    assert (shape["start_line"], shape["end_line"], shape["tokens_out"]) == (83, 164, second.tokens_out)


def turns_of(transcript: TranscriptExcerpt) -> list[object]:
    return [
        (each.ordinal, each.span, each.started, each.tokens_in, [(t.line, t.text) for t in each.turns])
        for each in transcript.exchanges
    ]


def lines_of(transcript: TranscriptExcerpt) -> list[tuple[int, str]]:
    return [(turn.line, turn.text) for each in transcript.exchanges for turn in each.turns]


def test_a_record_on_two_lines_is_shown_once(history: History) -> None:
    """A program can write a record twice. Its second line counts as repeated."""
    history.write([line for line in talk("port", "env", session=FORK) for _ in range(2)], FORK)
    history.ingest()
    archived = history.source(FORK).archived

    with ArchiveSearch(history.home) as layers:
        assert lines_of(layers.read(archived)) == [(1, "port?"), (3, "port!"), (5, "env?"), (7, "env!")]
        assert [line for line, _ in lines_of(layers.read(archived, 2, 4))] == [3]


def test_a_deleted_record_on_two_lines_is_never_shown(history: History) -> None:
    """Neither of the two lines of a deleted record is shown."""
    history.write([line for line in talk("port", "env", session=FORK) for _ in range(2)], FORK)
    history.ingest()
    forget(history, asked(history, "port?", FORK))
    archived = history.source(FORK).archived

    with ArchiveSearch(history.home) as layers:
        assert [line for line, _ in lines_of(layers.read(archived))] == [5, 7]
        assert b"port" not in b"".join(layers.read_raw(archived))
