"""Memory graph: unique edges, neighborhoods, backfill, and valid Mermaid."""

import pytest

from palaver.core.errors import InvalidInput, MemoryNotFound
from palaver.core.memory import Edge, MemoryState, Relation

from .memory_harness import Harness


def three(harness: Harness) -> list[str]:
    """Return a chain of three memories: a -0.5-> b -0.8-> c."""
    ids = [harness.add(text, "fact").id for text in ("zebra", "quartz", "violin")]
    harness.core.graph.relate(ids[0], ids[1], Relation.RELATES_TO, 0.5)
    harness.core.graph.relate(ids[1], ids[2], Relation.CAUSED_BY, 0.8)
    return ids


def test_an_edge_is_drawn_once(harness: Harness) -> None:
    """Relating two memories again returns the first edge. Both memories must exist and differ."""
    one, two, _ = three(harness)

    assert harness.core.graph.relate(one, two, Relation.RELATES_TO).id == 1
    with pytest.raises(MemoryNotFound):
        harness.core.graph.relate(one, "mem_99", Relation.RELATES_TO)
    with pytest.raises(InvalidInput):
        harness.core.graph.relate(one, one, Relation.RELATES_TO)


def test_drawing_an_edge_again_updates_its_weight(harness: Harness) -> None:
    """Relating two memories again with another weight updates the edge and adds none."""
    one, two, _ = three(harness)
    again = harness.core.graph.relate(one, two, Relation.RELATES_TO, 0.9, "it matters")
    [edge] = [edge for edge in harness.core.graph.inspect(one).edges if edge.id == again.id]

    assert (edge.id, edge.weight, edge.reason) == (1, 0.9, "it matters")


def test_the_most_relevant_path_wins_over_a_shorter_one(harness: Harness) -> None:
    """The depth is the smallest number of edges, but the relevance is that of the best path, even if it is longer."""
    one, two, three_ = three(harness)
    harness.core.graph.relate(one, two, Relation.RELATES_TO, 1.0)
    harness.core.graph.relate(one, three_, Relation.RELATES_TO, 0.1)
    around = harness.core.graph.inspect(one, depth=2)

    assert {path.ids: path.relevance for path in around.paths} == {(one, two): 0.7, (one, two, three_): 0.392}
    assert {node.id: node.depth for node in around.nodes} == {one: 0, two: 1, three_: 1}
    assert harness.core.graph.inspect(one, depth=1).paths[1].relevance == 0.07


def test_a_neighborhood_has_depths_and_relevances(harness: Harness) -> None:
    """The relevance of a path is the product of its edge weights and one decay factor per edge.

    Neighborhoods can be filtered by direction and relation.
    """
    one, two, three_ = three(harness)
    around = harness.core.graph.inspect(one, depth=3)

    assert [(node.id, node.depth, node.relevance) for node in around.nodes] == [
        (one, 0, 1.0),
        (two, 1, 0.35),
        (three_, 2, 0.196),
    ]
    assert [(path.ids, path.relevance) for path in around.paths] == [((one, two), 0.35), ((one, two, three_), 0.196)]
    assert around.depth == 2
    assert len(harness.core.graph.inspect(one, direction="incoming").nodes) == 1
    assert len(harness.core.graph.inspect(three_, direction="incoming", depth=2).nodes) == 3
    assert len(harness.core.graph.inspect(two, relations=[Relation.CAUSED_BY]).nodes) == 2


def test_edges_are_removed_by_id_memory_or_pair(harness: Harness) -> None:
    """Edges can be removed by edge ID, by memory or by pair of memories. All other edges stay."""
    one, two, three_ = three(harness)
    graph = harness.core.graph

    assert graph.forget(graph.find(99)) == []
    assert graph.forget(graph.select(one, "outgoing", target=three_)) == []
    assert graph.forget(graph.select(one, "outgoing", Relation.CONTRADICTS, two)) == []
    assert graph.forget(graph.select(two, "outgoing")) == [2]
    assert graph.forget(graph.select(two)) == [1]


def test_a_mermaid_graph_survives_hostile_text(harness: Harness) -> None:
    """Quotes, brackets and line breaks in a memory stay inside its Mermaid label."""
    stored = harness.add('say "hi"]\n--> <b>x</b>', "fact")
    picture = harness.core.graph.inspect(stored.id).mermaid()

    assert picture.splitlines() == ["graph TD", f'    {stored.id}["say #quot;hi#quot;] --#gt; #lt;b#gt;x#lt;/b#gt;"]']


def test_a_supersedes_edge_marks_its_target(harness: Harness) -> None:
    """The target of a `supersedes` edge becomes superseded, but a golden rule stays active."""
    one, two, _ = three(harness)
    golden = harness.succeed(harness.add("Always test").id, 6)
    harness.core.graph.relate(one, two, Relation.SUPERSEDES)
    harness.core.graph.relate(one, golden.id, Relation.SUPERSEDES)

    assert harness.core.get(two).state is MemoryState.SUPERSEDED
    assert harness.core.get(golden.id) == golden


def test_backfill_links_orphans_and_tries_each_once(harness: Harness) -> None:
    """Backfill links similar memories, and tries a memory without similar memories only once."""
    ids = [harness.add(text, "fact") for text in ("green apple tart", "green apple pie", "quartz")]
    harness.core.graph.forget(harness.core.graph.select(ids[0].id))
    tried = harness.core.graph.backfill(dry_run=True)
    done = harness.core.graph.backfill(batch_size=1)
    again = harness.core.graph.backfill(after=done.attempted_to)

    assert (tried.edges_created, tried.remaining_orphans) == (1, 3)
    assert (done.initial_orphans, done.edges_created, done.remaining_orphans) == (3, 1, 1)
    assert (again.processed, again.initial_orphans) == (0, 1)


def test_a_health_check_lists_memories_to_review(harness: Harness) -> None:
    """The health check lists contradictions, failed memories and unused memories, except golden rules."""
    one, two, _ = three(harness)
    golden = harness.succeed(harness.add("Always test").id, 6)
    harness.core.graph.relate(one, two, Relation.CONTRADICTS)
    harness.fail(two, 2)
    harness.at += 40 * 86_400_000
    found = harness.core.health.check()

    assert [(each.one.id, each.other.id) for each in found.contradictions] == [(one, two)]
    assert [stored.id for stored in found.low_confidence] == [two]
    assert golden.id not in {stored.id for stored, _ in found.stale}
    assert found.recommendations == (
        "Resolve 1 contradiction",
        "Review 1 low-confidence memory",
        "Validate or archive 3 stale memories",
    )


def test_an_edge_has_public_ids_of_its_ends() -> None:
    """Both ends of an edge have public IDs."""
    assert (Edge(1, 2, Relation.RELATES_TO).source_id, Edge(1, 2, Relation.RELATES_TO).target_id) == ("mem_1", "mem_2")
