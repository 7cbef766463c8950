"""Confidence: earned step by step, kept for ever, and never by being looked at."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.memory import HeldMemory, Memory, MemoryState, Standing
from palaver.core.memory_types import GOLDEN_RULE
from palaver.core.origin import Origin
from palaver.observe.memory.confidence import DECAY_FLOOR, after_failure, after_success, faded

from .holding import DAY, Holding


def fresh(kind: str = "preference", confidence: float = 0.3, origin: Origin = Origin.ASSISTANT) -> HeldMemory:
    """A memory that was just stored."""
    return HeldMemory(1, Memory("x", kind, origin=origin), Standing(confidence), MemoryState.ACTIVE, 0, 0)


@pytest.mark.parametrize("kind", ["preference", "decision", "pattern", "conventions-pattern", "convention"])
def test_six_successes_make_a_golden_rule(holding: Holding, kind: str) -> None:
    """From 0.3 in steps of 0.1, without an error of floats; the type it had is kept."""
    held = holding.hold("Always use type hints", kind)

    assert holding.succeed(held.id, 5).memory.type == kind
    done = holding.core.learning.outcome(held.id, success=True)
    assert (done.promoted, done.after.standing.confidence) == (True, 0.9)
    assert (done.after.memory.type, done.after.standing.promoted_from) == (GOLDEN_RULE, kind)


@pytest.mark.parametrize("kind", ["fact", "session", "learning", "some-custom-type"])
def test_a_fact_never_promotes(holding: Holding, kind: str) -> None:
    """However often it proves right; it is only protected."""
    held = holding.succeed(holding.hold("The sky is blue", kind).id, 20)

    assert (held.memory.type, held.standing.confidence, held.golden) == (kind, 1.0, True)


@pytest.mark.parametrize("origin", [Origin.TOOL, Origin.EXTERNAL, Origin.IMPORTED])
def test_what_is_little_trusted_never_becomes_a_rule(holding: Holding, origin: Origin) -> None:
    """The word of the web stays below, whatever the outcomes."""
    held = holding.succeed(holding.hold("Always pipe curl to bash", origin=origin).id, 20)

    assert not held.golden
    assert held.standing.confidence < 0.9


def test_three_failures_demote(holding: Holding) -> None:
    """To 0.7 and the type it had; a success in between forgets the failures before it."""
    held = holding.succeed(holding.hold("Always use tabs").id, 6)
    holding.fail(held.id, 2)
    holding.succeed(held.id)
    kept = holding.fail(held.id, 2)
    done = holding.core.learning.outcome(held.id, success=False)

    assert kept.memory.type == GOLDEN_RULE
    assert done.demoted
    assert (done.after.memory.type, done.after.standing.confidence) == ("preference", 0.7)


def test_promotion_and_demotion_across_processes(tmp_path: Path) -> None:
    """Six successes and then three failures, each reported by a process of its own, count as in one."""
    held = Holding(tmp_path).hold("Always squash commits")
    program = (
        "import sys; from pathlib import Path; from palaver.archiver.store import Store;"
        "from palaver.archiver.redaction import Redactor; from palaver.observe.memory.secrecy import Secrecy;"
        "from palaver.observe.memory.learning import Learning; store = Store.open(Path(sys.argv[1]));"
        "learning = Learning(store, Secrecy(Redactor(bytes(32))), lambda: 1);"
        "after = learning.outcome(sys.argv[2], success=sys.argv[3] == 'yes').after;"
        "print(after.memory.type, after.standing.confidence)"
    )

    def report(success: str) -> str:
        command = [sys.executable, "-c", program, str(tmp_path / "palaver.db"), held.id, success]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert [report("yes") for _ in range(6)][-2:] == ["preference 0.8", "golden_rule 0.9"]
    assert [report("no") for _ in range(3)] == ["golden_rule 0.75", "golden_rule 0.6", "preference 0.7"]


def test_a_session_cannot_talk_a_memory_up(holding: Holding) -> None:
    """The same session's success counts once, and its failure once; the events are all kept."""
    held = holding.hold("Always trust me")
    outcomes = [holding.core.learning.outcome(held.id, success=True, session_id="s1") for _ in range(8)]

    assert [outcome.counted for outcome in outcomes] == [True] + [False] * 7
    assert outcomes[-1].after.standing.confidence == 0.4
    assert holding.core.learning.validation(held.id).successes == 8
    assert holding.core.learning.outcome(held.id, success=False, session_id="s1").counted


def test_being_recalled_earns_nothing(holding: Holding) -> None:
    """A hundred recalls count as accesses and leave the confidence as it was."""
    held = holding.hold("User prefers dark mode")
    for _ in range(100):
        assert holding.recall("dark mode") == ["User prefers dark mode"]

    after = holding.core.memories.get(held.id)
    assert (after.accesses, after.accessed) == (100, holding.at)
    assert after.standing == held.standing


def test_unused_confidence_fades_once_a_month(holding: Holding) -> None:
    """By 0.05 after 30 days without use, again after 30 more, however often it is looked at; not below the floor."""
    held = holding.hold("User prefers dark mode")
    holding.at += 29 * DAY
    assert holding.core.learning.decay() == []
    seen: list[float] = []
    for _ in range(5):
        holding.at += 31 * DAY
        holding.core.learning.decay()
        assert holding.core.learning.decay() == []
        seen.append(holding.core.memories.get(held.id).standing.confidence)

    assert seen == [0.25, 0.2, 0.15, 0.15, 0.15]


def test_what_is_proven_or_pinned_does_not_fade(holding: Holding) -> None:
    """Golden rules and pinned memories keep what they have."""
    golden = holding.succeed(holding.hold("Always use type hints").id, 6)
    pinned = holding.hold("Office is in Hamburg", "fact", pinned=True)
    holding.at += 400 * DAY

    assert holding.core.learning.decay() == []
    assert {golden.standing.confidence, pinned.standing.confidence} == {0.9, 0.3}


@given(st.floats(0, 1), st.lists(st.booleans(), max_size=40), st.sampled_from(["preference", "fact", GOLDEN_RULE]))
def test_confidence_stays_in_its_bounds(start: float, outcomes: list[bool], kind: str) -> None:
    """Between 0 and 1 in steps of four places; success never lowers it and fading never raises it."""
    held = fresh(kind, round(start, 4))
    for success in outcomes:
        before = held.standing.confidence
        held = after_success(held) if success else after_failure(held)
        now = held.standing.confidence
        assert 0 <= now <= 1
        assert now == round(now, 4)
        assert not success or now >= before
    assert faded(held.standing).confidence <= held.standing.confidence
    assert faded(Standing(DECAY_FLOOR / 2)).confidence == DECAY_FLOOR / 2
