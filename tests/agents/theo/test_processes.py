"""Tests of Theo's tools with a new process for each call."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from palaver.core.home import Home
from palaver.observe.archive import Archive

from .client import Agent

ROOT = Path(__file__).parents[3]


class Apart:
    """Agent that starts a new process for every call."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call the tool and return its reply."""
        command = [
            sys.executable,
            "-m",
            "tests.agents.theo.once",
            str(self.home),
            name,
            orjson.dumps(arguments).decode(),
        ]
        ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        reply: dict[str, Any] = orjson.loads(ran.stdout)
        assert reply["success"] is True, reply
        data: dict[str, Any] = reply["data"]
        return data

    def outcome(self, memory: str, *, success: bool) -> tuple[float, bool, bool]:
        """Record an outcome and return the confidence and whether the memory was promoted or demoted."""
        reply = self("memory_outcome", memory_id=memory, success=success)
        return reply["new_confidence"], reply["promoted"], reply["demoted"]


def test_six_successes_prove_and_three_failures_demote(theo: Agent) -> None:
    """The confidence rises from 0.3 to 0.9. After approval it is a golden rule until the third failure."""
    memory, apart = theo.store("Run the tests before a commit"), Apart(theo.home)

    rising = [apart.outcome(memory, success=True) for _ in range(6)]
    assert rising == [(share, False, False) for share in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)]
    assert "palaver memories review" in theo.data("memory_outcome", memory_id=memory, success=True)["hint"]
    assert theo.data("memory_count", memory_type="golden_rule")["count"] == 0
    assert theo.data("memory_forget", memory_id=memory)["protected_ids"] == [memory]
    with Archive(Home(theo.home)).memories as core:
        core.feedback.approve(memory)
    assert theo.data("memory_list", memory_type="golden_rule")["memories"][0]["id"] == memory

    falling = [apart.outcome(memory, success=False) for _ in range(3)]
    assert falling == [(0.85, False, False), (0.7, False, False), (0.7, False, True)]
    assert theo.data("memory_list", memory_type="preference")["memories"][0]["id"] == memory
    summary = theo.data("validation_history", memory_id=memory)["summary"]
    assert (summary["success_count"], summary["failure_count"], summary["success_rate"]) == (7, 3, 0.7)


def test_a_fact_is_never_promoted(theo: Agent) -> None:
    """A fact can reach a protected confidence but never becomes a golden rule."""
    fact = theo.store("The project uses PostgreSQL 15", "fact")
    replies = theo.calls(*[("memory_outcome", {"memory_id": fact, "success": True})] * 8)

    assert (replies[-1]["data"]["new_confidence"], replies[-1]["data"]["promoted"]) == (1.0, False)
    assert theo.data("memory_count", memory_type="golden_rule")["count"] == 0
    assert theo.data("memory_forget", query="PostgreSQL")["protected_ids"] == [fact]


def test_a_later_decision_supersedes_an_earlier_one(theo: Agent) -> None:
    """A decision from another process that announces a change supersedes the older decision, which then ranks below
    it.
    """
    older = theo.store("We use Redis for the cache", "decision")
    newer = Apart(theo.home)("memory_store", content="We no longer use Redis for the cache", memory_type="decision")

    assert newer["superseded_ids"] == [older]
    assert newer["relations"][0]["reason"].endswith("(judged by rules)")
    recalled = theo.data("memory_recall", query="Redis cache")["memories"]
    assert [each["id"] for each in recalled] == [newer["id"], older]
    assert recalled[1]["superseded_by"] == [newer["id"]]
