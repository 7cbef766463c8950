"""Contract of `SearchIndex`. Each implementation of the interface must pass these tests."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.errors import InvalidInput, InvalidLineRange, PathOutsideArchive, TooManyIds, UnknownIds
from palaver.core.home import Home
from palaver.core.query import IDS_MAX, Filters, Grouping, Mode, Query
from palaver.search.archive_search import ArchiveSearch
from palaver.search.search_index import SearchIndex

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user

WORDS = ("kettle", "spoon", "teapot")
EXCHANGES = 4
"""Exchanges of each session. Each exchange has two lines."""


def transcripts(folder: Path) -> Path:
    """Write three sessions, each with its own project and topic."""
    for place, word in enumerate(WORDS):
        path = folder / f"-work-{word}" / f"{place}1111111-0000-4000-8000-000000000001.jsonl"
        path.parent.mkdir(parents=True)
        session = path.stem
        path.write_bytes(
            jsonl(
                line
                for number in range(EXCHANGES)
                for line in (
                    user(
                        f"why is the {word} number {number}",
                        uuid=f"{word}q{number}",
                        sessionId=session,
                        cwd=f"/code/{word}",
                    ),
                    assistant(
                        text(f"The {word} is brass {number}."),
                        id=f"{word}{number}",
                        uuid=f"{word}a{number}",
                        sessionId=session,
                    ),
                )
            )
        )
    return folder


def archive(folder: Path) -> AbstractContextManager[SearchIndex]:
    """Return an `ArchiveSearch` over the sessions."""
    home = Home(folder / "home")
    home.make()
    with Store.create(home.database) as store:
        Ingest(store, RawArchive(home.archive)).run(in_paths([transcripts(folder / "source")]))
    return ArchiveSearch(home)


IMPLEMENTATIONS = {"archive": archive}


@pytest.fixture(params=IMPLEMENTATIONS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SearchIndex]:
    """Return each implementation over the same sessions."""
    with IMPLEMENTATIONS[request.param](tmp_path) as opened:
        yield opened


def query(words: str, **options: object) -> Query:
    """Return a text query, without a limit of hits per session unless one is given."""
    return Query.parse(words, mode="text", **{"per_session": 0, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("word", WORDS)
def test_find_returns_hits_best_first(index: SearchIndex, word: str) -> None:
    """Each hit contains the word and has a unique ID, and the parts of its score add up to the score."""
    found = index.find(query(word))

    assert found.total == len(found.hits) == EXCHANGES
    assert len({hit.id for hit in found.hits}) == EXCHANGES
    assert all(word in hit.title for hit in found.hits)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert all(sum(part.points for part in hit.parts) == hit.score for hit in found.hits)


def test_a_filter_never_adds_results(index: SearchIndex) -> None:
    """Filtered hits are among the unfiltered ones and satisfy the filter."""
    every = {hit.id for hit in index.find(query("brass", limit=50)).hits}
    some = index.find(query("brass", limit=50, projects=["/code/spoon"])).hits

    assert len(every) == len(WORDS) * EXCHANGES
    assert len(some) == EXCHANGES
    assert {hit.id for hit in some} < every


def test_cursors_walk_through_all_hits_once(index: SearchIndex) -> None:
    """Pages follow each other without gaps or repetitions, and a cursor of another search is refused."""
    seen, cursor = list[str](), ""
    while True:
        page = index.find(query("brass", limit=5, cursor=cursor))
        seen += [hit.id for hit in page.hits]
        cursor = page.cursor
        if not cursor:
            break

    assert len(seen) == len(set(seen)) == len(WORDS) * EXCHANGES
    with pytest.raises(InvalidInput):
        index.find(query("kettle", cursor="AAAAAAAA"))


@pytest.mark.parametrize("per_session", [1, 3])
def test_hits_of_a_session_are_limited(index: SearchIndex, per_session: int) -> None:
    """A page has at most `per_session` hits of a session, and pages still follow each other without repetitions."""
    every = [hit.id for hit in index.find(query("brass", limit=50, per_session=per_session)).hits]
    sessions = [hit.session_id for hit in index.find(query("brass", limit=50, per_session=per_session)).hits]
    seen, cursor = list[str](), ""
    while len(seen) <= len(every):
        page = index.find(query("brass", limit=2, cursor=cursor, per_session=per_session))
        seen += [hit.id for hit in page.hits]
        cursor = page.cursor
        if not cursor:
            break

    assert [sessions.count(session) for session in dict.fromkeys(sessions)] == [per_session] * len(WORDS)
    assert seen == every


def test_hits_of_a_chosen_session_are_not_limited(index: SearchIndex) -> None:
    """A search within one session returns all of its hits."""
    session = index.find(query("spoon")).hits[0].session_id

    assert len(index.find(query("spoon", sessions=[session], per_session=1)).hits) == EXCHANGES


def test_quoted_phrases_match_literally(index: SearchIndex) -> None:
    """A phrase matches literally. Its words in another order do not match."""
    assert len(index.find(query('"kettle is brass 2"')).hits) == 1
    assert not index.find(query('"brass kettle is"')).hits


def test_an_empty_result_is_explained(index: SearchIndex) -> None:
    """A result without hits has an explanation with the missing words and the number of hits without each filter."""
    nothing = index.find(query("zzyzx"))
    filtered = index.find(query("kettle", projects=["/code/spoon"]))

    assert (nothing.hits, nothing.explanation is not None) == ((), True)
    assert nothing.explanation is not None
    assert nothing.explanation.missing == ("zzyzx",)
    assert filtered.explanation is not None
    assert dict(filtered.explanation.without) == {"projects": EXCHANGES}


def test_grouping_returns_each_session_once(index: SearchIndex) -> None:
    """A search grouped by session returns one hit for each session."""
    found = index.find(query("brass", by=Grouping.SESSION.value))

    assert len(found.hits) == len({hit.session_id for hit in found.hits}) == len(WORDS)


def test_a_query_without_words_returns_the_newest(index: SearchIndex) -> None:
    """A search without words returns all events that satisfy the filters."""
    found = index.find(Query((), Mode.TEXT, limit=50, filters=Filters(projects=("/code/teapot",))))

    assert len(found.hits) == EXCHANGES


def test_details_are_those_of_the_hits_in_order(index: SearchIndex) -> None:
    """Details have the ID, session and lines of each hit, in the requested order."""
    hits = index.find(query("spoon")).hits[::-1]
    details = index.details([hit.id for hit in hits])

    assert [detail.id for detail in details] == [hit.id for hit in hits]
    assert [detail.session_id for detail in details] == [hit.session_id for hit in hits]
    assert all(detail.path == hit.path for detail, hit in zip(details, hits, strict=True))


def test_unknown_and_too_many_ids_are_refused(index: SearchIndex) -> None:
    """The error lists the unknown IDs. More than `IDS_MAX` IDs are refused."""
    with pytest.raises(UnknownIds, match="ex-99999"):
        index.details(["ex-99999"])
    for ids in ([], [f"ex-{number}" for number in range(IDS_MAX + 1)]):
        with pytest.raises(TooManyIds):
            index.details(ids)


def test_read_returns_the_lines_of_a_hit(index: SearchIndex) -> None:
    """The transcript of a hit contains its text, and a range of lines is exact."""
    [hit, *_] = index.find(query('"teapot is brass 3"')).hits
    excerpt = index.read(hit.path, hit.start_line, hit.end_line)

    assert "teapot is brass 3" in str(excerpt.exchanges)
    assert (excerpt.start_line, excerpt.end_line) == (hit.start_line, hit.end_line)
    assert index.read(hit.path).total_lines == 2 * EXCHANGES


def test_read_refuses_invalid_paths_and_lines(index: SearchIndex) -> None:
    """Paths outside the archive and invalid line numbers are refused."""
    [hit, *_] = index.find(query("kettle")).hits
    with pytest.raises(PathOutsideArchive):
        index.read("/etc/passwd")
    for start, end in ((0, 1), (3, 2), (999, None)):
        with pytest.raises(InvalidLineRange):
            index.read(hit.path, start, end)
