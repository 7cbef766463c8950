"""Contract of `MemoryCore`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.core.errors import InvalidInput, MemoryNotFound
from palaver.core.memory import Memory, MemoryFilter, MemoryRevision, MemoryState
from palaver.observe.memory import MemoryCore

from .memory_harness import Harness


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryCore]:
    """Return the memories of an empty home."""
    harness = Harness(tmp_path)
    yield harness.core
    harness.store.close()


def test_a_stored_memory_is_returned_by_its_id(memories: MemoryCore) -> None:
    """A new memory is active, has the given content, and is not a duplicate."""
    stored = memories.remember(Memory("Use tabs in Go", "preference"))

    assert (stored.duplicate, stored.stored.state) == (False, MemoryState.ACTIVE)
    assert memories.get(stored.stored.id).memory.content == "Use tabs in Go"


def test_the_same_content_is_stored_once(memories: MemoryCore) -> None:
    """Storing the same content again returns a duplicate with the ID of the first memory."""
    first = memories.remember(Memory("Use tabs in Go", "preference"))
    second = memories.remember(Memory("Use tabs in Go", "preference"))

    assert (second.duplicate, second.stored.id) == (True, first.stored.id)


def test_recall_returns_matches_that_satisfy_the_filter(memories: MemoryCore) -> None:
    """Recall returns at most `limit` memories, and none of another namespace or type."""
    for number in range(3):
        memories.remember(Memory(f"Staging port number {number}", "fact", namespace="project:one"))
    memories.remember(Memory("Staging port of another project", "fact", namespace="project:two"))
    wanted = MemoryFilter(namespaces=("project:one",))

    assert {each.stored.memory.namespace for each in memories.recall("staging port", wanted)} == {"project:one"}
    assert len(memories.recall("staging port", wanted, limit=2)) == 2
    assert memories.recall("staging port", MemoryFilter(types=("decision",))) == []


def test_a_revision_changes_only_what_it_names(memories: MemoryCore) -> None:
    """A revision of the content keeps the ID, type and tags, and the new content is recalled."""
    memory = memories.remember(Memory("The port is 8443", "fact", tags=("ports",))).stored
    revised = memories.revise(memory.id, MemoryRevision(content="The port is 9000"))

    assert (revised.id, revised.memory.type, revised.memory.tags) == (memory.id, "fact", ("ports",))
    assert [each.stored.memory.content for each in memories.recall("port")] == ["The port is 9000"]


def test_a_forgotten_memory_is_not_recalled_until_it_is_restored(memories: MemoryCore) -> None:
    """A forgotten memory is readable by its ID, and restoring returns it unchanged."""
    memory = memories.remember(Memory("The port is 8443", "fact")).stored
    result = memories.forget([memory.id], reason="a test")

    assert ([each.id for each in result.forgotten], result.protected) == ([memory.id], ())
    assert memories.recall("port") == []
    assert memories.get(memory.id).state is MemoryState.ARCHIVED
    restored = memories.restore(memory.id)
    assert (restored.memory, restored.state) == (memory.memory, MemoryState.ACTIVE)
    assert [each.stored.id for each in memories.recall("port")] == [memory.id]


def test_a_newer_memory_supersedes_an_older_one_until_it_is_forgotten(memories: MemoryCore) -> None:
    """`replaces` describes the older memory, and forgetting the newer memory reinstates it."""
    older = memories.remember(Memory("CI runs on Jenkins", "fact")).stored
    newer = memories.remember(Memory("CI runs on Buildkite", "fact"), replaces="CI runs on Jenkins")

    assert [each.id for each in newer.superseded] == [older.id]
    assert memories.get(older.id).state is MemoryState.SUPERSEDED
    memories.forget([newer.stored.id])
    assert memories.get(older.id).state is MemoryState.ACTIVE


def test_unknown_ids_and_invalid_arguments_are_errors(memories: MemoryCore) -> None:
    """An unknown ID raises `MemoryNotFound`. Empty content, an empty query or a limit of 0 raises `InvalidInput`."""
    memory = memories.remember(Memory("The port is 8443", "fact")).stored
    with pytest.raises(MemoryNotFound):
        memories.get("mem_99")
    with pytest.raises(MemoryNotFound):
        memories.revise("mem_99", MemoryRevision(content="x"))
    with pytest.raises(MemoryNotFound):
        memories.forget([memory.id, "mem_99"])
    with pytest.raises(MemoryNotFound):
        memories.restore("mem_99")
    with pytest.raises(InvalidInput):
        memories.remember(Memory(" "))
    with pytest.raises(InvalidInput):
        memories.recall(" ")
    with pytest.raises(InvalidInput):
        memories.recall("port", limit=0)

    assert memories.get(memory.id).state is MemoryState.ACTIVE
