"""A source reader describes the session of its source and counts every line."""

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.lines import PARSED, REPEATED
from palaver.archiver.reading.parsing import Exclusion
from palaver.archiver.reading.source_reader import IngestFilters, SourceReader, apply_title, title_of
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Source, SourceLine, Store
from palaver.core.conversation import Fact, Note, ResumePoint, Session, SessionKind

from ..formats.claude_code.claude_lines import assistant, jsonl, text, user
from ..history import FORK, ORIGINAL, named, talk

FILTERS = IngestFilters(Path("/home/demo/palaver"), Redactor(b"k" * 32), Exclusion())
MODE = {"type": "mode", "mode": "normal", "sessionId": ORIGINAL}


def source(session: str = ORIGINAL) -> Source:
    return Source(
        agent="claude-code",
        path=Path(f"/history/{session}.jsonl"),
        archived=f"claude-code/folder/{session}.jsonl",
        device=0,
        inode=0,
        mtime=0,
        size=0,
        head=b"",
        tail=b"",
        id=1,
    )


class KnownRecords:
    """Tables of a store that contains only these records."""

    def __init__(self, places: Mapping[str, SourceLine] | None = None) -> None:
        self.queries: list[set[str]] = []
        self._known = places or {}
        self.sources = self.sessions = self.exchanges = self

    def locate(self, records: Collection[str]) -> Mapping[str, SourceLine]:
        self.queries.append(set(records))
        return {record: place for record, place in self._known.items() if record in records}

    def find(self, *_: object) -> None:
        """Return None, because the store contains no session."""

    def has_relatives(self, *_: object) -> bool:
        return False

    def _none(self, *_: object) -> list[int]:
        return []

    ancestors = descendants = begun_at = of_sessions = beginning = beginning_with = _none

    def native_id(self, source: int) -> str:
        return str(source)

    def calls_before(self, *_: object) -> Mapping[str, object]:
        return {}

    def extracted(self, sources: Collection[int]) -> Collection[int]:  # noqa: ARG002
        return ()


class Read:
    """Session, source and reader after some records were read."""

    def __init__(
        self,
        *records: object,
        session: Session | None = None,
        source: Source = source(),  # noqa: B008
        places: Mapping[str, SourceLine] | None = None,
    ) -> None:
        self.session = session or Session("claude-code", ORIGINAL)
        self.source = replace(source)
        known = KnownRecords(places)
        self.queries = known.queries
        self.reading = SourceReader(ClaudeCode(), self.session, self.source, cast("Store", known), FILTERS)
        self.reading.run(io.BytesIO(jsonl(records)))

    @property
    def prompts(self) -> list[str]:
        return [exchange.prompt for exchange in self.reading.exchanges]


def test_a_session_is_described_by_its_lines() -> None:
    """Folder, version, models and dates come from the lines. The first folder and the last branch count."""
    here = {"cwd": "/home/demo/shop", "gitBranch": "main", "version": "2.0.1", "timestamp": "2026-03-01T10:00:00Z"}
    there = {"cwd": "/code/bakery", "gitBranch": "fix", "version": "2.0.2", "timestamp": "2026-03-01T11:00:00Z"}
    found = Read(user("one", **here), assistant(text("1"), **here), user("two", **there), assistant(text("2"), **there))

    assert found.session == Session(
        agent="claude-code",
        native_id=ORIGINAL,
        project="shop",
        cwd="/home/demo/shop",
        branch="fix",
        title="one",
        title_rank=0,
        version="2.0.2",
        models=["model-1"],
        started=1_772_359_200_000,
        ended=1_772_362_800_000,
    )


def test_every_line_has_one_outcome() -> None:
    """Every line is parsed, repeated or skipped for a reason."""
    found = Read(MODE, *talk("one"), b"", b"{", b"[]", *talk("one"), {"type": "novelty"})

    assert found.source.coverage == {
        "bookkeeping": 1,
        PARSED: 2,
        REPEATED: 2,
        "blank": 1,
        "cut-short": 1,
        "not-an-object": 1,
        "unknown-type:novelty": 1,
    }
    assert found.source.lines == found.reading.lines == 9
    assert found.source.parsed == len(jsonl([MODE, *talk("one"), b"", b"{", b"[]", *talk("one"), {"type": "novelty"}]))


