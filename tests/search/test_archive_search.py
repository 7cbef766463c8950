"""Tests of the three layers of search."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.conversation import SessionKind
from palaver.core.errors import InvalidLineRange, PathOutsideArchive, StoreMissing, TooManyIds, UnknownIds
from palaver.core.home import Home
from palaver.core.observation import Observation, ObservationType
from palaver.core.query import IDS_MAX, Query
from palaver.core.results import EXCERPT_BUDGET, TranscriptExcerpt
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..archiver.redaction.planted import TOKENS
from .history import learned

LONG = "word " * 3_000


def prompts(number: int) -> list[dict[str, object]]:
    """Return the lines of an exchange of four lines."""
    return [
        user(f"question {number}", uuid=f"q{number}", cwd="/code/app"),
        assistant(
            tool("Read", {"file_path": f"/code/app/{number}.py"}, id=f"t{number}"), id=f"a{number}", uuid=f"c{number}"
        ),
        result(f"{number} " + "printed " * 400, id=f"t{number}"),
        assistant(
            text(f"answer {number}" + " and more" * (300 if number > 9 else 0)), id=f"b{number}", uuid=f"b{number}"
        ),
    ]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """Return a transcript of thirty exchanges on 120 lines."""
    path = tmp_path / "source" / "-work-app" / "11111111-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl(line for number in range(30) for line in prompts(number)))
    return path


@pytest.fixture
def store(tmp_path: Path, transcript: Path) -> Iterator[Store]:
    """Return the database after one ingest run."""
    place = Home(tmp_path / "home")
    place.make()
    with Store.create(place.database) as made:
        Ingest(made, RawArchive(place.archive)).run(in_paths([transcript]))
        yield made


@pytest.fixture
def layers(tmp_path: Path, store: Store) -> Iterator[ArchiveSearch]:  # noqa: ARG001 - fills the home
    with ArchiveSearch(Home(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def archived(store: Store) -> str:
    [name] = store.sources.archived_names()
    return name


def learn(store: Store, exchange: int, *observations: Observation) -> list[str]:
    session = store.items.load([exchange])[exchange].session
    with store.transaction():
        store.observations.replace(exchange, session, observations, "test-1")
    return [f"obs-{stored.key}" for stored in store.observations.of_exchange(exchange)]


def test_a_missing_archive_is_not_created(tmp_path: Path) -> None:
    """Opening a home without an archive fails and creates no files."""
    with pytest.raises(StoreMissing):
        ArchiveSearch(Home(tmp_path / "nothing"))

    assert not (tmp_path / "nothing").exists()


def test_from_search_to_the_lines(layers: ArchiveSearch, archived: str) -> None:
    """Layer 2 returns details for the ID of a hit from layer 1, and layer 3 returns the lines of these details."""
    hit = layers.find(Query.parse("question 7", mode="text", limit=1)).hits[0]
    [detail] = layers.details([hit.id])
    passage = layers.read(hit.path, detail.start_line, detail.end_line)

    assert (hit.kind, hit.path, detail.id) == ("exchange", archived, hit.id)
    assert passage.exchanges[0].prompt == detail.observation.title == "question 7"
    assert passage.exchanges[0].answer == detail.observation.narrative == "answer 7"


def test_details_are_in_the_requested_order(store: Store, layers: ArchiveSearch) -> None:
    """Observations and exchanges can be mixed. Each is returned once, in the order of the IDs."""
    second, first = learn(store, 1, learned("second", lines=(1, 2)), learned("first", ObservationType.DECISION))

    found = layers.details([first, "ex-3", second, first])

    assert [detail.id for detail in found] == [first, "ex-3", second]
    assert [detail.kind for detail in found] == ["observation", "exchange", "observation"]
    assert (found[0].start_line, found[0].end_line) == (1, 4)
    assert (found[2].start_line, found[2].end_line) == (1, 2)
    assert found[1].observation.files_read == ("/code/app/2.py",)
    assert found[1].tokens > found[2].tokens > 0


@pytest.mark.parametrize("unknown", ["ex-999", "obs-1", "1", "", "ex-", "ex--1", "obs-٣", "ex-" + "9" * 30])
def test_all_unknown_ids_are_reported(layers: ArchiveSearch, unknown: str) -> None:
    """All unknown IDs are in one error. The key of an exchange is not an observation ID."""
    with pytest.raises(UnknownIds) as refused:
        layers.details(["ex-1", unknown, "ex-777"])

    assert refused.value.ids == (unknown, "ex-777")


def test_ids_are_normalised(layers: ArchiveSearch) -> None:
    """An ID in capitals or with leading zeros finds its item, which is returned once under its normal ID."""
    assert [detail.id for detail in layers.details(["EX-1", "ex-001", "ex_2"])] == ["ex-1", "ex-2"]
    assert layers.timeline("EX-1").anchor == "ex-1"


def test_the_id_of_a_deleted_item_has_its_own_error(store: Store, layers: ArchiveSearch) -> None:
    """The error for an ID that no longer exists suggests a new search, because items that are extracted again have new
    IDs.
    """
    [old] = learn(store, 1, learned("The kettle leaks"))
    [new] = learn(store, 1, learned("The kettle is mended"))

    for ask in (lambda: layers.details([new, old, "obs-999", "obs-1"]), lambda: layers.timeline(old)):
        with pytest.raises(UnknownIds) as refused:
            ask()
        assert refused.value.gone == (old,)
        assert refused.value.hint.startswith(f"{old} no longer exists. It may have been deleted or re-extracted")
    with pytest.raises(UnknownIds) as refused:
        layers.details(["obs-999"])
    assert refused.value.gone == ()
    known = "Use IDs from search results, such as obs-24, ex-12, mem_7 or chunk_3"
    assert refused.value.hint == f"{known}, or at least 4 characters of a session ID."


@pytest.mark.parametrize("count", [0, IDS_MAX + 1])
def test_the_number_of_ids_is_limited(layers: ArchiveSearch, count: int) -> None:
    """An empty list and more than twenty IDs are refused."""
    with pytest.raises(TooManyIds):
        layers.details([f"ex-{number}" for number in range(1, count + 1)])
    assert len(layers.details([f"ex-{number}" for number in range(1, IDS_MAX + 1)])) == IDS_MAX


def test_long_replies_are_truncated_in_layer_2(store: Store, layers: ArchiveSearch) -> None:
    """Details of an exchange stay within the token budget of layer 2."""
    [detail] = layers.details(["ex-20"])

    assert len(store.exchanges.load([20])[20].exchange.answer) > 2_000
    assert detail.observation.narrative.startswith("answer 19 and more")
    assert len(detail.observation.narrative) <= 1_201


def lines_of(passage: TranscriptExcerpt) -> list[int]:
    return [turn.line for exchange in passage.exchanges for turn in exchange.turns]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(1, 4, [1, 2, 3, 4]), (2, 3, [2, 3]), (4, 6, [4, 5, 6]), (120, 120, [120]), (118, 999, [118, 119, 120])],
)
def test_a_range_is_read_exactly(
    layers: ArchiveSearch, archived: str, start: int, end: int, expected: list[int]
) -> None:
    """A range returns the turns on its lines, even if it begins or ends within an exchange or after the last line."""
    passage = layers.read(archived, start, end)

    assert lines_of(passage) == expected
    assert (passage.start_line, passage.end_line, passage.total_lines) == (start, min(end, 120), 120)
    assert passage.next_line is None
    assert [exchange.ordinal for exchange in passage.exchanges] == sorted({(line - 1) // 4 for line in expected})


def test_reading_from_next_line_returns_every_line_once(layers: ArchiveSearch, archived: str) -> None:
    """A long reply is truncated. Reading on from `next_line` returns each line exactly once."""
    start, seen, replies = 1, list[int](), 0
    while True:
        passage = layers.read(archived, start)
        assert passage.tokens <= EXCERPT_BUDGET
        seen += lines_of(passage)
        replies += 1
        if passage.next_line is None:
            break
        assert passage.end_line == passage.next_line - 1
        start = passage.next_line

    assert replies > 1
    assert seen == list(range(1, 121))


def test_output_that_fits_is_not_truncated(layers: ArchiveSearch, archived: str) -> None:
    """Long output is truncated only if the whole range does not fit."""
    whole, all_of_it = layers.read(archived, 1, 4), layers.read(archived)

    assert whole.exchanges[0].turns[2].text == "0 " + ("printed " * 400).strip()
    assert len(all_of_it.exchanges[0].turns[2].text) < len(whole.exchanges[0].turns[2].text)


def test_a_single_line_is_not_truncated(tmp_path: Path) -> None:
    """A line longer than the budget is returned completely, and reading continues after it."""
    path = tmp_path / "source" / "-work-app" / "long.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl([user(LONG * 5, uuid="1"), assistant(text(LONG), uuid="2"), user("after", uuid="3")]))
    place = Home(tmp_path / "home")
    place.make()
    with Store.create(place.database) as store:
        Ingest(store, RawArchive(place.archive)).run(in_paths([path]))
        [archived] = store.sources.archived_names()
    with ArchiveSearch(place) as layers:
        first = layers.read(archived)
        assert first.next_line is not None
        second = layers.read(archived, first.next_line)

    assert lines_of(first) == [1]
    assert first.tokens > EXCERPT_BUDGET
    assert lines_of(second) == [2, 3]


@pytest.mark.parametrize(("start", "end"), [(0, None), (-1, 5), (5, 4), (121, None), (999, 1_000)])
def test_invalid_ranges_are_refused(layers: ArchiveSearch, archived: str, start: int, end: int | None) -> None:
    """Ranges that start below line 1 or after the last line, or end before their start, are refused."""
    with pytest.raises(InvalidLineRange):
        layers.read(archived, start, end)
    with pytest.raises(InvalidLineRange):
        next(layers.read_raw(archived, start, end))


def test_only_archived_files_can_be_read(
    layers: ArchiveSearch, archived: str, transcript: Path, tmp_path: Path
) -> None:
    """Paths outside the archive, links, folders, stray files and unknown names are refused with the same error."""
    root = tmp_path / "home" / "archive"
    (root / "link.jsonl").symlink_to(transcript)
    (root / "folder").symlink_to(transcript.parent)
    (root / "stray.jsonl").write_text("{}\n")
    outside = [
        str(transcript),
        f"{archived}/../../../../{transcript.name}",
        "../palaver.db",
        "link.jsonl",
        f"folder/{transcript.name}",
        "stray.jsonl",
        str(Path(archived).parent),
        "",
        "nothing.jsonl",
        "\0",
        "a" * 5_000,
    ]
    for path in outside:
        with pytest.raises(PathOutsideArchive):
            layers.read(path)
        with pytest.raises(PathOutsideArchive):
            next(layers.read_raw(path))
    assert layers.read(str(root / archived), 1, 1).path == archived


def test_raw_lines_are_the_agents_own(layers: ArchiveSearch, archived: str, transcript: Path) -> None:
    """Raw lines are byte for byte those of the agent's file, including line endings."""
    lines = transcript.read_bytes().splitlines(keepends=True)

    assert b"".join(layers.read_raw(archived)) == transcript.read_bytes()
    assert list(layers.read_raw(archived, 5, 7)) == lines[4:7]


