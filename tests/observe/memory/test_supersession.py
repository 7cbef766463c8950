"""Supersession: applied, proposed and undone.

The pairs of the split `first` were written before the rules were changed. The previous rules superseded 13 of their 30
pairs without a contradiction. The pairs of the split `fresh` were written afterwards. Two rules were then changed
because of four of their pairs without a contradiction.
"""

from functools import cache
from pathlib import Path
from typing import TypedDict, cast

import orjson
import pytest

from palaver.core.memory import Memory, MemoryState, Relation
from palaver.observe.memory import RememberResult
from palaver.search.model.embedder import load

from .memory_harness import Harness


class Pair(TypedDict):
    """Two statements, the older first. `kind` is innocent (both stay true), genuine (replacement) or contradiction."""

    older: str
    newer: str
    kind: str
    group: str
    split: str


@cache
def pairs() -> list[Pair]:
    """Return all pairs."""
    lines = Path(__file__).with_name("supersessions.jsonl").read_bytes().splitlines()
    return [cast("Pair", orjson.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Pair, RememberResult]]:
    """Return each pair with the result of storing its newer statement, with the packaged model."""
    harness = Harness(tmp_path_factory.mktemp("pairs"), load())
    found: list[tuple[Pair, RememberResult]] = []
    for number, pair in enumerate(pairs()):
        harness.add(pair["older"], "fact", namespace=f"project:p{number}")
        found.append((pair, harness.remember(pair["newer"], "fact", namespace=f"project:p{number}")))
    return found


def of(stored: list[tuple[Pair, RememberResult]], kind: str, split: str) -> list[RememberResult]:
    """Return the results of one kind of pairs."""
    return [done for pair, done in stored if (pair["kind"], pair["split"]) == (kind, split)]


@pytest.mark.parametrize("split", ["first", "fresh"])
def test_no_innocent_pair_supersedes(stored: list[tuple[Pair, RememberResult]], split: str) -> None:
    """Statements about another subject, environment, time, qualifier or unit never supersede a memory."""
    innocent = of(stored, "innocent", split)

    assert len(innocent) == 30
    assert not any(done.superseded for done in innocent)


def test_no_innocent_pair_raises_an_alarm(stored: list[tuple[Pair, RememberResult]]) -> None:
    """No innocent `first` pair, and at most four `fresh` ones, are reported as superseding or contradicting."""
    alarms = [sum(bool(done.conflicts) for done in of(stored, "innocent", split)) for split in ("first", "fresh")]

    assert alarms[0] == 0
    assert alarms[1] <= 4


def test_genuine_replacements_are_applied_or_proposed(stored: list[tuple[Pair, RememberResult]]) -> None:
    """Of 30 genuine replacements, at least 20 are applied, 25 applied or proposed, and 29 detected."""
    genuine = of(stored, "genuine", "first")

    assert sum(bool(done.superseded) for done in genuine) >= 20
    assert sum(bool(done.superseded or done.proposed) for done in genuine) >= 25
    assert sum(bool(done.superseded or done.conflicts) for done in genuine) >= 29


@pytest.mark.parametrize(("split", "least"), [("first", 8), ("fresh", 5)])
def test_contradictions_in_other_words_are_found(
    stored: list[tuple[Pair, RememberResult]], split: str, least: int
) -> None:
    """Contradictions in number words, units, alternatives or permissions are found and supersede nothing."""
    found = of(stored, "contradiction", split)

    assert sum(bool(done.conflicts) for done in found) >= least
    assert not any(done.superseded for done in found)


OLD, NEW = "Builds must finish within 10 minutes", "Builds must finish within 15 minutes, the limit of 10 was raised"


def test_a_proposed_supersession_changes_nothing_until_it_is_confirmed(real: Harness) -> None:
    """Only confirming a proposed supersession changes the memory, and removing the edge restores it."""
    old = real.add(OLD, "fact")
    done = real.remember(NEW, "fact")
    [edge] = done.edges

    assert (edge.relation, edge.proposed) == (Relation.SUPERSEDES, True)
    assert ([each.id for each in done.proposed], done.superseded) == ([old.id], ())
    assert real.core.get(old.id) == old
    confirmed = real.core.graph.relate(done.stored.id, old.id, Relation.SUPERSEDES)
    assert (confirmed.id, confirmed.proposed) == (edge.id, False)
    assert real.core.get(old.id).state is MemoryState.SUPERSEDED
    real.core.graph.forget(real.core.graph.find(edge.id))
    assert real.core.get(old.id).state is MemoryState.ACTIVE
    assert real.core.get(old.id).memory.importance == old.memory.importance


