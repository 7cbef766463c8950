"""Is what tools printed found in the copies, and only as layer 3 shows it?"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from palaver.archiver.copies.compressor import CopyCompressor
from palaver.archiver.deletion.deletions import Deletions
from palaver.core.deletion import DeletionRequest
from palaver.core.query import Filters, Mode, Query
from palaver.core.results import ToolOutputMatches
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present import output_search
from palaver.templates.json_output import results_json
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import replied, result, said, text, tool
from ...archiver.history import FORK, ORIGINAL, History

OTHER = "33333333-0000-4000-8000-000000000003"
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
PRINTED = f"total 8\nDrwxr-xr-x brass kettle\nexport TOKEN={SECRET} done"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A session in which a command printed what nobody said, and one that hides what its command printed."""
    with History(tmp_path) as made:
        made.write(lines(ORIGINAL, PRINTED))
        made.ingest()
        yield made


def lines(session: str, printed: str, asked: str = "what is there") -> list[object]:
    place = {"sessionId": session, "cwd": "/home/demo/shop"}
    return [
        said(asked, uuid=f"{session}-q", **place),
        replied(tool("Bash", {"command": "ls"}, id=f"t{session}"), id=f"m{session}", uuid=f"{session}-c", **place),
        result(printed, id=f"t{session}", **place),
        replied(text("A folder."), id=f"e{session}", uuid=f"{session}-e", **place),
    ]


def printed(history: History, phrase: str, filters: Filters = Filters()) -> ToolOutputMatches:  # noqa: B008
    with ArchiveSearch(history.home) as layers:
        why = layers.find(Query((f'"{phrase}"',), mode=Mode.TEXT, filters=filters)).explanation
    assert why is not None
    return why.tool_output


@pytest.mark.parametrize("compressed", [False, True])
def test_what_a_tool_printed_is_found_where_layer_3_reads_it(history: History, compressed: bool) -> None:
    """Word for word, in any case and across a line end; the page and the JSON say where."""
    if compressed:
        assert CopyCompressor(history.store, history.raw).run(budget=60).compressed == 1
    for phrase in ("drwxr-xr-x brass", "total 8 Drwxr-xr-x", "export TOKEN"):
        [place] = printed(history, phrase).lines
        with ArchiveSearch(history.home) as layers:
            [exchange] = layers.read(place.path, place.line, place.line).exchanges
            answer = layers.find(Query((f'"{phrase}"',), mode=Mode.TEXT))

        assert "drwxr-xr-x brass kettle" in exchange.turns[0].text.lower()
        assert place.line == 3
        assert f"{place.path}:3 {place.text}" in Renderer().search(answer)
        why = results_json(answer)["explanation"]
        assert why is not None
        assert why["tool_output"]["lines"] == [{"path": place.path, "line": 3, "text": place.text}]


def test_what_palaver_answered_is_no_printout(history: History) -> None:
    """The conversation that asks comes first, with the question itself: called as a tool, at a shell, or given back."""
    place = {"sessionId": OTHER, "cwd": "/home/demo/shop"}
    answered = "none has `brass kettle` in these words, but tools printed it"
    asked = [
        replied(tool("mcp__palaver__search", {"query": '"brass kettle"'}, id="t1"), id="m1", uuid="c1", **place),
        result(answered, id="t1", **place),
        replied(tool("Bash", {"command": "palaver search '\"brass kettle\"'"}, id="t2"), id="m2", uuid="c2", **place),
        result(answered, id="t2", **place),
        replied(tool("Bash", {"command": "cat notes"}, id="t3"), id="m3", uuid="c3", **place),
        result("notes\n<recalled>\nthe brass kettle\n</recalled>", id="t3", **place),
    ]
    history.write([said("where is it", uuid="q1", **place), *asked], OTHER, at=9)
    history.ingest()

    assert [place.path for place in printed(history, "brass kettle").lines] == [history.source().archived]