def test_reading_stops_before_an_incomplete_line() -> None:
    """Reading ends after the last complete line."""
    data = jsonl(talk("one"))
    source_, session = source(), Session("claude-code", ORIGINAL)
    reading = SourceReader(ClaudeCode(), session, source_, cast("Store", KnownRecords()), FILTERS)
    reading.run(io.BytesIO(data + b'{"type":"user","mess'))

    assert (source_.lines, source_.parsed, source_.coverage) == (2, len(data), {PARSED: 2})


def test_the_resume_point_is_the_last_exchange() -> None:
    """The resume point has the line, byte and ordinal of the last exchange, and the outcomes of all earlier lines."""
    found = Read(MODE, *talk("one", "two"))

    assert found.source.resume == ResumePoint(
        line=4, byte=len(jsonl([MODE, *talk("one")])), ordinal=1, coverage={"bookkeeping": 1, PARSED: 2}
    )


def test_a_file_without_exchanges_is_read_from_its_start() -> None:
    """Without an exchange, the resume point is the start of the file."""
    assert Read(MODE, MODE).source.resume == ResumePoint()


def test_lines_of_another_file_are_repeated() -> None:
    """Lines of another file count as repeated and yield no exchange. A record on its own known line does not."""
    found = Read(
        *talk("one", "two", "three"),
        places={named("one-asked"): (7, 1), named("one-answered"): (7, 2), named("two-asked"): (1, 3)},
    )

    assert found.prompts == ["two?", "three?"]
    assert found.source.coverage == {REPEATED: 2, PARSED: 4}
    assert found.reading.records == {
        named("two-asked"): 3,
        named("two-answered"): 4,
        named("three-asked"): 5,
        named("three-answered"): 6,
    }


def test_earlier_lines_of_the_file_are_repeated() -> None:
    """A repeated record is recognised in one run and across several runs."""
    lines = [*talk("one", "two"), *talk("one")]
    assert Read(*lines).prompts == ["one?", "two?"]

    first = Read(*talk("one", "two"))
    places = {record: (1, line) for record, line in first.reading.records.items()}
    again = Read(*lines, source=first.source, session=first.session, places=places)
    assert again.prompts == ["one?", "two?"]
    assert again.source.coverage == Read(*lines).source.coverage == {PARSED: 4, REPEATED: 2}


def test_known_records_are_queried_once() -> None:
    """All records of a file are looked up in one query."""
    found = Read(*talk(*(f"w{number}" for number in range(20))))

    assert [len(records) for records in found.queries] == [40]


def test_a_session_is_dated_by_its_own_lines() -> None:
    """Lines that are repeated from another session do not change the dates of a fork."""
    old = user("old", uuid=named("old"), timestamp="2020-01-01T00:00:00Z")
    found = Read(old, user("new", uuid="new", timestamp="2026-03-01T10:00:00Z"), places={named("old"): (7, 1)})

    assert (found.session.started, found.session.ended) == (1_772_359_200_000, 1_772_359_200_000)


def test_dates_only_widen() -> None:
    """A later run keeps the earliest start and the latest end of a session."""
    known = Session("claude-code", ORIGINAL, started=5, ended=2**50)
    found = Read(*talk("one"), session=known)

    assert (found.session.started, found.session.ended) == (5, 2**50)
    assert (Read(MODE).session.started, Read(MODE).session.ended) == (None, None)


