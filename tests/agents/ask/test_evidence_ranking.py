"""Ranking of the entries for an answer."""

import pytest
from msgspec.structs import replace

from palaver.agents.ask.claims import claims_of
from palaver.agents.ask.evidence_ranking import ranked
from palaver.agents.ask.relevance import Relevance

from .test_claims import DETAIL

QUESTION = "which database did we choose"


@pytest.mark.parametrize(
    ("score", "narrative", "is_weak"),
    [
        (0.22, "We chose red for the colour file.", True),
        (0.26, "They choose SQLite as the database.", False),
        (0.26, "The clock shows the local time.", True),
        (0.35, "The clock shows the local time.", False),
    ],
)
def test_a_low_score_is_weak_unless_a_sentence_has_the_words(score: float, narrative: str, is_weak: bool) -> None:
    """A word such as "choose" is not enough: an entry with a low score is weak unless a sentence has most words."""
    entry = replace(DETAIL, observation=replace(DETAIL.observation, title="A note", narrative=narrative, facts=()))
    claims = {entry.id: claims_of(entry)}
    relevance = Relevance(QUESTION, [narrative])

    assert ranked([entry], claims, relevance, {entry.id: score}).is_weak is is_weak


def test_entries_that_were_just_removed_are_no_answer() -> None:
    """If another process removes all entries between search and loading, no entry is returned."""
    assert ranked([], {}, Relevance(QUESTION, ()), {DETAIL.id: 0.5}) == ((), False)
