"""The part of the archive that a model may see for one question."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from palaver.agents.ask.scoped_index import ScopedIndex
from palaver.archiver.store import Store
from palaver.core.errors import InvalidInput, UnknownIds, UnknownProject
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.core.results import ZeroResultExplanation
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

Open = Callable[..., ScopedIndex]


@pytest.fixture
def scoped(built: Home) -> Iterator[Open]:
    """Return a function that opens the demo archive with filters and private projects."""
    with ExitStack() as opened:

        def open_index(scope: Filters = Filters(), private: tuple[str, ...] = ()) -> ScopedIndex:  # noqa: B008
            archive = opened.enter_context(ArchiveSearch(built))
            return ScopedIndex(archive, opened.enter_context(Store.open(built.database)), scope, private)

        yield open_index


def test_without_filters_the_index_is_unchanged(scoped: Open, built: Home) -> None:
    """Without filters and private projects, the results are those of the archive."""
    query = Query.parse("sqlite or json files")
    with ArchiveSearch(built) as archive:
        assert scoped().find(query) == archive.find(query)


def test_searches_have_the_filters_of_the_question(scoped: Open) -> None:
    """A search cannot widen the projects and the date range of the question, only narrow the range."""
    scope = Filters.parse(projects=["tide-clock"], after="2026-03-01")
    index = scoped(scope)

    wide = index.find(Query.parse("sqlite or json files", projects=["seed-library"], after="2020-01-01"))
    narrow = index.find(Query.parse("sqlite or json files", after="2026-06-01"))

    assert {hit.project for hit in wide.hits} == {"tide-clock"}
    assert all(hit.at is not None and scope.after is not None and hit.at >= scope.after for hit in wide.hits)
    assert index.found == ()
    assert narrow.hits == ()


@pytest.mark.parametrize("private", ["tide-clock", "/home/demo/tide-clock", "/home/demo"])
def test_private_projects_are_invisible(scoped: Open, private: str) -> None:
    """Private projects, by name or by folder, are not found, and their items and transcripts cannot be opened."""
    query = Query.parse("sqlite or json files")
    hits = [hit for hit in scoped().find(query).hits if hit.project == "tide-clock"]
    index = scoped(private=(private,))

    assert hits
    assert all(hit.project != "tide-clock" for hit in index.find(query).hits)
    for hit in hits:
        with pytest.raises(UnknownIds):
            index.details([hit.id])
        with pytest.raises(InvalidInput, match="private project"):
            index.read(hit.path, 1, 5)
    with pytest.raises(UnknownIds):
        index.details([hits[0].short_session_id])
    matches = scoped().find_output("passed", Filters()).matches
    shown = index.find_output("passed", Filters()).matches
    assert {match.project for match in shown} == {match.project for match in matches} - {
        match.project for match in matches if private == "/home/demo" or match.project == "tide-clock"
    }


def test_only_conversations_are_searched_beside_private_projects(scoped: Open) -> None:
    """With private projects, a search for memories, documents or code is an error."""
    index = scoped(private=("tide-clock",))

    assert index.find(Query.parse("catalogue", kinds=["observation", "memory"])).hits
    with pytest.raises(InvalidInput, match="Only conversations"):
        index.find(Query.parse("catalogue", kinds=["memory"]))


@pytest.mark.parametrize("text", ["plug", "plgu", "zzqx plug", "xylophone zebra", "cyanotype"])
def test_explanations_quote_no_private_project(scoped: Open, text: str) -> None:
    """The page of a search has no words, corrections and counts of private projects."""
    query, renderer = Query.parse(text), Renderer()

    found = scoped(private=("/home/demo",)).find(query)
    page = renderer.search(found)

    assert (found.hits, found.corrections, found.total) == ((), (), 0)
    assert found.explanation == ZeroResultExplanation()
    assert "No observations found" in page
    assert not {"plug", "spell"} & set(re.findall(r"\w+", page))
    assert page != renderer.search(scoped().find(query))


def test_unknown_projects_suggest_no_names(scoped: Open) -> None:
    """The error for an unknown project names no private project."""
    with pytest.raises(UnknownProject) as raised:
        scoped(private=("tide-clock",)).find(Query.parse("plug", projects=["tide-clokc"]))

    assert raised.value.near == ()


def test_private_hits_do_not_displace_shared_hits(scoped: Open) -> None:
    """A shared hit below private hits is found with any limit."""
    private = scoped().find(Query.parse("the clock shows", limit=50)).hits
    index = scoped(private=("tide-clock",))
    shared = [hit.id for hit in private if hit.project != "tide-clock"]

    assert shared
    assert [hit.id for hit in index.find(Query.parse("the clock shows", limit=1)).hits] == shared[:1]


def test_only_lines_in_results_are_read(scoped: Open) -> None:
    """Lines count as read if details or excerpts contained all of them."""
    index = scoped()
    [hit, *_] = index.find(Query.parse("sqlite or json files")).hits
    before = index.has_read(hit.path, hit.start_line, hit.end_line)

    index.details([hit.id])
    excerpt = index.read(hit.path, 1, 2)

    assert not before
    assert index.has_read(hit.path, hit.start_line, hit.end_line)
    assert index.has_read(excerpt.path, 1, 2)
    assert not index.has_read(hit.path, hit.start_line, hit.end_line + 1000)
    assert not index.has_read("claude-code/other.jsonl", 1, 2)


def test_details_of_a_session_read_no_lines(scoped: Open) -> None:
    """The list of a session's observations shows none of its lines."""
    index = scoped()
    [hit, *_] = index.find(Query.parse("sqlite or json files")).hits

    index.details([hit.short_session_id])

    assert not index.has_read(hit.path, 1, 1)


