"""Tests of searching the output of tools, which is archived but not indexed."""

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

from ...archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user
from ...archiver.history import FORK, ORIGINAL, History

OTHER = "33333333-0000-4000-8000-000000000003"
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
PRINTED = f"total 8\nDrwxr-xr-x brass kettle\nexport TOKEN={SECRET} done"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Return an archive of a session with a tool's output and a session with a private span."""
    with History(tmp_path) as made:
        made.write(lines(ORIGINAL, PRINTED))
        made.ingest()
        yield made


def lines(session: str, printed: str, asked: str = "what is there") -> list[object]:
    place = {"sessionId": session, "cwd": "/home/demo/shop"}
    return [
        user(asked, uuid=f"{session}-q", **place),
        assistant(tool("Bash", {"command": "ls"}, id=f"t{session}"), id=f"m{session}", uuid=f"{session}-c", **place),
        result(printed, id=f"t{session}", **place),
        assistant(text("A folder."), id=f"e{session}", uuid=f"{session}-e", **place),
    ]


def printed(history: History, phrase: str, filters: Filters = Filters()) -> ToolOutputMatches:  # noqa: B008
    with ArchiveSearch(history.home) as layers:
        explanation = layers.find(Query((f'"{phrase}"',), mode=Mode.TEXT, filters=filters)).explanation
    assert explanation is not None
    return explanation.tool_output


@pytest.mark.parametrize("compressed", [False, True])
def test_output_of_a_tool_is_found(history: History, compressed: bool) -> None:
    """Words match literally, regardless of case and line breaks; Markdown and JSON show the matching lines."""
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
        explanation = results_json(answer)["explanation"]
        assert explanation is not None
        assert explanation["tool_output"]["lines"] == [{"path": place.path, "line": 3, "text": place.text}]


def test_replies_of_palaver_are_not_output(history: History) -> None:
    """Output of Palaver's own tools and commands is not searched, since it repeats earlier results."""
    place = {"sessionId": OTHER, "cwd": "/home/demo/shop"}
    answered = "none has `brass kettle` in these words, but tools printed it"
    asked = [
        assistant(tool("mcp__palaver__search", {"query": '"brass kettle"'}, id="t1"), id="m1", uuid="c1", **place),
        result(answered, id="t1", **place),
        assistant(tool("Bash", {"command": "palaver search '\"brass kettle\"'"}, id="t2"), id="m2", uuid="c2", **place),
        result(answered, id="t2", **place),
        assistant(tool("Bash", {"command": "cat notes"}, id="t3"), id="m3", uuid="c3", **place),
        result("notes\n<recalled>\nthe brass kettle\n</recalled>", id="t3", **place),
    ]
    history.write([user("where is it", uuid="q1", **place), *asked], OTHER, at=9)
    history.ingest()

    assert [place.path for place in printed(history, "brass kettle").lines] == [history.source().archived]


def test_the_middle_of_long_output_is_found(history: History) -> None:
    """Words are found even in a part of the output that layer 3 truncates."""
    history.write(
        lines(OTHER, "first\n" + "word\n" * 20_000 + f"copper pot TOKEN={SECRET}\n" + "word\n" * 20_000), OTHER
    )
    history.ingest()

    [found] = printed(history, "copper pot").lines
    assert "copper pot" in found.text
    assert SECRET[4:12] not in found.text


def test_repeated_words_take_no_extra_time(history: History) -> None:
    """Searching a dump of zeros for a phrase of repeated words does not need quadratic time."""
    history.write(lines(OTHER, "x 1\n" + "0 " * 2_000), OTHER)
    history.ingest()

    assert printed(history, "0 0 0 0 0 0 0 0 1 x").lines == ()
    assert printed(history, "0 0 0 0 0 0 0 0").lines


@pytest.mark.parametrize("phrase", ["rwxr-xr-x", "kettle brass", "drwxr xr x", "Bash command", "\\n"])
def test_only_literal_matches_are_found(history: History, phrase: str) -> None:
    """Parts of words and the surrounding JSON do not match."""
    assert printed(history, phrase).lines == ()


def test_a_secret_is_not_repeated(history: History) -> None:
    """A query for a secret returns neither the secret nor its context, and does not report that it was not found."""
    assert printed(history, SECRET) == ToolOutputMatches()
    assert printed(history, SECRET[:20]) == ToolOutputMatches(searched=True)
    [place] = printed(history, "export TOKEN").lines
    assert SECRET[4:12] not in place.text


@pytest.mark.parametrize("erase", [False, True])
def test_a_forgotten_session_is_not_found(history: History, erase: bool) -> None:
    """Output of a forgotten session is not found, even while its raw copy exists."""
    deletions = Deletions(history.store, history.raw)
    deletions.delete(deletions.plan(DeletionRequest(targets=(ORIGINAL,), erase=erase)))

    assert printed(history, "drwxr-xr-x brass").lines == ()


@pytest.mark.parametrize("what", ["exchange", "session"])
def test_a_private_span_is_not_found(history: History, what: str) -> None:
    """Text that a user marked as private is archived but not found."""
    history.write(lines(FORK, "copper pan here", f"what is there\n\nDo not index this {what}."), FORK)
    history.write(lines(OTHER, "copper pot here"), OTHER)
    history.ingest()

    assert b"copper pan" in (history.home.archive / history.source(FORK).archived).read_bytes()
    assert printed(history, "copper pan") == ToolOutputMatches(searched=True)
    assert printed(history, "copper pot").lines


def test_filters_apply_to_output(history: History) -> None:
    """Output is found under filters that match its session, but not under a role filter."""
    assert printed(history, "brass kettle", Filters(projects=("shop",))).lines
    assert printed(history, "brass kettle", Filters(projects=("other",))) == ToolOutputMatches(searched=True)
    assert printed(history, "brass kettle", Filters(roles=("human",))) == ToolOutputMatches()


def test_an_incomplete_search_denies_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that exceeds its time limit does not report that the words were not found."""
    monkeypatch.setattr(output_search, "monotonic", count().__next__)
    with ArchiveSearch(history.home) as layers:
        found = layers._output_search.find(Query(('"a folder"',)), ["a folder"], 2.0)  # pyright: ignore[reportPrivateUsage]

    assert found == ToolOutputMatches(unread=1, searched=True)


def test_the_search_ends_in_time_and_skips_damaged_copies(history: History) -> None:
    """A search that exceeds its time limit reports the number of copies left, and missing copies are skipped."""
    with ArchiveSearch(history.home) as layers:
        left = layers._output_search.find(Query(('"brass kettle"',)), ["brass kettle"], 0.0)  # pyright: ignore[reportPrivateUsage]
    assert left == ToolOutputMatches(unread=1, searched=True)

    (history.home.archive / history.source().archived).unlink()
    assert printed(history, "brass kettle") == ToolOutputMatches(searched=True)
