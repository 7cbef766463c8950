"""Tests of searching the output of tools, which is archived but not indexed."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.deletion.deletions import Deletions
from palaver.core.conversation import Exchange
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput, UnknownProject
from palaver.core.query import Filters
from palaver.core.results import OutputMatches
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present import output_search
from palaver.search.present.transcript_reader import TranscriptReader
from palaver.templates.json_output import output_json
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
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


def printed(history: History, phrase: str, filters: Filters = Filters(), **options: Any) -> OutputMatches:  # noqa: B008
    with ArchiveSearch(history.home) as layers:
        return layers.find_output(phrase, filters, **options)


@pytest.mark.parametrize("compressed", [False, True])
def test_output_of_a_tool_is_found(history: History, compressed: bool) -> None:
    """Words match literally, regardless of case and line breaks, and layer 3 shows the line of the match."""
    if compressed:
        assert CopyCompressor(history.store, history.raw).run(budget=60).compressed == 1
    for phrase in ("drwxr-xr-x brass", "total 8 Drwxr-xr-x", "export TOKEN", "rass ket"):
        [match] = printed(history, phrase).matches
        with ArchiveSearch(history.home) as layers:
            [exchange] = layers.read(match.path, match.line, match.line).exchanges
            [detail] = layers.details([match.id])

        assert "drwxr-xr-x brass kettle" in exchange.turns[0].text.lower()
        assert (match.line, match.project, match.session_id) == (3, "shop", ORIGINAL)
        assert detail.path == match.path


def test_a_match_has_the_lines_around_it(history: History) -> None:
    """A match has the requested number of lines before and after it, and the number of further matches."""
    rows = [f"row {number}" for number in range(10)]
    history.write(lines(OTHER, "\n".join([*rows, "copper pot, copper pot", *rows, "Copper POT"])), OTHER)
    history.ingest()

    [match] = printed(history, "copper pot", context=3).matches
    assert (match.before, match.text, match.after) == (tuple(rows[-3:]), "copper pot, copper pot", tuple(rows[:3]))
    assert match.more == 2
    [bare] = printed(history, "copper pot", context=0).matches
    assert (bare.before, bare.after) == ((), ())


def test_near_matches_of_one_exchange_are_read_together(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each output of an exchange is a match of its own. Near lines are parsed once, and lines without output never."""
    place = {"sessionId": OTHER, "cwd": "/home/demo/shop"}
    calls = [
        line
        for number in range(30)
        for line in (
            assistant(tool("Bash", {"command": "cat pot"}, id=f"c{number}"), id=f"n{number}", **place),
            result(f"copper pot {number}" if number % 3 else "tin", id=f"c{number}", **place),
        )
    ]
    history.write([*lines(OTHER, "copper pot", "copper pot?"), *calls], OTHER)
    history.ingest()
    ranges = list[tuple[int, int]]()
    whole = TranscriptReader.whole

    def counted(reader: TranscriptReader, path: str, start: int, end: int) -> list[Exchange]:
        ranges.append((start, end))
        return whole(reader, path, start, end)

    monkeypatch.setattr(TranscriptReader, "whole", counted)

    found = printed(history, "copper pot", limit=50)
    assert [match.line for match in found.matches] == [3, *(6 + 2 * number for number in range(30) if number % 3)]
    assert ranges == [(3, 64)]


def test_long_lines_are_shortened_around_the_match(history: History) -> None:
    """The shown line contains the match, even in the middle of a line of a megabyte."""
    history.write(lines(OTHER, "x" * 500_000 + " copper pot " + "y" * 500_000), OTHER)
    history.ingest()

    [match] = printed(history, "copper pot").matches
    assert "copper pot" in match.text
    assert len(match.text) <= 200


def test_the_search_stops_at_the_limit(history: History) -> None:
    """The search returns at most `limit` matches, of the newest transcripts first, and says that it stopped."""
    history.write(lines(OTHER, "brass kettle"), OTHER, at=9)
    history.ingest()

    found = printed(history, "brass kettle", limit=1)
    assert found.limited
    assert [match.session_id for match in found.matches] == [OTHER]
    assert not printed(history, "brass kettle", limit=3).limited