def test_the_best_title_wins() -> None:
    """A user's title has priority over a generated title, then the first prompt. Later titles win within a rank."""
    given = {"type": "custom-title", "customTitle": "Given", "sessionId": ORIGINAL}
    made = [{"type": "ai-title", "aiTitle": title, "sessionId": ORIGINAL} for title in ("Made", "Made later")]

    assert Read(*talk("one", "two")).session.title == "one?"
    assert Read(*talk("one"), *made).session.title == "Made later"
    assert Read(given, *talk("one"), *made).session.title == "Given"
    assert Read(*talk("one"), session=Session("claude-code", ORIGINAL, title="Known", title_rank=3)).session.title == (
        "Known"
    )


def test_a_long_title_is_cut() -> None:
    """A title is cut to one line of at most 80 characters."""
    session = Session("claude-code", ORIGINAL)
    apply_title(session, Note(1, Fact.TITLE, "a\n b" + "c" * 100))

    assert len(session.title) == 80
    assert session.title.startswith("a bccc")


def test_a_queued_prompt_can_be_the_title() -> None:
    """A session that has only queued prompts is titled by the first of them."""
    waiting = {"type": "queue-operation", "operation": "enqueue", "content": "wait\nfor me", "timestamp": None}

    assert Read(waiting, {**waiting, "content": "me too"}).session.title == "wait for me"


def test_a_title_with_a_record_is_passed_on() -> None:
    """A title that refers to a record is passed on, because the record may belong to another session."""
    found = Read({"type": "summary", "summary": "Elsewhere", "leafUuid": "x"}, *talk("one"))

    assert [(title.value, title.about) for title in found.reading.titles] == [("Elsewhere", "x")]
    assert found.session.title == "one?"


def test_the_parent_of_a_fork_is_kept() -> None:
    """A session has the first parent that its lines name. A known parent is not replaced."""
    line = user("one", uuid="a", forkedFrom={"sessionId": FORK, "messageUuid": "x"})
    assert Read(line).session.parent_id == FORK

    known = Session("claude-code", "agent-1", SessionKind.SUBAGENT, parent_id="first")
    assert Read(line, session=known).session.parent_id == "first"


def test_links_out_of_a_session_are_kept() -> None:
    """Links to pull requests and to the continuing session are stored."""
    found = Read(
        *talk("one"),
        {"type": "pr-link", "prUrl": "https://example.com/pull/1", "sessionId": ORIGINAL},
        {"type": "continued-in", "sessionId": ORIGINAL, "continuedIn": FORK},
    )

    assert found.session.links == {"pull-request": "https://example.com/pull/1", "continues": FORK}


@pytest.mark.parametrize("folder", ["globalStorage", "sessions", "threads", "transcripts"])
def test_a_folder_with_the_sessions_of_all_projects_names_none(folder: str) -> None:
    """The project of a session without a folder is named after the agent then."""
    shared = replace(source(), archived=f"claude-code/{folder}/a.jsonl")

    assert Read(user("one"), source=shared).session.project == "claude-code"
    assert Read(user("one", cwd="/home/demo/shop"), source=shared).session.project == "shop"


def test_without_a_folder_the_archive_names_the_project() -> None:
    """Until a session's folder is known, its project is named after the folder of the copy."""
    session = Read(user("one")).session
    assert session.project == "folder"

    assert Read(user("one", cwd="/home/demo/shop"), session=session).session.project == "shop"
    assert Read(user("one"), session=replace(session, project="shop")).session.project == "shop"


def test_a_plan_is_titled_by_its_heading() -> None:
    """The title of a plan is its heading, without the words that Claude Code adds before the plan."""
    plan = "Implement the following plan:\n\n# Cache the tides\n\nWhy: slow."

    assert title_of(plan) == "Cache the tides"
    assert Read(user(plan)).session.title == "Cache the tides"


def test_a_title_has_no_pictures() -> None:
    """Pictures in a prompt are not part of the title. A prompt without text gives no title."""
    picture = [{"type": "image", "source": {"media_type": "image/png", "data": "AAAA" * 512}}]
    words = [*picture, {"type": "text", "text": "Move\nthe button"}]

    assert Read(user(picture)).session.title == ""
    assert Read(user(picture), user(words, uuid="b")).session.title == "Move the button"
