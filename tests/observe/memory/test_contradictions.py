"""After an edit, the edges of a memory match its current content."""

import pytest

from palaver.core.conversation import Origin
from palaver.core.memory import MemoryRevision, Relation

from .memory_harness import DAY, Harness

OLD, NEW = "The staging server listens on port 8443", "The staging server listens on port 9000"


def contradictions(harness: Harness, memory: str) -> list[str]:
    """Return the reasons of the contradictions of a memory."""
    edges = harness.core.graph.edges_of(harness.core.get(memory))
    return [each.reason for each in edges if each.relation is Relation.CONTRADICTS]


def edit(harness: Harness, memory: str, content: str) -> None:
    harness.core.revise(memory, MemoryRevision(content, origin=Origin.HUMAN))


@pytest.mark.parametrize("place", [0, 1])
def test_an_edit_removes_a_contradiction_that_no_longer_exists(place: int, harness: Harness) -> None:
    """Editing either memory can remove a contradiction, and undoing the edit restores it."""
    old = harness.add(OLD).id
    harness.at += DAY
    both = old, harness.add(NEW).id
    edited, other = both[place], both[1 - place]
    [reason] = contradictions(harness, edited)
    edit(harness, edited, "Bananas are yellow")
    gone = contradictions(harness, other)
    harness.core.undo([edited])[0]

    assert (gone, contradictions(harness, other)) == ([], [reason])


def test_a_remaining_contradiction_has_the_current_reason(harness: Harness) -> None:
    """After an edit the judge evaluates existing contradictions again and updates their reasons."""
    old, new = harness.add(OLD).id, harness.add(NEW).id
    [reason] = contradictions(harness, new)
    edit(harness, new, "The staging server never listens on port 8443")
    [reason_after] = contradictions(harness, old)

    assert reason_after == "One memory negates the other (judged by rules)" != reason


def test_an_edit_that_contradicts_draws_an_edge(harness: Harness) -> None:
    """A contradicting edit adds an edge but supersedes nothing. An edit of other fields changes no edge."""
    old, other = harness.add(OLD).id, harness.add("Bananas are yellow").id
    edit(harness, other, NEW)
    linked = contradictions(harness, other)
    harness.core.revise(other, MemoryRevision(tags=("port",)))

    assert len(linked) == 1
    assert linked == contradictions(harness, old)
    assert [harness.core.get(each).state for each in (old, other)] == ["active", "active"]


def test_edges_of_users_and_other_judges_stay(harness: Harness) -> None:
    """The rule judge replaces only edges that it added itself."""
    old, new = harness.add(OLD), harness.add("Bananas are yellow")
    harness.core.graph.relate(old.id, new.id, Relation.CONTRADICTS, reason="I say so")
    edit(harness, new.id, "Bananas are green")

    assert contradictions(harness, new.id) == ["I say so"]
