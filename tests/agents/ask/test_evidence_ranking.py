"""Ranking of the entries for an answer."""

from palaver.agents.ask.evidence_search import ranked
from palaver.search.query.relevance import Relevance


def test_entries_that_were_just_removed_are_no_answer() -> None:
    """If another process removes all entries between search and loading, no entry is returned."""
    assert ranked([], {}, Relevance("which database did we choose", ()), {"obs-1": 0.5}) == ()
