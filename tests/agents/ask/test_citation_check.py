"""Check of citations."""

from palaver.agents.ask.citation_check import UNVERIFIED, CitationChecker
from palaver.search.archive_search import ArchiveSearch

PATH = "claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl"


def test_known_citations_are_unmarked(archive: ArchiveSearch) -> None:
    """IDs, lines of a path and lines of a session ID that exist stay as they are."""
    text = f"We use SQLite [obs-18, {PATH}:13], as said before [{PATH}:2-11; 0b6f:13]."
    checked = CitationChecker(archive).check(text)

    assert checked.text == text
    assert [(each.id, each.path, each.start_line, each.end_line) for each in checked.sources] == [
        ("obs-18", PATH, 13, 24),
        ("", PATH, 13, 13),
        ("", PATH, 2, 11),
        ("", PATH, 13, 13),
    ]
    assert {each.session_id for each in checked.sources} == {"0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01"}


def test_invented_citations_are_marked(archive: ArchiveSearch) -> None:
    """An unknown ID, an unknown path, a line past the end and a reversed range are marked."""
    for invented in (
        "obs-999999",
        "OBS-999999",
        "claude-code/none.jsonl:3",
        f"{PATH}:13-9999",
        f"{PATH}:13-2",
        f"{PATH}:0",
    ):
        checked = CitationChecker(archive).check(f"It is so [{invented}].")

        assert checked.text == f"It is so [{invented} {UNVERIFIED}]."
        assert len(checked.missing) == 1


def test_lines_of_another_conversation_are_marked(archive: ArchiveSearch) -> None:
    """An entry and lines that are cited together are from the same conversation. A list of sources can mix them."""
    checked = CitationChecker(archive).check("As decided [obs-18, 1c90:2]. As fixed [obs-20, 1c90:2; 0b6f:13].")

    assert checked.text == f"As decided [obs-18, 1c90:2 {UNVERIFIED}]. As fixed [obs-20, 1c90:2; 0b6f:13]."


def test_other_text_is_no_citation(archive: ArchiveSearch) -> None:
    """Addresses, times and lines of source files are not citations."""
    text = "See http://localhost:8080/obs-999999, at 12:30, in src/store.py:12, port localhost:8080, job-obs-1x."
    checked = CitationChecker(archive).check(text)

    assert (checked.text, checked.sources) == (text, ())


def test_citation_in_code_span_is_checked(archive: ArchiveSearch) -> None:
    """A citation in backquotes is a citation."""
    checked = CitationChecker(archive).check(f"It is so (`{PATH}:13`, `obs-999999`).")

    assert [each.exists for each in checked.sources] == [True, False]
