"""The rules keep their invariants for arbitrary exchanges and real transcripts."""

import tarfile
from collections import defaultdict
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import Exchange, Speaker
from palaver.core.observation import Observation
from palaver.core.text import TITLE_MAX, headline
from palaver.observe.rules import VERSION
from palaver.observe.rules.exchange_analysis import accepted_commits
from palaver.observe.rules.rule_extractor import observe

from ...shared import SAMPLES, SHARED
from .exchange_script import CWD, Script, session
from .real import real_exchanges

WORDS = st.sampled_from(
    [
        "The root cause was that `parse_date` returned None.",
        "Fixed `src/app.ts` because tests failed.",
        "Let me look.",
        "- **`lib/x.py`**: added `retry` with 3 attempts",
        "| file | change |\n|---|---|\n| `a.py` | renamed |",
        "```\ncode()\n```",
        "Always keep `a.py` and `b.py` in sync!",
        "日本語の説明です。次の文。",
        "x" * 500,
        "# Heading",
        "1. **Step** — did `this` (really)",
        "git commit",
        "→ ( [ “ ** `",
        "Please don't use tabs, I prefer blanks.",
    ]
)
TEXTS = st.lists(WORDS | st.text(max_size=60), max_size=6).map("\n".join)


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    """Generate exchanges of any shape with hostile and ordinary text."""
    script = Script()
    for _ in range(draw(st.integers(0, 8))):
        text = draw(TEXTS)
        match draw(st.integers(0, 8)):
            case 0:
                script.asked(text)
            case 1:
                script.edited(draw(st.sampled_from(["src/a.py", "tests/test_a.py", "b.md"])))
            case 2:
                script.ran(f"git commit -m '{text}'", failed=draw(st.booleans()))
            case 3:
                script.ran(f"npm test {text}", text, failed=draw(st.booleans()))
            case 4:
                script.chose((text, "yes"), ("Which?", text))
            case 5:
                script.objected(text)
            case 6:
                script.planned(text, rejected=draw(st.booleans()))
            case 7:
                script.read(f"{CWD}/src/c.py")
            case _:
                script.said(text)
    return script.exchange


@given(exchanges())
def test_invariants_hold_for_any_exchange(exchange: Exchange) -> None:
    """For any exchange, extraction is deterministic, quotes occur in the source, and observations have titles and
    bounded sizes.
    """
    found = observe(exchange, session()).observations

    assert found == observe(exchange, session()).observations
    for observation in found:
        assert observation.title.strip()
        assert len(observation.title) <= TITLE_MAX + 2
        assert "\n" not in observation.title + observation.subtitle + observation.narrative
        assert len(observation.narrative) + sum(map(len, observation.facts)) <= 2000
        assert len(observation.facts) <= len(observation.evidence)
        assert observation.extractor == VERSION
        assert {f"{CWD}/{path}" for path in observation.files_modified} <= set(exchange.writes)
        assert_proven(observation, exchange)


@given(exchanges())
def test_changes_are_covered(exchange: Exchange) -> None:
    """The observations of an exchange list each file that it changed, unless it states nothing about the change."""
    found = observe(exchange, session()).observations
    listed = {path for observation in found for path in observation.files_modified}

    assert listed in ({path.removeprefix(f"{CWD}/") for path in exchange.writes}, set())
    titled = any(headline(commit.subject) for commit in accepted_commits(exchange))
    assert listed or not (exchange.writes and titled)


def assert_proven(observation: Observation, exchange: Exchange) -> None:
    """Check that each quote occurs on its line, and that human origin is based only on turns of the user."""
    for proof in observation.evidence:
        holders = [turn for turn in exchange.turns if turn.line == proof.start_line and proof.quote in turn.text]
        assert proof.quote
        assert holders, proof
        if observation.origin == "human":
            assert any(turn.speaker is Speaker.HUMAN for turn in holders)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no real transcripts here")
def test_real_exchanges_are_covered_and_proven() -> None:
    """In real transcripts most exchanges with a change are covered, and every quote occurs in the source."""
    seen = changed = covered = 0
    for read, exchange in real_exchanges(SAMPLES):
        found = observe(exchange, read).observations
        changed += bool(exchange.writes)
        covered += bool(exchange.writes and found)
        for observation in found:
            assert_proven(observation, exchange)
            seen += 1
    assert seen > 50
    assert covered >= 0.7 * changed


SESSIONS = SHARED / "bench" / "coding-sessions"


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="no benchmark here")
def test_files_that_are_asked_for_are_known(tmp_path: Path) -> None:
    """Observations list at least 85 % of the files named in questions about code, and cover 85 % of the changes."""
    with tarfile.open(SESSIONS / "transcripts.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    known: dict[str, set[str]] = defaultdict(set)
    changed = covered = 0
    for read, exchange in real_exchanges(tmp_path):
        found = observe(exchange, read).observations
        changed += bool(exchange.writes)
        covered += bool(exchange.writes and found)
        for observation in found:
            known[read.native_id].update(observation.files_read, observation.files_modified)

    assert covered >= 0.85 * changed
    questions = [orjson.loads(line) for line in (SESSIONS / "queries.jsonl").read_bytes().splitlines()]
    named = [(question["session"], question["path"]) for question in questions if question.get("path")]

    assert sum(path in known[native] for native, path in named) >= 0.85 * len(named)