def test_a_memory_that_two_supersede_is_restored_with_the_last_edge(real: Harness) -> None:
    """A memory that two others supersede is restored when the second of the two edges is removed."""
    old, one, two = (real.add(text, "fact").id for text in ("zebra", "quartz", "violin"))
    edges = [real.core.graph.relate(each, old, Relation.SUPERSEDES).id for each in (one, two)]
    states: list[str] = []
    for edge in edges:
        real.core.graph.forget(real.core.graph.find(edge))
        states.append(real.core.get(old).state)

    assert states == ["superseded", "active"]


@pytest.mark.parametrize(
    ("replaces", "state"),
    [
        (None, MemoryState.SUPERSEDED),
        ("", MemoryState.ACTIVE),
        ("CI runs on Jenkins", MemoryState.SUPERSEDED),
        ("Nightly backups run on Jenkins", MemoryState.ACTIVE),
    ],
)
def test_the_caller_can_describe_the_superseded_memory(real: Harness, replaces: str | None, state: MemoryState) -> None:
    """An empty description supersedes nothing. A description of another subject only proposes it."""
    old = real.add("CI runs on Jenkins", "fact")
    real.core.remember(Memory("CI now runs on Buildkite instead of Jenkins", "fact"), replaces=replaces)

    assert real.core.get(old.id).state is state


def test_a_context_leaves_superseded_memories_out(real: Harness) -> None:
    """A session context contains only current memories."""
    old = real.add("Deploys run on Jenkins", "decision")
    real.remember("Deploys now run on Buildkite instead of Jenkins", "decision")
    shown = {each.id for section in real.core.contexts.select(lambda _: 0).sections for each in section.memories}

    assert old.id not in shown
    assert len(shown) == 1


def state(harness: Harness, memory: str) -> tuple[MemoryState, float, float]:
    """Return the state, importance and confidence of a memory."""
    found = harness.core.get(memory)
    return found.state, found.memory.importance, found.stats.confidence


WHOLE, HALVED = (MemoryState.ACTIVE, 0.8, 0.3), (MemoryState.SUPERSEDED, 0.4, 0.1)


@pytest.mark.parametrize("order", [["newer"], ["older", "newer"], ["newer", "older"]])
@pytest.mark.parametrize("back", [["newer", "older"], ["older", "newer"]])
def test_forgetting_the_newer_memory_reinstates_the_older(real: Harness, order: list[str], back: list[str]) -> None:
    """Forgetting the newer memory reinstates the older, and restoring it supersedes the older again, in any order."""
    old = real.add("CI runs on Jenkins", "fact", importance=0.8).id
    new = real.add("CI now runs on Buildkite instead of Jenkins", "fact").id
    named = {"older": old, "newer": new}
    for name in order:
        real.core.forget([named[name]])

    assert state(real, old) == (WHOLE if order == ["newer"] else (MemoryState.ARCHIVED, 0.8, 0.3))
    for name in back:
        if name in order:
            real.core.undo([named[name]])[0]
    assert (state(real, old), state(real, new)[0]) == (HALVED, MemoryState.ACTIVE)


def test_a_memory_that_another_still_supersedes_stays_superseded(real: Harness) -> None:
    """Forgetting one of two superseding memories does not reinstate the older memory."""
    old, one, two = (real.add(text, "fact").id for text in ("zebra", "quartz", "violin"))
    for newer in (one, two):
        real.core.graph.relate(newer, old, Relation.SUPERSEDES)
    states: list[str] = []
    for newer in (one, two):
        real.core.forget([newer])
        states.append(real.core.get(old).state)

    assert states == ["superseded", "active"]


def test_a_superseded_content_stored_again_is_a_duplicate(real: Harness) -> None:
    """Storing superseded content again returns the superseded memory. Removing the edge restores it."""
    old = real.add("CI runs on Jenkins", "fact", importance=0.8)
    [edge] = real.remember("CI now runs on Buildkite instead of Jenkins", "fact").edges
    again = real.remember("CI runs on Jenkins", "fact", importance=0.8, tags=("ci",))

    assert (again.stored.id, again.duplicate, again.stored.memory.tags) == (old.id, True, ("ci",))
    assert (state(real, old.id), real.core.count()) == (HALVED, 2)
    assert real.core.graph.forget(real.core.graph.find(edge.id)) == [edge.id]
    assert state(real, old.id) == WHOLE