def test_a_transcript_has_its_session(layers: ArchiveSearch, archived: str) -> None:
    """Layer 3 shows the session, the project and the working directory."""
    passage = layers.read(archived, 1, 1)

    assert (passage.agent, passage.project, passage.cwd) == ("claude-code", "app", "/code/app")
    assert passage.session_id == "11111111-0000-4000-8000-000000000001"
    assert passage.title == "question 0"


def taken_up(tmp_path: Path, *records: dict[str, object]) -> tuple[Home, str]:
    """Return a home with one ingested transcript, and the path of its raw copy."""
    path = tmp_path / "source" / "-work-app" / "22222222-0000-4000-8000-000000000002.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl(records))
    place = Home(tmp_path / "home")
    place.make()
    with Store.create(place.database) as store:
        Ingest(store, RawArchive(place.archive)).run(in_paths([path]))
        [archived] = store.sources.archived_names()
    return place, archived


def test_a_secret_is_found_by_its_placeholder(tmp_path: Path) -> None:
    """A query for a secret finds only exchanges with that secret, and the result does not contain the secret."""
    one, other, unknown = (TOKENS["github-pat"](random.Random(seed)) for seed in range(3))
    place, _ = taken_up(
        tmp_path,
        user(f"push with {one}", uuid="q1", cwd="/code/app"),
        assistant(text("pushed"), uuid="a1", parentUuid="q1"),
        user(f"pull with {other}", uuid="q2", parentUuid="a1"),
        assistant(text("pulled"), id="m2", uuid="a2", parentUuid="q2"),
    )
    with ArchiveSearch(place) as layers:
        found, nothing = (layers.find(Query.parse(secret, mode="text")) for secret in (one, unknown))

    assert [hit.title.split()[0] for hit in found.hits] == ["push"]
    assert "[secret:github-pat:" in found.query.concepts[0]
    assert nothing.hits == ()
    assert not [secret for secret in (one, unknown) if secret in repr((found, nothing))]


