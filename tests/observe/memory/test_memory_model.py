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

from .memory_harness import Harness as Holding

PROMOTES = {"preference", "decision"}
CONTENTS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
NAMESPACES = ["global", "project:one"]


@dataclass
class Plain:
    """State of one memory in the model."""

    content: str
    kind: str
    namespace: str
    steps: int = 30
    """Confidence in hundredths, to avoid rounding errors of floats."""
    strikes: int = 0
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
        self.holding = Holding(Path(self.folder.name))
        self.model: dict[str, Plain] = {}

    def teardown(self) -> None:
        self.holding.store.close()
        self.folder.cleanup()

    def twin(self, claim: tuple[str, str, str], but: str = "") -> bool:
        return any(p.claim == claim and p.state == "active" and key != but for key, p in self.model.items())

    @rule(
        target=memories,
        content=st.sampled_from(CONTENTS),
        kind=st.sampled_from(["preference", "decision", "fact"]),
        namespace=st.sampled_from(NAMESPACES),
    )
    def store(self, content: str, kind: str, namespace: str) -> MultipleResults[str] | str:
        done = self.holding.remember(content, kind, namespace=namespace)
        assert done.duplicate == self.twin((namespace, kind, content))
        if done.duplicate:
            return MultipleResults(())
        self.model[done.stored.id] = Plain(content, kind, namespace)
        return done.stored.id

    @rule(memory=memories)
    def approve(self, memory: str) -> None:
        plain = self.model[memory]
        if plain.state == "archived" or plain.steps < 90 or plain.kind not in PROMOTES or plain.golden_type:
            with pytest.raises(InvalidInput):
                self.holding.core.feedback.approve(memory)
            return
        self.holding.core.feedback.approve(memory)
        plain.golden_type = True

    @rule(memory=memories, success=st.booleans(), times=st.integers(1, 6))
    def outcome(self, memory: str, success: bool, times: int) -> None:
        plain = self.model[memory]
        if plain.state == "archived":
            with pytest.raises(MemoryNotFound):
                self.holding.core.feedback.outcome(memory, success=success)
            return
        for _ in range(times):
            done = self.holding.core.feedback.outcome(memory, success=success)
            if success:
                plain.steps, plain.strikes = min(100, plain.steps + 10), 0
                assert not done.promoted
            else:
                plain.steps = max(0, plain.steps - 15)
                plain.strikes += plain.golden_type
                if plain.strikes == 3:
                    plain.golden_type, plain.steps, plain.strikes = False, 70, 0
                    assert done.demoted

    @rule(memory=memories, content=st.sampled_from(CONTENTS), force=st.booleans())
    def edit(self, memory: str, content: str, force: bool) -> None:
        plain = self.model[memory]
        changes = content != plain.content
        if plain.state == "archived":
            self.refused(memory, content, force)
            return
        if changes and plain.protected and not force:
            self.refused(memory, content, force)
            return
        if plain.state == "active" and self.twin((plain.namespace, plain.kind, content), memory):
            self.refused(memory, content, force)
            return
        self.holding.core.revise(memory, MemoryRevision(content=content), force=force)
        if changes:
            plain.edits.append(plain.content)
            plain.content, plain.steps = content, min(30, plain.steps)
            plain.golden_type, plain.strikes = False, 0

    def refused(self, memory: str, content: str, force: bool) -> None:
        with pytest.raises(InvalidInput):
            self.holding.core.revise(memory, MemoryRevision(content=content), force=force)

    @rule(newer=memories, older=memories)
    def supersede(self, newer: str, older: str) -> None:
        if newer == older:
            return
        if "archived" in {self.model[newer].state, self.model[older].state}:
            with pytest.raises(MemoryNotFound):
                self.holding.core.graph.relate(newer, older, Relation.SUPERSEDES)
            return
        self.holding.core.graph.relate(newer, older, Relation.SUPERSEDES)
        plain = self.model[older]
        if plain.state == "active" and not plain.protected:
            plain.state, plain.steps_before, plain.replaced = "superseded", plain.steps, True
            plain.importance, plain.steps = round(plain.importance / 2, 4), min(10, plain.steps)

    @rule(memory=memories, force=st.booleans())
    def forget(self, memory: str, force: bool) -> None:
        plain = self.model[memory]
        done = self.holding.core.forget([memory], force=force)
        gone = plain.state != "archived" and (force or not plain.protected)
        assert [held.id for held in done.forgotten] == ([memory] if gone else [])
        if gone:
            plain.state = "archived"

    @rule(memory=memories)
    def restore(self, memory: str) -> None:
        plain = self.model[memory]
        if plain.state == "active":
            return
        if plain.state == "archived" and plain.replaced:
            self.holding.core.restore(memory)
            plain.state = "superseded"
            return
        if self.twin(plain.claim, memory):
            with pytest.raises(InvalidInput):
                self.holding.core.restore(memory)
            return
        self.holding.core.restore(memory)
        if plain.state == "superseded":
            plain.importance, plain.steps = plain.importance * 2, max(plain.steps, plain.steps_before)
        plain.state, plain.replaced = "active", False

    @rule(content=st.sampled_from(CONTENTS))
    def recall(self, content: str) -> None:
        found = {each.stored.id for each in self.holding.core.recall(content, limit=50)}
        stored = {key for key, plain in self.model.items() if plain.state != "archived"}
        assert {key for key in stored if self.model[key].content == content} <= found <= stored

    @invariant()
    def both_agree(self) -> None:
        every = MemoryFilter(states=())
        held = {each.id: each for each in self.holding.core.page(every, limit=1000)}
        assert held.keys() == self.model.keys()
        for key, plain in self.model.items():
            one = held[key]
            told = (one.memory.content, one.memory.type, one.state.value, one.protected)
            assert told == (plain.content, plain.type, plain.state, plain.protected)
            assert (one.stats.confidence, one.memory.importance) == (plain.steps / 100, plain.importance)
        stored = sum(plain.state != "archived" for plain in self.model.values())
        assert self.holding.core.count() == stored


MemoryMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=25)
TestMemories = MemoryMachine.TestCase
