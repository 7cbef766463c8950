"""Memories have the same state as a simple model after any sequence of operations."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, invariant, rule

from palaver.core.errors import InvalidInput, MemoryNotFound
from palaver.core.memory import GOLDEN_RULE, MemoryFilter, MemoryRevision, Relation

from .memory_harness import Harness

PROMOTES = {"preference", "decision"}
CONTENTS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
NAMESPACES = ["global", "project:one"]


@dataclass
class Expected:
    """Expected state of one memory."""

    content: str
    kind: str
    namespace: str
    confidence: int = 30
    """Confidence in hundredths, to avoid rounding errors of floats."""
    strikes: int = 0
    is_golden: bool = False
    state: str = "active"
    importance: float = 0.5
    former: tuple[float, int] = (0.5, 30)
    """Importance and confidence before the memory was superseded."""

    @property
    def type(self) -> str:
        return GOLDEN_RULE if self.is_golden else self.kind

    @property
    def protected(self) -> bool:
        return self.is_golden or self.confidence >= 90

    @property
    def claim(self) -> tuple[str, str, str]:
        return self.namespace, self.kind, self.content

    def supersede(self) -> None:
        self.state, self.former = "superseded", (self.importance, self.confidence)
        self.importance, self.confidence = round(self.importance / 2, 4), min(10, self.confidence)

    def regain_former_values(self) -> None:
        if self.state == "superseded":
            self.importance, self.confidence = self.former[0], max(self.confidence, self.former[1])


class MemoryMachine(RuleBasedStateMachine):
    """Random operations on a few memories."""

    memories: Bundle[str] = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.harness = Harness(Path(self.folder.name))
        self.model: dict[str, Expected] = {}
        self.edges: dict[tuple[str, str], bool] = {}
        """Return the `supersedes` edges (newer, older) in ID order. True marks a proposed edge."""

    def teardown(self) -> None:
        self.harness.store.close()
        self.folder.cleanup()

    def has_twin(self, claim: tuple[str, str, str], states: tuple[str, ...] = ("active",), but: str = "") -> bool:
        """Return whether another memory in one of these states has this claim."""
        return any(p.claim == claim and p.state in states and key != but for key, p in self.model.items())

    def is_superseded(self, memory: str) -> bool:
        """Return whether an effective edge from a memory that is not forgotten leads to this memory."""
        return any(
            older == memory and not proposed and self.model[newer].state != "archived"
            for (newer, older), proposed in self.edges.items()
        )

    def add_edge(self, newer: str, older: str) -> None:
        expected = self.model[older]
        protected = expected.protected or expected.state == "archived"
        self.edges[newer, older] = protected and expected.state != "superseded"
        if not self.edges[newer, older] and expected.state == "active":
            expected.supersede()

    @rule(
        target=memories,
        content=st.sampled_from(CONTENTS),
        kind=st.sampled_from(["preference", "decision", "fact"]),
        namespace=st.sampled_from(NAMESPACES),
    )
    def store(self, content: str, kind: str, namespace: str) -> MultipleResults[str] | str:
        done = self.harness.remember(content, kind, namespace=namespace)
        assert done.duplicate == self.has_twin((namespace, kind, content), ("active", "superseded"))
        if done.duplicate:
            return MultipleResults(())
        self.model[done.stored.id] = Expected(content, kind, namespace)
        return done.stored.id

    @rule(memory=memories)
    def approve(self, memory: str) -> None:
        expected = self.model[memory]
        if (
            expected.state == "archived"
            or expected.confidence < 90
            or expected.kind not in PROMOTES
            or expected.is_golden
        ):
            with pytest.raises(InvalidInput):
                self.harness.core.feedback.approve(memory)
            return
        self.harness.core.feedback.approve(memory)
        expected.is_golden = True

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
                expected.confidence, expected.strikes = min(100, expected.confidence + 10), 0
                assert not done.promoted
            else:
                expected.confidence = max(0, expected.confidence - 15)
                expected.strikes += expected.is_golden
                if expected.strikes == 3:
                    expected.is_golden, expected.confidence, expected.strikes = False, 70, 0
                    assert done.demoted

    @rule(memory=memories, content=st.sampled_from(CONTENTS), force=st.booleans())
    def edit(self, memory: str, content: str, force: bool) -> None:
        expected = self.model[memory]
        changes = content != expected.content
        if expected.state == "archived":
            self.check_refused(memory, content, force)
            return
        if changes and expected.protected and not force:
            self.check_refused(memory, content, force)
            return
        if expected.state == "active" and self.has_twin((expected.namespace, expected.kind, content), but=memory):
            self.check_refused(memory, content, force)
            return
        self.harness.core.revise(memory, MemoryRevision(content=content), force=force)
        if changes:
            expected.content, expected.confidence = content, min(30, expected.confidence)
            expected.is_golden, expected.strikes = False, 0

    def check_refused(self, memory: str, content: str, force: bool) -> None:
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
        self.add_edge(newer, older)

    @rule(memory=memories, force=st.booleans())
    def forget(self, memory: str, force: bool) -> None:
        expected = self.model[memory]
        done = self.harness.core.forget([memory], force=force)
        is_forgotten = expected.state != "archived" and (force or not expected.protected)
        assert [stored.id for stored in done.forgotten] == ([memory] if is_forgotten else [])
        if is_forgotten:
            expected.regain_former_values()
            expected.state = "archived"
            self.reinstate_targets(memory)

    def reinstate_targets(self, memory: str) -> None:
        targets = [older for (newer, older), proposed in self.edges.items() if newer == memory and not proposed]
        for older in sorted(targets, key=lambda key: int(key.rpartition("_")[2])):
            target = self.model[older]
            blocked = self.is_superseded(older) or self.has_twin(target.claim, but=older)
            if target.state == "superseded" and not blocked:
                target.regain_former_values()
                target.state = "active"

    @rule(memory=memories)
    def restore(self, memory: str) -> None:
        expected = self.model[memory]
        if expected.state == "active":
            return
        superseded_again = expected.state == "archived" and self.is_superseded(memory)
        if not superseded_again and self.has_twin(expected.claim, but=memory):
            with pytest.raises(InvalidInput):
                self.harness.core.restore(memory)
            return
        self.harness.core.restore(memory)
        if expected.state == "superseded":
            self.edges = {
                (newer, older): proposed
                for (newer, older), proposed in self.edges.items()
                if older != memory or proposed or self.model[newer].state == "archived"
            }
            expected.regain_former_values()
            expected.state = "active"
        else:
            expected.state = "active"
            if superseded_again:
                expected.supersede()
            for newer, older in [edge for edge, proposed in self.edges.items() if edge[0] == memory and not proposed]:
                if self.model[older].state == "active":
                    self.add_edge(newer, older)

    @rule(content=st.sampled_from(CONTENTS))
    def recall(self, content: str) -> None:
        found = {each.stored.id for each in self.harness.core.recall(content, limit=50)}
        stored = {key for key, expected in self.model.items() if expected.state != "archived"}
        assert {key for key in stored if self.model[key].content == content} <= found <= stored

    @invariant()
    def both_agree(self) -> None:
        every = MemoryFilter(states=())
        stored = {each.id: each for each in self.harness.core.page(every, limit=1000)}
        assert stored.keys() == self.model.keys()
        for key, expected in self.model.items():
            one = stored[key]
            actual = (one.memory.content, one.memory.type, one.state.value, one.protected)
            assert actual == (expected.content, expected.type, expected.state, expected.protected)
            assert (one.stats.confidence, one.memory.importance) == (expected.confidence / 100, expected.importance)
        count = sum(expected.state != "archived" for expected in self.model.values())
        assert self.harness.core.count() == count


MemoryMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=25)
TestMemories = MemoryMachine.TestCase
