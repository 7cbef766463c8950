"""Findings that replace or contradict each other."""

from msgspec.structs import replace

from palaver.agents.ask.extractive_answer import with_conflicts
from palaver.core.observation import ObservationType
from palaver.core.results import CitedSource, Detail, Finding, FindingKind

from .test_claims import DETAIL


def entry(public: str, title: str, at: int, kind: FindingKind = FindingKind.DECISION) -> tuple[Finding, Detail]:
    """Return a finding and its entry."""
    observation = replace(DETAIL.observation, title=title, type=ObservationType.DECISION, at=at)
    return Finding(kind, title, (CitedSource(public),), at), replace(DETAIL, id=public, observation=observation)


def test_replaced_finding_is_marked_and_never_first() -> None:
    """A finding that a later observation replaced names it, and another finding is the best answer."""
    (old, old_detail), (new, new_detail) = entry("obs-1", "Put the bar on top", 1), entry("obs-2", "Put it below", 2)
    marked = with_conflicts([old, new], [old_detail, new_detail], {"obs-1": "obs-2"})

    assert [(each.sources[0].id, each.superseded_by) for each in marked] == [("obs-2", ""), ("obs-1", "obs-2")]


def test_contradicting_decisions_name_each_other() -> None:
    """Two decisions that cannot both hold name each other."""
    pairs = [entry("obs-1", "Always use tabs in Makefiles", 1), entry("obs-2", "Never use tabs in Makefiles", 2)]
    marked = with_conflicts([finding for finding, _ in pairs], [detail for _, detail in pairs], {})

    assert [each.contradicts for each in marked] == [("obs-2",), ("obs-1",)]


def test_work_done_never_contradicts() -> None:
    """Reports of work are not compared, because each was true at its time."""
    pairs = [
        entry("obs-1", "Always use tabs in Makefiles", 1, FindingKind.OTHER),
        entry("obs-2", "Never use tabs in Makefiles", 2, FindingKind.OTHER),
    ]
    marked = with_conflicts([finding for finding, _ in pairs], [detail for _, detail in pairs], {})

    assert [each.contradicts for each in marked] == [(), ()]
