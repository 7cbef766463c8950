"""Search for the entries of an answer."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.agents.ask.best_answer import with_best_answer
from palaver.agents.ask.evidence_search import MeteredArchive, find_evidence
from palaver.agents.ask.extractive_answer import extractive_answer
from palaver.core.home import Home
from palaver.core.query import Filters, HitKind, Query
from palaver.core.results import AnswerLabel, Detail, Results
from palaver.observe.archive import Archive
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from .test_claims import DETAIL

QUESTION = "why sqlite for the clock"
REQUEST = replace(
    DETAIL,
    id="ex-1",
    kind=HitKind.EXCHANGE,
    observation=replace(DETAIL.observation, title="The clock", narrative="Asked: “Is sqlite good for it?”", facts=()),
)


@pytest.fixture
def documented(built: Home, tmp_path: Path) -> Iterator[ArchiveSearch]:
    """Archive of the sample data with an indexed document."""
    home, folder = Home(tmp_path / "home"), tmp_path / "docs"
    shutil.copytree(built.root, home.root)
    folder.mkdir()
    (folder / "guide.md").write_text(
        "# Kiln\nHeat the kiln slowly.\n\n# Readings\nThe clock stores readings in sqlite.\n"
    )
    with Archive(home).documents([folder]) as documents:
        documents.index_directory(folder, async_mode=False)
    with ArchiveSearch(home) as archive:
        yield archive


def test_a_document_answers_if_no_conversation_does(documented: ArchiveSearch, renderer: Renderer) -> None:
    """A passage of an indexed document is returned if it answers the question."""
    question, metered = "why heat the kiln slowly", MeteredArchive(documented, renderer)
    found = with_best_answer(metered, find_evidence(metered, question, Filters(), ""), question)

    assert found.details[0].kind == HitKind.DOCUMENT
    assert found.label is AnswerLabel.BEST


def test_a_cited_document_can_be_opened(documented: ArchiveSearch, renderer: Renderer) -> None:
    """The printed answer names the kind and the ID of the passage, and the tool that opens it."""
    page = renderer.cited_answer(extractive_answer(documented, renderer, "why heat the kiln slowly"))

    assert re.search(r"\*\*Best answer\*\* \(document, .*Heat the kiln slowly\. \[chunk_\d+\]", page)
    assert page.rstrip().endswith("Details: get_observations.")


def test_a_document_comes_after_a_good_conversation(documented: ArchiveSearch, renderer: Renderer) -> None:
    """The best entry is from a conversation if one is a good match, and the document follows."""
    found = find_evidence(MeteredArchive(documented, renderer), "why sqlite for the readings", Filters(), "")
    kinds = [detail.kind for detail in found.details]

    assert kinds[0] == HitKind.OBSERVATION
    assert kinds.count(HitKind.DOCUMENT) == 1
    assert {hit.kind for hit in found.results.hits} <= {HitKind.OBSERVATION, HitKind.EXCHANGE}


def test_a_request_without_an_answer_stays_if_no_other_entry_matches(
    archive: ArchiveSearch, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all matching entries state nothing, they are returned before the additional decision."""
    real = archive.find(Query.parse(QUESTION))
    entries = {each.id: each for each in (REQUEST, replace(DETAIL, id="obs-1"))}

    def finding(query: Query, /, **_: object) -> Results:
        public = "obs-1" if query.filters.types else "ex-1"
        return replace(real, hits=(replace(real.hits[0], id=public, kind=entries[public].kind, path=DETAIL.path),))

    def detailing(wanted: list[str], /) -> tuple[Detail, ...]:
        return tuple(entries[each] for each in wanted)

    monkeypatch.setattr(archive, "find", finding)
    monkeypatch.setattr(archive, "details", detailing)
    found = find_evidence(MeteredArchive(archive, renderer), QUESTION, Filters(), "")

    assert [detail.id for detail in found.details] == ["ex-1", "obs-1"]


@pytest.mark.parametrize(
    ("question", "absent", "is_found"),
    [
        ("what did we do with tidal timetables in march 2026", ("tidal", "timetables"), False),
        ("did we use cassandra in march 2001", ("cassandra",), False),
        ("did the clock use cassandra in march 2026", ("cassandra",), True),
        ("sqlit or cassandra", ("cassandra",), True),
        ("what happened in march 2026", (), True),
    ],
)
def test_an_unknown_subject_is_recognised_with_a_date(
    archive: ArchiveSearch, renderer: Renderer, question: str, absent: tuple[str, ...], is_found: bool
) -> None:
    """Without a word that occurs in the archive, nothing is found. Times are no such words, but corrected words are."""
    found = find_evidence(MeteredArchive(archive, renderer), question, Filters(), "")

    assert found.absent == absent
    assert bool(found.details) is is_found
