"""Undo: restore earlier content step by step."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.errors import NothingToUndo
from palaver.core.memory import EventKind, MemoryRevision, StoredMemory
from palaver.core.origin import Origin

from .holding import DAY, Holding

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
def holding(tmp_path_factory: pytest.TempPathFactory) -> Holding:
    return Holding(tmp_path_factory.mktemp("undone"))


@pytest.fixture(scope="module")
def projects() -> Iterator[int]:
    """Yield separate projects, so that memories with equal content are not duplicates."""
    return count()


def edit(holding: Holding, memory: str, **changed: Any) -> StoredMemory:
    return holding.core.revise(memory, MemoryRevision(origin=Origin.HUMAN, **changed))


def said(held: StoredMemory) -> tuple[object, ...]:
    """Return the fields of a memory that undo restores."""
    return held.memory.content, held.memory.importance, held.memory.tags


def undone(holding: Holding, memory: str) -> Iterator[str]:
    """Undo edits until none remains, and return the content after each undo."""
    while True:
        try:
            yield holding.core.undo([memory])[0].stored.memory.content
        except NothingToUndo:
            return


def test_undo_skips_an_edit_of_the_type_alone(holding: Holding) -> None:
    """Undo restores each earlier content once, and does not restore an earlier type."""
    memory = holding.hold("blue").id
    for changed in ({"content": "green"}, {"type": "decision"}, {"content": "red"}, {"type": "preference"}):
        edit(holding, memory, **changed)

    assert list(undone(holding, memory)) == ["green", "blue"]
    assert holding.core.get(memory).memory.type == "preference"


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_edits_are_undone_like_a_stack(holding: Holding, projects: Iterator[int], steps: list[Edit | None]) -> None:
    """After any sequence of edits and undos, undo reverts the newest edit that is not undone."""
    held = holding.hold("white", namespace=f"project:{next(projects)}")
    stack = list[tuple[object, ...]]()
    for step in steps:
        before = said(held)
        if step is not None:
            held = edit(holding, held.id, **step)
            stack += [before] if said(held) != before else []
        elif stack:
            held = holding.core.undo([held.id])[0].stored
            assert said(held) == stack.pop()
    while stack:
        assert said(holding.core.undo([held.id])[0].stored) == stack.pop()

    with pytest.raises(NothingToUndo):
        holding.core.undo([held.id])[0]


def test_undo_reports_its_own_event(holding: Holding) -> None:
    """The result of an undo does not contain a later event of another process."""
    held = holding.hold("yellow")
    edit(holding, held.id, content="orange")

    done = holding.core.undo([held.id])[0]
    holding.succeed(held.id)
    assert (done.event.kind, done.event.context) == (EventKind.EDITED, "undone")
    assert done.event.id != holding.core.history(held.id, limit=1)[0].id

    holding.core.forget([held.id], reason="no colour")
    restored = holding.core.undo([held.id])[0]
    assert (restored.event.kind, restored.event.context) == (EventKind.RESTORED, "was forgotten")
    assert restored.stored.stats.confidence == holding.core.get(held.id).stats.confidence


@pytest.mark.parametrize(("kind", "namespace"), [("session", "global"), ("fact", "session:one")])
def test_a_session_memory_expires_and_can_be_restored(tmp_path: Path, kind: str, namespace: str) -> None:
    """After 48 hours a session memory is neither recalled nor listed; storing it again restarts the 48 hours."""
    holding = Holding(tmp_path)
    memories, hour = holding.core, 3_600_000
    held = holding.hold("The parser is half done", kind, namespace=namespace)
    other = holding.hold("Chose Redis", "decision")
    holding.at += 24 * hour
    assert holding.hold("The parser is half done", kind, namespace=namespace).id == held.id
    holding.at += 48 * hour - 1
    assert holding.recall("parser half done") == ["The parser is half done"]
    holding.at += 1

    assert holding.recall("parser half done") == []
    assert [each.id for each in memories.page()] == [other.id]
    assert memories.count() == 1
    [undone] = memories.undo([held.id])
    assert (undone.stored.id, undone.event.context, undone.stored.memory.valid_until) == (held.id, "was expired", None)
    assert holding.recall("parser half done") == ["The parser is half done"]


def test_an_expiry_time_or_a_pin_keeps_a_session_memory(tmp_path: Path) -> None:
    """Only an unpinned session memory without its own expiry time expires after 48 hours."""
    holding = Holding(tmp_path)
    holding.hold("The parser is half done", "session", pinned=True)
    holding.hold("The lexer is half done", "session", valid_until=holding.at + 100 * DAY)
    holding.at += 99 * DAY

    assert holding.core.count() == 2
