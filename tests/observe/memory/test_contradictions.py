"""Contradictions after an edit: edges match the current content."""

import pytest

from palaver.core.memory import MemoryRevision, Relation
from palaver.core.origin import Origin

from .holding import DAY, Holding

OLD, NEW = "The staging server listens on port 8443", "The staging server listens on port 9000"


def contradictions(holding: Holding, memory: str) -> list[str]:
    """Return the reasons of the contradictions of a memory."""
    edges = holding.core.graph.edges_of(holding.core.get(memory))
    return [each.reason for each in edges if each.relation is Relation.CONTRADICTS]


def edit(holding: Holding, memory: str, content: str) -> None:
    holding.core.revise(memory, MemoryRevision(content, origin=Origin.HUMAN))


@pytest.mark.parametrize("place", [0, 1])
def test_an_edit_removes_a_contradiction_that_no_longer_exists(place: int, holding: Holding) -> None:
    """Editing either memory can remove a contradiction, and undoing the edit restores it."""
    old = holding.hold(OLD).id
    holding.at += DAY
    both = old, holding.hold(NEW).id
    edited, other = both[place], both[1 - place]
    [reason] = contradictions(holding, edited)
    edit(holding, edited, "Bananas are yellow")
    gone = contradictions(holding, other)
    holding.core.undo([edited])[0]

    assert (gone, contradictions(holding, other)) == ([], [reason])


def test_a_remaining_contradiction_has_the_current_reason(holding: Holding) -> None:
    """After an edit the judge evaluates existing contradictions again and updates their reasons."""
    old, new = holding.hold(OLD).id, holding.hold(NEW).id
    [reason] = contradictions(holding, new)
    edit(holding, new, "The staging server never listens on port 8443")
    [said] = contradictions(holding, old)

    assert said == "One memory negates the other (judged by rules)" != reason


def test_an_edit_that_contradicts_draws_an_edge(holding: Holding) -> None:
    """A contradicting edit adds an edge but supersedes nothing; an edit of other fields changes no edge."""
    old, other = holding.hold(OLD).id, holding.hold("Bananas are yellow").id
    edit(holding, other, NEW)
    linked = contradictions(holding, other)
    holding.core.revise(other, MemoryRevision(tags=("port",)))

    assert len(linked) == 1
    assert linked == contradictions(holding, old)
    assert [holding.core.get(each).state for each in (old, other)] == ["active", "active"]


def test_edges_of_users_and_other_judges_stay(holding: Holding) -> None:
    """The rule judge replaces only edges that it added itself."""
    old, new = holding.hold(OLD), holding.hold("Bananas are yellow")
    holding.core.graph.relate(old.id, new.id, Relation.CONTRADICTS, reason="I say so")
    edit(holding, new.id, "Bananas are green")

    assert contradictions(holding, new.id) == ["I say so"]