@pytest.mark.parametrize(
    "filters",
    [{"projects": ["seed-library"]}, {"projects": ["/home/demo/seed-library"]}, {"after": "2026-06-01"}],
)
def test_entries_outside_the_filters_cannot_be_opened(scoped: Open, filters: dict[str, Any]) -> None:
    """Entries and lines of other projects and dates than those of the question are unknown."""
    [hit, *_] = [hit for hit in scoped().find(Query.parse("sqlite or json files")).hits if hit.project == "tide-clock"]
    index = scoped(Filters.parse(**filters))

    with pytest.raises(UnknownIds):
        index.details([hit.id])
    with pytest.raises(UnknownIds):
        index.details([hit.short_session_id])
    with pytest.raises(InvalidInput, match="outside the projects or dates"):
        index.read(hit.path, hit.start_line, hit.end_line)


@pytest.mark.parametrize(
    "filters",
    [{"projects": ["tide-clock"]}, {"projects": ["/home/demo/tide-clock"]}, {"before": "2026-06-01"}],
)
def test_entries_within_the_filters_can_be_opened(scoped: Open, filters: dict[str, Any]) -> None:
    """Entries and lines of the projects and dates of the question are opened, even without a search."""
    [hit, *_] = [hit for hit in scoped().find(Query.parse("sqlite or json files")).hits if hit.project == "tide-clock"]
    index = scoped(Filters.parse(**filters))

    assert [detail.id for detail in index.details([hit.id])] == [hit.id]
    assert index.read(hit.path, hit.start_line, hit.end_line).path == hit.path


def test_lists_are_within_the_scope(scoped: Open) -> None:
    """Commands are those of the projects of the question. If there are private projects, none are listed."""
    tests = Query.parse("test", kinds=["command"])
    index = scoped(Filters(projects=("tide-clock",)))

    assert index.find_list(tests).ids == index.found != ()
    assert scoped(Filters(projects=("seed-library",))).find_list(tests).ids != index.found
    with pytest.raises(InvalidInput, match="Only conversations"):
        scoped(private=("tide-clock",)).find_list(tests)
