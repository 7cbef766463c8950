"""Tests of the relevance of ranked events."""

from msgspec.structs import replace

from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.fusion import Event, RankedEvents


def event(key: int, score: float, *, plain: float = 0.3, words: float = 0.0, evidence: float | None = None) -> Event:
    return replace(Event.unranked(key), score=score, plain=plain, words=words, evidence=evidence)


def test_only_events_near_the_best_score_match() -> None:
    """An event matches if it is relevant by itself and near the best score. All listed events include weaker ones."""
    best, near, far = event(1, 0.5, evidence=0.5), event(2, 0.32, evidence=0.3), event(3, 0.22, evidence=0.3)
    irrelevant, unproven = event(4, 0.4, plain=0.15, evidence=0.3), event(5, 0.4, evidence=0.1)
    found = RankedEvents([best, irrelevant, unproven, near, far], AnalyzedQuery(""), 0.2, evidence_threshold=0.2)

    assert [each.key for each in found.listed] == [1, 4, 5, 2, 3]
    assert [each.key for each in found.matching] == [1, 2]


def test_without_a_threshold_every_listed_event_matches() -> None:
    """A quoted phrase and a search with one engine have no threshold: whatever contains the words matches."""
    found = RankedEvents([event(1, 0.5), event(2, 0.1)], AnalyzedQuery(""))

    assert found.matching == found.listed == found.events


def test_without_a_relevant_event_the_nearest_are_kept() -> None:
    """If no event is relevant, the events remain, so that the nearest can be named."""
    found = RankedEvents([event(1, 0.1, plain=0.1), event(2, 0.05, plain=0.05)], AnalyzedQuery(""), 0.2)

    assert found.matching == found.events
