"""Ranking of the entries for an answer."""

from msgspec.structs import replace

from palaver.agents.ask.citation_check import claims_of
from palaver.agents.ask.evidence_search import ranked
from palaver.agents.ask.relevance import Relevance

from .test_claims import DETAIL

QUESTION = "which database did we choose"


def test_the_best_entry_is_certain_only_with_words_and_a_margin() -> None:
    """An entry answers if one sentence has the rare words of the question, and no other conversation is near."""
    texts = {
        "certain": ("They choose SQLite as the database.", 0.5, True),
        "few words": ("The clock shows the local time.", 0.5, False),
        "no margin": ("They choose SQLite as the database.", 0.8, False),
    }
    problems = list[str]()
    for name, (narrative, other_score, expected) in texts.items():
        entry = replace(DETAIL, observation=replace(DETAIL.observation, title="A note", narrative=narrative, facts=()))
        other = replace(DETAIL, id="obs-99", path="other.jsonl")
        claims = {one.id: claims_of(one) for one in (entry, other)}
        scores = {entry.id: 0.9, other.id: other_score}
        if ranked([entry, other], claims, Relevance(QUESTION, [narrative]), scores).is_certain is not expected:
            problems.append(name)

    assert problems == []


def test_entries_that_were_just_removed_are_no_answer() -> None:
    """If another process removes all entries between search and loading, no entry is returned."""
    assert ranked([], {}, Relevance(QUESTION, ()), {DETAIL.id: 0.5}) == ((), False)