@pytest.mark.parametrize("text", ["日本語", "ключ", "Ärger 7"])
def test_any_script_is_found(history: History, text: str) -> None:
    """Text without ASCII letters is found, although transcripts may contain it escaped."""
    history.write(lines(OTHER, f"before\n{text}\nafter"), OTHER)
    history.ingest()

    assert [match.text for match in printed(history, text).matches] == [text]


@pytest.mark.parametrize(
    ("text", "filters", "options"),
    [
        ("", Filters(), {}),
        ("-->", Filters(), {}),
        (SECRET, Filters(), {}),
        ("brass kettle", Filters(roles=("human",)), {}),
        ("brass kettle", Filters(), {"limit": 0}),
        ("brass kettle", Filters(), {"limit": 51}),
        ("brass kettle", Filters(), {"context": 11}),
    ],
)
def test_invalid_searches_are_refused(history: History, text: str, filters: Filters, options: dict[str, int]) -> None:
    """A text without words, a secret, a role filter and invalid numbers raise an error with a remedy."""
    with pytest.raises(InvalidInput) as refused:
        printed(history, text, filters, **options)

    assert SECRET not in str(refused.value)


def test_only_output_is_searched(history: History) -> None:
    """Prompts, answers and tool calls do not match."""
    for phrase in ("what is there", "A folder", "ls"):
        assert printed(history, phrase).matches == ()


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

    assert [match.path for match in printed(history, "brass kettle").matches] == [history.source().archived]


def test_the_middle_of_long_output_is_found(history: History) -> None:
    """Words are found even in a part of the output that layer 3 truncates."""
    history.write(
        lines(OTHER, "first\n" + "word\n" * 20_000 + f"copper pot TOKEN={SECRET}\n" + "word\n" * 20_000), OTHER
    )
    history.ingest()

    [found] = printed(history, "copper pot").matches
    assert "copper pot" in found.text
    assert SECRET[4:12] not in found.text


def test_repeated_words_take_no_extra_time(history: History) -> None:
    """Searching a dump of zeros for a phrase of repeated words does not need quadratic time."""
    history.write(lines(OTHER, "x 1\n" + "0 " * 2_000), OTHER)
    history.ingest()

    assert printed(history, "0 0 0 0 0 0 0 0 1 x").matches == ()
    assert printed(history, "0 0 0 0 0 0 0 0").matches


@pytest.mark.parametrize("phrase", ["kettle brass", "drwxr xr x", "Bash command", "tool_use_id", "\\nexport"])
def test_only_literal_matches_are_found(history: History, phrase: str) -> None:
    """Words in another order, other punctuation and the surrounding JSON do not match."""
    assert printed(history, phrase).matches == ()


def test_a_secret_is_not_repeated(history: History) -> None:
    """A search for a part of a secret finds nothing, and a match beside a secret does not show it."""
    assert printed(history, SECRET[:20]).matches == ()
    [match] = printed(history, "export TOKEN").matches
    assert SECRET[4:12] not in match.text


@pytest.mark.parametrize("erase", [False, True])
def test_a_forgotten_session_is_not_found(history: History, erase: bool) -> None:
    """Output of a forgotten session is not found, even while its raw copy exists."""
    deletions = Deletions(history.store, history.raw)
    deletions.delete(deletions.plan(DeletionRequest(targets=(ORIGINAL,), erase=erase)))

    assert printed(history, "drwxr-xr-x brass").matches == ()


@pytest.mark.parametrize("what", ["exchange", "session"])
def test_a_private_span_is_not_found(history: History, what: str) -> None:
    """Text that a user marked as private is archived but not found."""
    history.write(lines(FORK, "copper pan here", f"what is there\n\nDo not index this {what}."), FORK)
    history.write(lines(OTHER, "copper pot here"), OTHER)
    history.ingest()

    assert b"copper pan" in (history.home.archive / history.source(FORK).archived).read_bytes()
    assert printed(history, "copper pan").matches == ()
    assert printed(history, "copper pot").matches


def test_filters_apply_to_output(history: History) -> None:
    """Only output of exchanges that satisfy the filters is found."""
    assert printed(history, "brass kettle", Filters(projects=("shop",))).matches
    assert printed(history, "brass kettle", Filters(projects=("shop",), agents=("codex",))).matches == ()
    with pytest.raises(UnknownProject):
        printed(history, "brass kettle", Filters(projects=("other",)))