def test_the_midst_of_a_long_printout_is_found(history: History) -> None:
    """Layer 3 shortens it, where it is longer than a reply."""
    history.write(
        lines(OTHER, "first\n" + "word\n" * 20_000 + f"copper pot TOKEN={SECRET}\n" + "word\n" * 20_000), OTHER
    )
    history.ingest()

    [found] = printed(history, "copper pot").lines
    assert "copper pot" in found.text
    assert SECRET[4:12] not in found.text


def test_words_that_come_again_and_again_take_no_time(history: History) -> None:
    """Zeros in a dump are followed by zeros: trying each for each would not end."""
    history.write(lines(OTHER, "x 1\n" + "0 " * 2_000), OTHER)
    history.ingest()

    assert printed(history, "0 0 0 0 0 0 0 0 1 x").lines == ()
    assert printed(history, "0 0 0 0 0 0 0 0").lines


@pytest.mark.parametrize("phrase", ["rwxr-xr-x", "kettle brass", "drwxr xr x", "Bash command", "\\n"])
def test_only_what_stands_there_word_for_word_is_found(history: History, phrase: str) -> None:
    """Neither parts of words, nor the JSON around them."""
    assert printed(history, phrase).lines == ()


def test_a_secret_does_not_come_back(history: History) -> None:
    """Neither by itself nor by what stands beside it; that tools printed it is not denied either."""
    assert printed(history, SECRET) == ToolOutputMatches()
    assert printed(history, SECRET[:20]) == ToolOutputMatches(searched=True)
    [place] = printed(history, "export TOKEN").lines
    assert SECRET[4:12] not in place.text


@pytest.mark.parametrize("erase", [False, True])
def test_what_was_forgotten_does_not_come_back(history: History, erase: bool) -> None:
    """A session, also while its copy still lies there."""
    deletions = Deletions(history.store, history.raw)
    deletions.delete(deletions.plan(DeletionRequest(targets=(ORIGINAL,), erase=erase)))

    assert printed(history, "drwxr-xr-x brass").lines == ()


@pytest.mark.parametrize("what", ["exchange", "session"])
def test_what_was_kept_back_does_not_come_back(history: History, what: str) -> None:
    """What a person asked not to index is archived, and found by nobody."""
    history.write(lines(FORK, "copper pan here", f"what is there\n\nDo not index this {what}."), FORK)
    history.write(lines(OTHER, "copper pot here"), OTHER)
    history.ingest()

    assert b"copper pan" in (history.home.archive / history.source(FORK).archived).read_bytes()
    assert printed(history, "copper pan") == ToolOutputMatches(searched=True)
    assert printed(history, "copper pot").lines


def test_filters_and_who_said_it_hold_there_too(history: History) -> None:
    """Nobody said what was printed."""
    assert printed(history, "brass kettle", Filters(projects=("shop",))).lines
    assert printed(history, "brass kettle", Filters(projects=("other",))) == ToolOutputMatches(searched=True)
    assert printed(history, "brass kettle", Filters(roles=("human",))) == ToolOutputMatches()


def test_a_copy_that_was_not_read_to_its_end_is_left(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """That what stands behind where the time was up was not printed is not said."""
    monkeypatch.setattr(output_search, "monotonic", count().__next__)
    with ArchiveSearch(history.home) as layers:
        found = layers._output_search.find(Query(('"a folder"',)), ["a folder"], 2.0)  # pyright: ignore[reportPrivateUsage]

    assert found == ToolOutputMatches(unread=1, searched=True)


def test_looking_ends_in_time_and_damage_stops_nothing(history: History) -> None:
    """It is told how many copies were left; one that is gone is passed over."""
    with ArchiveSearch(history.home) as layers:
        left = layers._output_search.find(Query(('"brass kettle"',)), ["brass kettle"], 0.0)  # pyright: ignore[reportPrivateUsage]
    assert left == ToolOutputMatches(unread=1, searched=True)

    (history.home.archive / history.source().archived).unlink()
    assert printed(history, "brass kettle") == ToolOutputMatches(searched=True)
