"""Conflicts: what memories disagree about is what they say now."""

import pytest

from palaver.core.memory import MemoryRevision, Relation
from palaver.core.origin import Origin

from .holding import DAY, Holding

OLD, NEW = "The staging server listens on port 8443", "The staging server listens on port 9000"


def contradictions(holding: Holding, memory: str) -> list[str]:
    """The reasons for which it is linked as contradicting."""
    edges = holding.core.graph.edges_of(holding.core.get(memory))
    return [each.reason for each in edges if each.relation is Relation.CONTRADICTS]


def edit(holding: Holding, memory: str, content: str) -> None:
    holding.core.revise(memory, MemoryRevision(content, origin=Origin.HUMAN))


@pytest.mark.parametrize("place", [0, 1])
def test_a_contradiction_goes_with_the_words_it_was_judged_on(place: int, holding: Holding) -> None:
    """Whichever of both is edited; the edit that is taken back brings it back."""
    old = holding.hold(OLD).id
    holding.at += DAY
    both = old, holding.hold(NEW).id
    edited, other = both[place], both[1 - place]
    [reason] = contradictions(holding, edited)
    edit(holding, edited, "Bananas are yellow")
    gone = contradictions(holding, other)
    holding.core.undo([edited])[0]

    assert (gone, contradictions(holding, other)) == ([], [reason])


def test_a_contradiction_that_stays_has_the_reason_of_now(holding: Holding) -> None:
    """It is the same link, said anew."""
    old, new = holding.hold(OLD).id, holding.hold(NEW).id
    [reason] = contradictions(holding, new)
    edit(holding, new, "The staging server never listens on port 8443")
    [said] = contradictions(holding, old)

    assert said == "One denies what the other says (judged by rules)" != reason


def test_an_edit_that_contradicts_is_linked(holding: Holding) -> None:
    """As what is remembered is; nothing is put away by it, and what is no claim of the text changes no link."""
    old, other = holding.hold(OLD).id, holding.hold("Bananas are yellow").id
    edit(holding, other, NEW)
    linked = contradictions(holding, other)
    holding.core.revise(other, MemoryRevision(tags=("port",)))

    assert len(linked) == 1
    assert linked == contradictions(holding, old)
    assert [holding.core.get(each).state for each in (old, other)] == ["active", "active"]


def test_what_a_person_or_another_judge_said_stays(holding: Holding) -> None:
    """Rules judge anew what rules judged."""
    old, new = holding.hold(OLD), holding.hold("Bananas are yellow")
    holding.core.graph.relate(old.id, new.id, Relation.CONTRADICTS, reason="I say so")
    edit(holding, new.id, "Bananas are green")

    assert contradictions(holding, new.id) == ["I say so"]