def test_a_search_that_exceeds_its_time_limit_says_so(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that exceeds its time limit returns the number of transcripts that were not searched completely."""
    monkeypatch.setattr(output_search, "monotonic", count().__next__)

    found = printed(history, "a folder")
    assert (found.matches, found.searched, found.unread, found.limited) == ((), 0, 1, False)


def test_a_stopped_search_says_how_far_it_came_and_how_to_go_on(history: History) -> None:
    """The newest conversations are searched first, and the rest is found from the date that the page names."""
    for day in (3, 5, 4):
        place = {"timestamp": f"2026-05-{day:02d}T10:00:00.000Z"}
        said = cast("list[dict[str, object]]", lines(f"{day}{OTHER[1:]}", "tin mug"))
        dated: list[object] = [{**line, **place} for line in said]
        history.write(dated, f"{day}{OTHER[1:]}", at=9 - day)
    history.ingest()
    found = printed(history, "tin mug", limit=1)

    assert [match.session_id[0] for match in found.matches] == ["5"]
    assert (found.limited, found.searched, found.unread) == (True, 0, 4)
    page = Renderer(at_shell=True).output(found, filtered=False)
    assert "Stopped at 1 match. To search the older ones, add --before 2026-05-05.\n" in page
    rest = printed(history, "tin mug", Filters.parse(before="2026-05-04"))
    assert [match.session_id[0] for match in rest.matches] == ["4", "3"]
    assert (rest.unread, rest.back_to, rest.limited) == (0, None, False)


def test_matches_that_are_not_shown_can_be_found_again(history: History) -> None:
    """If only some matches fit into a page, the date for the next search includes the others."""
    found = printed(history, "brass kettle")
    [match] = found.matches
    other = replace(match, at=(match.at or 0) - 86_400_000)
    part = replace(found, matches=(match, other)).first((match,))

    assert (part.matches, part.limited, part.back_to) == ((match,), True, other.at)
    assert found.first(found.matches) == found


def test_only_lines_that_may_match_are_parsed(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """White space, and the border of two blocks, separate words. Lines with the words apart are not parsed."""
    blocks = [{"type": "text", "text": "a tin"}, {"type": "text", "text": "mug"}]
    said: list[Any] = ["tin is not a mug", "tin\n\t mug", "tin\u00a0mug", "TIN   MUG", blocks]
    for number, output in enumerate(said, 4):
        history.write(lines(f"{number}{OTHER[1:]}", output), f"{number}{OTHER[1:]}")
    history.ingest()
    parsed = list[str]()
    whole = TranscriptReader.whole

    def note(reader: TranscriptReader, path: str, start: int, end: int) -> list[Exchange]:
        parsed.append(path)
        return whole(reader, path, start, end)

    monkeypatch.setattr(TranscriptReader, "whole", note)
    found = printed(history, "tin mug")

    assert sorted(match.session_id[0] for match in found.matches) == ["5", "6", "7", "8"]
    assert len(parsed) == 4


def test_damaged_copies_are_skipped(history: History) -> None:
    """A missing raw copy does not stop the search."""
    history.write(lines(OTHER, "brass kettle"), OTHER)
    history.ingest()
    (history.home.archive / history.source().archived).unlink()

    assert [match.session_id for match in printed(history, "brass kettle").matches] == [OTHER]


def test_both_formats_show_a_match(history: History) -> None:
    """Markdown and JSON replies contain the place, the text and the surrounding lines."""
    found = printed(history, "brass kettle")
    [match] = found.matches

    page = Renderer().output(found, filtered=False)
    assert f"{match.path}:{match.line}" in page
    assert "> Drwxr-xr-x brass kettle" in page
    [shown] = output_json(found)["matches"]
    assert (shown["id"], shown["line"], shown["before"]) == (match.id, 3, ["total 8"])


def test_output_in_a_record_on_several_lines_is_found(history: History) -> None:
    """The words of a match can be on different lines of one record. The match has the record's first line."""
    rows = jsonl(lines(FORK, "first plum\nsecond\nthird pear")).replace(b"\\n", b"\n")
    history.write(rows, FORK, at=2)
    history.ingest()

    [match] = printed(history, "plum second third pear").matches
    assert (match.line, match.text) == (3, "first plum")
    with ArchiveSearch(history.home) as layers:
        for line in (3, 4, 5):
            [found] = layers.read(match.path, line, line).exchanges
            assert [turn.text for turn in found.turns] == ["first plum\nsecond\nthird pear"]
