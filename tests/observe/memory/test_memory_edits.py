"""Undo restores earlier content step by step."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.conversation import Origin
from palaver.core.errors import NothingToUndo
from palaver.core.memory import EventKind, MemoryRevision, StoredMemory

from .memory_harness import DAY, Harness

Edit: TypeAlias = dict[str, Any]
VALUES: dict[str, list[Any]] = {
    "content": ["green", "red", "blue"],
    "importance": [0.2, 0.8],
    "tags": [("one",), ("one", "two")],
    "type": ["preference", "decision", "fact"],
}
EACH = {name: st.sampled_from(values) for name, values in VALUES.items()}
EDITS = st.one_of(*[st.fixed_dictionaries({name: one}) for name, one in EACH.items()], st.fixed_dictionaries(EACH))
STEPS = st.lists(EDITS | st.none(), min_size=4, max_size=12)
"""Sequence of edits, in which None is an undo."""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    return Harness(tmp_path_factory.mktemp("undone"))


@pytest.fixture(scope="module")
def projects() -> Iterator[int]:
    """Yield separate projects, so that memories with equal content are not duplicates."""
    return count()


def edit(harness: Harness, memory: str, **changed: Any) -> StoredMemory:
    return harness.core.revise(memory, MemoryRevision(origin=Origin.HUMAN, **changed))


def restorable(stored: StoredMemory) -> tuple[object, ...]:
    """Return the fields of a memory that undo restores."""
    return stored.memory.content, stored.memory.importance, stored.memory.tags


def undone(harness: Harness, memory: str) -> Iterator[str]:
    """Undo edits until none remains, and return the content after each undo."""
    while True:
        try:
            yield harness.core.undo([memory])[0].stored.memory.content
        except NothingToUndo:
            return


def test_undo_skips_an_edit_of_the_type_alone(harness: Harness) -> None:
    """Undo restores each earlier content once, and does not restore an earlier type."""
    memory = harness.add("blue").id
    for changed in ({"content": "green"}, {"type": "decision"}, {"content": "red"}, {"type": "preference"}):
        edit(harness, memory, **changed)

    assert list(undone(harness, memory)) == ["green", "blue"]
    assert harness.core.get(memory).memory.type == "preference"


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_edits_are_undone_like_a_stack(harness: Harness, projects: Iterator[int], steps: list[Edit | None]) -> None:
    """After any sequence of edits and undos, undo reverts the newest edit that is not undone."""
    edited = harness.add("white", namespace=f"project:{next(projects)}")
    stack = list[tuple[object, ...]]()
    for step in steps:
        before = restorable(edited)
        if step is not None:
            edited = edit(harness, edited.id, **step)
            stack += [before] if restorable(edited) != before else []
        elif stack:
            edited = harness.core.undo([edited.id])[0].stored
            assert restorable(edited) == stack.pop()
    while stack:
        assert restorable(harness.core.undo([edited.id])[0].stored) == stack.pop()

    with pytest.raises(NothingToUndo):
        harness.core.undo([edited.id])[0]


def test_undo_reports_its_own_event(harness: Harness) -> None:
    """The result of an undo does not contain a later event of another process."""
    edited = harness.add("yellow")
    edit(harness, edited.id, content="orange")

    done = harness.core.undo([edited.id])[0]
    harness.succeed(edited.id)
    assert (done.event.kind, done.event.context) == (EventKind.EDITED, "undone")
    assert done.event.id != harness.core.history(edited.id, limit=1)[0].id

    harness.core.forget([edited.id], reason="no colour")
    restored = harness.core.undo([edited.id])[0]
    assert (restored.event.kind, restored.event.context) == (EventKind.RESTORED, "was forgotten")
    assert restored.stored.stats.confidence == harness.core.get(edited.id).stats.confidence


@pytest.mark.parametrize(("kind", "namespace"), [("session", "global"), ("fact", "session:one")])
def test_a_session_memory_expires_and_can_be_restored(tmp_path: Path, kind: str, namespace: str) -> None:
    """After 48 hours a session memory is neither recalled nor listed. Storing it again restarts the 48 hours."""
    harness = Harness(tmp_path)
    memories, hour = harness.core, 3_600_000
    edited = harness.add("The parser is half done", kind, namespace=namespace)
    other = harness.add("Chose Redis", "decision")
    harness.at += 24 * hour
    assert harness.add("The parser is half done", kind, namespace=namespace).id == edited.id
    harness.at += 48 * hour - 1
    assert harness.recall("parser half done") == ["The parser is half done"]
    harness.at += 1

    assert harness.recall("parser half done") == []
    assert [each.id for each in memories.page()] == [other.id]
    assert memories.count() == 1
    [undone] = memories.undo([edited.id])
    assert (undone.stored.id, undone.event.context, undone.stored.memory.valid_until) == (
        edited.id,
        "was expired",
        None,
    )
    assert harness.recall("parser half done") == ["The parser is half done"]


def test_an_expiry_time_or_a_pin_keeps_a_session_memory(tmp_path: Path) -> None:
    """Only an unpinned session memory without its own expiry time expires after 48 hours."""
    harness = Harness(tmp_path)
    harness.add("The parser is half done", "session", pinned=True)
    harness.add("The lexer is half done", "session", valid_until=harness.at + 100 * DAY)
    harness.at += 99 * DAY

    assert harness.core.count() == 2
