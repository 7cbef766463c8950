"""Memories compared with a simple model: after any sequence of operations both have the same state."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, invariant, rule

from palaver.core.errors import InvalidInput, MemoryNotFound
from palaver.core.memory import MemoryRevision, Relation
from palaver.core.memory_filter import MemoryFilter
from palaver.core.memory_types import GOLDEN_RULE

from .memory_harness import Harness

PROMOTES = {"preference", "decision"}
CONTENTS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
NAMESPACES = ["global", "project:one"]


@dataclass
class ModelMemory:
    """State of one memory in the model."""

    content: str
    kind: str
    namespace: str
    steps: int = 30
    """Confidence in hundredths, to avoid rounding errors of floats."""
    failures: int = 0
    golden_type: bool = False
    state: str = "active"
    replaced: bool = False
    importance: float = 0.5
    steps_before: int = 30
    edits: list[str] = field(default_factory=list[str])

    @property
    def type(self) -> str:
        return GOLDEN_RULE if self.golden_type else self.kind

    @property
    def protected(self) -> bool:
        return self.golden_type or self.steps >= 90

    @property
    def claim(self) -> tuple[str, str, str]:
        return self.namespace, self.kind, self.content


class MemoryMachine(RuleBasedStateMachine):
    """Random operations on a few memories."""

    memories: Bundle[str] = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.harness = Harness(Path(self.folder.name))
        self.model: dict[str, ModelMemory] = {}

    def teardown(self) -> None:
        self.harness.store.close()
        self.folder.cleanup()

    def has_duplicate(self, claim: tuple[str, str, str], but: str = "") -> bool:
        return any(p.claim == claim and p.state == "active" and key != but for key, p in self.model.items())

    @rule(
        target=memories,
        content=st.sampled_from(CONTENTS),
        kind=st.sampled_from(["preference", "decision", "fact"]),
        namespace=st.sampled_from(NAMESPACES),
    )
    def store(self, content: str, kind: str, namespace: str) -> MultipleResults[str] | str:
        done = self.harness.remember(content, kind, namespace=namespace)
        assert done.duplicate == self.has_duplicate((namespace, kind, content))
        if done.duplicate:
            return MultipleResults(())
        self.model[done.stored.id] = ModelMemory(content, kind, namespace)
        return done.stored.id

    @rule(memory=memories)
    def approve(self, memory: str) -> None:
        expected = self.model[memory]
        if expected.state == "archived" or expected.steps < 90 or expected.kind not in PROMOTES or expected.golden_type:
            with pytest.raises(InvalidInput):
                self.harness.core.feedback.approve(memory)
            return
        self.harness.core.feedback.approve(memory)
        expected.golden_type = True

    @rule(memory=memories, success=st.booleans(), times=st.integers(1, 6))
    def outcome(self, memory: str, success: bool, times: int) -> None:
        expected = self.model[memory]
        if expected.state == "archived":
            with pytest.raises(MemoryNotFound):
                self.harness.core.feedback.outcome(memory, success=success)
            return
        for _ in range(times):
            done = self.harness.core.feedback.outcome(memory, success=success)
            if success:
                expected.steps, expected.failures = min(100, expected.steps + 10), 0
                assert not done.promoted
            else:
                expected.steps = max(0, expected.steps - 15)
                expected.failures += expected.golden_type
                if expected.failures == 3:
                    expected.golden_type, expected.steps, expected.failures = False, 70, 0
                    assert done.demoted

    @rule(memory=memories, content=st.sampled_from(CONTENTS), force=st.booleans())
    def edit(self, memory: str, content: str, force: bool) -> None:
        expected = self.model[memory]
        changes = content != expected.content
        if expected.state == "archived":
            self.refused(memory, content, force)
            return
        if changes and expected.protected and not force:
            self.refused(memory, content, force)
            return
        if expected.state == "active" and self.has_duplicate((expected.namespace, expected.kind, content), memory):
            self.refused(memory, content, force)
            return
        self.harness.core.revise(memory, MemoryRevision(content=content), force=force)
        if changes:
            expected.edits.append(expected.content)
            expected.content, expected.steps = content, min(30, expected.steps)
            expected.golden_type, expected.failures = False, 0

    def refused(self, memory: str, content: str, force: bool) -> None:
        with pytest.raises(InvalidInput):
            self.harness.core.revise(memory, MemoryRevision(content=content), force=force)

    @rule(newer=memories, older=memories)
    def supersede(self, newer: str, older: str) -> None:
        if newer == older:
            return
        if "archived" in {self.model[newer].state, self.model[older].state}:
            with pytest.raises(MemoryNotFound):
                self.harness.core.graph.relate(newer, older, Relation.SUPERSEDES)
            return
        self.harness.core.graph.relate(newer, older, Relation.SUPERSEDES)
        expected = self.model[older]
        if expected.state == "active" and not expected.protected:
            expected.state, expected.steps_before, expected.replaced = "superseded", expected.steps, True
            expected.importance, expected.steps = round(expected.importance / 2, 4), min(10, expected.steps)

    @rule(memory=memories, force=st.booleans())
    def forget(self, memory: str, force: bool) -> None:
        expected = self.model[memory]
        done = self.harness.core.forget([memory], force=force)
        gone = expected.state != "archived" and (force or not expected.protected)
        assert [forgotten.id for forgotten in done.forgotten] == ([memory] if gone else [])
        if gone:
            expected.state = "archived"

    @rule(memory=memories)
    def restore(self, memory: str) -> None:
        expected = self.model[memory]
        if expected.state == "active":
            return
        if expected.state == "archived" and expected.replaced:
            self.harness.core.restore(memory)
            expected.state = "superseded"
            return
        if self.has_duplicate(expected.claim, memory):
            with pytest.raises(InvalidInput):
                self.harness.core.restore(memory)
            return
        self.harness.core.restore(memory)
        if expected.state == "superseded":
            expected.importance, expected.steps = expected.importance * 2, max(expected.steps, expected.steps_before)
        expected.state, expected.replaced = "active", False

    @rule(content=st.sampled_from(CONTENTS))
    def recall(self, content: str) -> None:
        found = {each.stored.id for each in self.harness.core.recall(content, limit=50)}
        stored = {key for key, expected in self.model.items() if expected.state != "archived"}
        assert {key for key in stored if self.model[key].content == content} <= found <= stored

    @invariant()
    def both_agree(self) -> None:
        every = MemoryFilter(states=())
        memories = {each.id: each for each in self.harness.core.page(every, limit=1000)}
        assert memories.keys() == self.model.keys()
        for key, expected in self.model.items():
            one = memories[key]
            actual = (one.memory.content, one.memory.type, one.state.value, one.protected)
            assert actual == (expected.content, expected.type, expected.state, expected.protected)
            assert (one.stats.confidence, one.memory.importance) == (expected.steps / 100, expected.importance)
        stored = sum(expected.state != "archived" for expected in self.model.values())
        assert self.harness.core.count() == stored


MemoryMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=25)
TestMemories = MemoryMachine.TestCase
