"""Recall also returns memories that edges connect with the results."""

from palaver.core.memory import MemoryFilter, Relation, StoredMemory
from palaver.observe.memory.memory_graph import ExpandedMemory

from .memory_harness import Harness


def unlinked(harness: Harness, *contents: str) -> list[StoredMemory]:
    """Return memories without edges."""
    memories = [harness.add(content, "fact") for content in contents]
    for each in memories:
        harness.core.graph.forget(harness.core.graph.select(each.id))
    return memories


def expand(
    harness: Harness, *found: StoredMemory, wanted: MemoryFilter | None = None, limit: int = 20
) -> list[ExpandedMemory]:
    """Return the expansion of these memories."""
    return harness.core.graph.expand(found, wanted, limit=limit)


def test_the_score_of_a_path_depends_on_length_weights_and_relations(harness: Harness) -> None:
    """The score is the product of 0.7 per edge, all weights, and the geometric mean of the relation strengths."""
    one, two, three, four = unlinked(harness, "alpha", "beta", "gamma", "delta")
    graph = harness.core.graph
    graph.relate(one.id, two.id, Relation.CAUSED_BY)
    graph.relate(three.id, two.id, Relation.CONTRADICTS, 0.5)
    graph.relate(three.id, four.id, Relation.RELATES_TO)

    assert [(each.stored.id, each.score, each.hops, each.explanation) for each in expand(harness, one)] == [
        (two.id, 0.63, 1, "mem_1 was caused by mem_2."),
        (three.id, 0.1644, 2, "mem_1 was caused by mem_2, which contradicts mem_3."),
        (four.id, 0.1167, 3, "mem_1 was caused by mem_2, which contradicts mem_3, which is related to mem_4."),
    ]
    assert expand(harness, two)[0].explanation == "mem_2 led to mem_1."


def test_only_valid_memories_that_satisfy_the_filter_are_added(harness: Harness) -> None:
    """Expansion adds no recalled, filtered or forgotten memories. Paths may pass through filtered memories."""
    one, two, three = unlinked(harness, "alpha", "beta", "gamma")
    other = harness.add("delta", "decision")
    for source, target in ((one, two), (two, three), (two, other)):
        harness.core.graph.relate(source.id, target.id, Relation.RELATES_TO)

    assert {each.stored.id for each in expand(harness, one)} == {two.id, three.id, other.id}
    assert [each.stored.id for each in expand(harness, one, wanted=MemoryFilter(types=("decision",)))] == [other.id]
    assert expand(harness, one, two, three, other) == []
    harness.core.forget([two.id])
    assert expand(harness, one) == []


def test_expansion_respects_its_limits(harness: Harness) -> None:
    """The ten strongest edges of each memory are followed, and at most twenty memories are returned."""
    center, *around = unlinked(harness, *(f"word{number} only" for number in range(40)))
    for number, each in enumerate(around):
        harness.core.graph.relate(center.id, each.id, Relation.RELATES_TO, (number + 1) / 40)
    found = expand(harness, center)

    assert [each.stored.id for each in found] == [each.id for each in reversed(around[-10:])]
    assert len(expand(harness, center, limit=3)) == 3
    assert len(expand(harness, *around[:30], limit=100)) <= 20


def test_expansion_writes_nothing(harness: Harness) -> None:
    """Expansion does not count as an access."""
    one, two = unlinked(harness, "alpha", "beta")
    harness.core.graph.relate(one.id, two.id, Relation.RELATES_TO)
    before = harness.core.get(two.id)
    expand(harness, one)

    assert harness.core.get(two.id) == before