@pytest.mark.parametrize("end", [4, None])
def test_an_abandoned_branch_is_marked(tmp_path: Path, end: int | None) -> None:
    """Exchanges that the user rewound are marked, even if the rewind is after the requested lines."""
    place, archived = taken_up(
        tmp_path,
        user("first", uuid="q1", cwd="/code/app"),
        assistant(text("answer"), uuid="a1", parentUuid="q1"),
        user("wrong way", uuid="q2", parentUuid="a1"),
        assistant(text("dead end"), id="m2", uuid="a2", parentUuid="q2"),
        user("right way", uuid="q3", parentUuid="a1"),
        assistant(text("there"), id="m3", uuid="a3", parentUuid="q3"),
    )
    with ArchiveSearch(place) as layers:
        passage = layers.read(archived, 1, end)

    left = [turn.line for exchange in passage.exchanges for turn in exchange.turns if not turn.active]
    assert left == [3, 4]
    assert "(line 3, rewound)" in Renderer().read(passage)


def test_a_fork_is_not_a_sub_agent(tmp_path: Path) -> None:
    """A session that the user forked names its origin and is shown as a main conversation."""
    origin = "11111111-0000-4000-8000-000000000001"
    place, archived = taken_up(
        tmp_path, user("go on", uuid="q1", cwd="/code/app", forkedFrom={"sessionId": origin, "messageUuid": "m"})
    )
    with ArchiveSearch(place) as layers:
        passage = layers.read(archived)
    shown = Renderer().read(passage)

    assert (passage.kind, passage.parent_id) == (SessionKind.MAIN, origin)
    assert "Sidechain" not in shown
    assert f"# Forked from: {origin}" in shown


