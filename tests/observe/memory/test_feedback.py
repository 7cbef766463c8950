"""The confidence of a memory depends only on outcomes and time."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import Origin, Session
from palaver.core.errors import InvalidInput
from palaver.core.memory import GOLDEN_RULE, Memory, MemoryState, MemoryStats, Relation, StoredMemory
from palaver.observe.memory.feedback import after_failure, after_success, decayed

from .memory_harness import DAY, Harness


def fresh(kind: str = "preference", confidence: float = 0.3, origin: Origin = Origin.ASSISTANT) -> StoredMemory:
    """Return a memory without any outcomes."""
    return StoredMemory(1, Memory("x", kind, origin=origin), MemoryStats(confidence), MemoryState.ACTIVE, 0, 0)


@pytest.mark.parametrize("kind", ["preference", "decision", "pattern", "conventions-pattern", "convention"])
def test_six_successes_prove_a_memory_and_the_user_makes_it_a_rule(harness: Harness, kind: str) -> None:
    """Each success raises the confidence by 0.1 from 0.3 to 0.9, and the golden rule records its former type."""
    stored = harness.add("Always use type hints", kind)

    assert harness.core.feedback.approvable() == []
    done = [harness.core.feedback.outcome(stored.id, success=True) for _ in range(6)][-1]
    assert (done.promoted, done.after.stats.confidence, done.after.memory.type) == (False, 0.9, kind)
    assert [each.id for each in harness.core.feedback.approvable()] == [stored.id]
    after = harness.core.feedback.approve(stored.id)
    assert (after.memory.type, after.stats.promoted_from) == (GOLDEN_RULE, kind)
    assert harness.core.get(stored.id).memory.type == GOLDEN_RULE
    assert harness.core.feedback.approvable() == []


def test_a_declined_memory_is_never_proposed_again(harness: Harness) -> None:
    """After further successes, a declined memory is not proposed again. Only proven memories can be approved."""
    stored, fresh_one = harness.add("Always use type hints"), harness.add("Use tabs")
    harness.succeed(stored.id, 6)
    harness.core.feedback.decline(stored.id)
    harness.succeed(stored.id, 3)

    assert harness.core.feedback.approvable() == []
    for reviewed in (harness.core.feedback.approve, harness.core.feedback.decline):
        with pytest.raises(InvalidInput, match="not a proposal to review"):
            reviewed(fresh_one.id)


def archive_sessions(harness: Harness, *names: str) -> None:
    """Archive sessions with these IDs."""
    with harness.store.transaction():
        for name in names:
            harness.store.sessions.save(Session("claude-code", name))


def test_only_archived_sessions_promote_the_users_own_words(harness: Harness) -> None:
    """Successes promote the user's own words once per archived session. Memories of agents wait for approval."""
    archive_sessions(harness, *(f"s{number}" for number in range(6)))
    own = harness.add("Always squash commits", origin=Origin.HUMAN)
    agents = harness.add("Never write tests")

    def report(memory: StoredMemory, *sessions: str) -> list[bool]:
        learning = harness.core.feedback
        return [learning.outcome(memory.id, success=True, session_id=name).promoted for name in sessions]

    assert not any(report(own, *["s0"] * 8, *(f"invented-{number}" for number in range(8)), "", ""))
    assert report(own, "s1", "s2", "s3", "s4", "s5") == [False] * 4 + [True]
    assert not any(report(agents, "s0", "s1", "s2", "s3", "s4", "s5"))
    assert [each.id for each in harness.core.feedback.approvable()] == [agents.id]


@pytest.mark.parametrize("kind", ["fact", "session", "learning", "some-custom-type"])
def test_a_fact_never_promotes(harness: Harness, kind: str) -> None:
    """A fact with confidence 1.0 is protected, but does not become a golden rule."""
    stored = harness.succeed(harness.add("The sky is blue", kind).id, 20)

    assert (stored.memory.type, stored.stats.confidence, stored.protected) == (kind, 1.0, True)


@pytest.mark.parametrize("origin", [Origin.TOOL, Origin.EXTERNAL, Origin.IMPORTED])
def test_a_memory_of_low_trust_never_becomes_a_golden_rule(harness: Harness, origin: Origin) -> None:
    """Whatever its outcomes, a memory of low trust stays below the confidence that golden rules require."""
    stored = harness.succeed(harness.add("Always pipe curl to bash", origin=origin).id, 20)

    assert not stored.protected
    assert stored.stats.confidence < 0.9


def test_three_failures_demote(harness: Harness) -> None:
    """Three failures demote a golden rule to its former type at confidence 0.7. A success resets the count."""
    stored = harness.golden("Always use tabs")
    harness.fail(stored.id, 2)
    harness.succeed(stored.id)
    kept = harness.fail(stored.id, 2)
    done = harness.core.feedback.outcome(stored.id, success=False)

    assert kept.memory.type == GOLDEN_RULE
    assert done.demoted
    assert (done.after.memory.type, done.after.stats.confidence) == ("preference", 0.7)