def test_private_spans_are_in_no_layer(tmp_path: Path) -> None:
    """Layer 3 omits a private span that crosses parts of a message, even if the range begins within the span."""
    path = tmp_path / "source" / "-work-app" / "long.jsonl"
    path.parent.mkdir(parents=True)
    tag = "<private>"
    parts = [{"type": "text", "text": f"before {tag} mysalary"}, {"type": "text", "text": "mybonus"}]
    path.write_bytes(
        jsonl(
            [
                user(f"one {tag}mypin</private> two", uuid="1"),
                assistant(text(f"say {tag}hidden</private>, or {tag} in code"), uuid="2"),
                user(parts, uuid="3"),
                assistant(text("done"), uuid="4"),
            ]
        )
    )
    place = Home(tmp_path / "home")
    place.make()
    with Store.create(place.database) as store:
        Ingest(store, RawArchive(place.archive)).run(in_paths([path]))
        [archived] = store.sources.archived_names()
    with ArchiveSearch(place) as layers:
        shown = [layers.read(archived, start, end) for start, end in ((1, None), (1, 1), (2, 2), (3, 3), (3, 4))]
    texts = " ".join(turn.text for each in shown for exchange in each.exchanges for turn in exchange.turns)

    assert not [word for word in ("mypin", "hidden", "mysalary", "mybonus") if word in texts]
    assert "one [private] two" in texts
    assert f"or {tag} in code" in texts
    assert "before [private]" in texts