def test_proof_and_demotion_across_processes(tmp_path: Path) -> None:
    """Six successes, and three failures after the approval, count the same if separate processes report them."""
    harness = Harness(tmp_path)
    stored = harness.add("Always squash commits")
    program = (
        "import sys; from pathlib import Path; from palaver.archiver.store import Store;"
        "from palaver.archiver.redaction import MemoryRedactor, Redactor;"
        "from palaver.observe.memory.feedback import Feedback; store = Store.open(Path(sys.argv[1]));"
        "feedback = Feedback(store, MemoryRedactor(Redactor(bytes(32))), lambda: 1);"
        "after = feedback.outcome(sys.argv[2], success=sys.argv[3] == 'yes').after;"
        "print(after.memory.type, after.stats.confidence)"
    )

    def report(success: str) -> str:
        command = [sys.executable, "-c", program, str(tmp_path / "palaver.db"), stored.id, success]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert [report("yes") for _ in range(6)][-2:] == ["preference 0.8", "preference 0.9"]
    harness.core.feedback.approve(stored.id)
    assert [report("no") for _ in range(3)] == ["golden_rule 0.75", "golden_rule 0.6", "preference 0.7"]


def test_proof_protects_from_agents_and_not_from_the_user(harness: Harness) -> None:
    """A newer statement supersedes a proven memory if the user made it. An agent's statement only proposes that."""
    proven = harness.succeed(harness.add("Always upload the keys").id, 8)
    agents = harness.add("Chose to encrypt", "decision")
    users = harness.add("Never leave a key behind", origin=Origin.HUMAN)

    assert harness.core.graph.relate(agents.id, proven.id, Relation.SUPERSEDES).proposed
    assert not harness.core.graph.relate(users.id, proven.id, Relation.SUPERSEDES).proposed
    assert harness.core.get(proven.id).state is MemoryState.SUPERSEDED


def test_every_outcome_counts_whatever_its_session(harness: Harness) -> None:
    """The session ID is an optional label, so two outcomes with the same ID both count."""
    stored = harness.add("Always trust me")
    outcomes = [harness.core.feedback.outcome(stored.id, success=True, session_id="s1") for _ in range(3)]

    assert [each.after.stats.confidence for each in outcomes] == [0.4, 0.5, 0.6]
    assert harness.core.feedback.history(stored.id).successes == 3


def test_recall_does_not_change_the_confidence(harness: Harness) -> None:
    """A hundred recalls increase the access count and do not change the confidence."""
    stored = harness.add("User prefers dark mode")
    for _ in range(100):
        assert harness.recall("dark mode") == ["User prefers dark mode"]

    after = harness.core.get(stored.id)
    assert (after.accesses, after.accessed) == (100, harness.at)
    assert after.stats == stored.stats


def test_confidence_decays_by_stored_times(harness: Harness) -> None:
    """Confidence decays by 0.05 per 30 days without use, never below the minimum, in one run or in several."""
    often, once = harness.add("User prefers dark mode"), harness.add("Chose Redis", "decision")
    harness.at += 30 * DAY - 1
    assert harness.core.feedback.decay() == []
    harness.at += 1
    seen: list[float] = []
    for _ in range(5):
        with harness.store.transaction():
            harness.store.memories.touch([once.key], harness.at)
        assert [each.id for each in harness.core.feedback.decay()] == ([often.id] if len(seen) < 3 else [])
        assert harness.core.feedback.decay() == []
        seen.append(harness.core.get(often.id).stats.confidence)
        harness.at += 30 * DAY
    assert seen == [0.25, 0.2, 0.15, 0.15, 0.15]
    harness.at += 30 * DAY
    [after] = harness.core.feedback.decay()
    assert (after.id, after.stats.confidence) == (once.id, 0.2)


@pytest.mark.parametrize("confidence", [0.0, 0.05, 0.15])
def test_decay_never_raises(confidence: float) -> None:
    """A confidence at or below the minimum does not change."""
    stored = fresh(confidence=confidence)
    assert decayed(stored, 0, 400 * DAY) is stored


def test_an_application_counts_as_use(harness: Harness) -> None:
    """A memory that was applied within 30 days does not decay."""
    stored = harness.add("User prefers dark mode")
    harness.at += 25 * DAY
    harness.core.feedback.apply(stored.id, "here")
    harness.at += 25 * DAY

    assert harness.core.feedback.decay() == []


def test_protected_and_pinned_memories_do_not_decay(harness: Harness) -> None:
    """Golden rules and pinned memories keep their confidence."""
    golden = harness.golden("Always use type hints")
    pinned = harness.add("Office is in Hamburg", "fact", pinned=True)
    harness.at += 400 * DAY

    assert harness.core.feedback.decay() == []
    assert {golden.stats.confidence, pinned.stats.confidence} == {0.9, 0.3}


@given(st.floats(0, 1), st.lists(st.booleans(), max_size=40), st.sampled_from(["preference", "fact", GOLDEN_RULE]))
def test_confidence_stays_in_its_bounds(start: float, outcomes: list[bool], kind: str) -> None:
    """Confidence is between 0 and 1 with four decimals. A success never lowers it, and decay never raises it."""
    stored = fresh(kind, round(start, 4))
    for success in outcomes:
        before = stored.stats.confidence
        stored = after_success(stored) if success else after_failure(stored)
        now = stored.stats.confidence
        assert 0 <= now <= 1
        assert now == round(now, 4)
        assert not success or now >= before
    assert decayed(stored, 0, 400 * DAY).stats.confidence <= stored.stats.confidence
