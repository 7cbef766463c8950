"""Tests of Theo's trace tools over a client, with a git repository and an archive."""

import shutil
from pathlib import Path

import pytest

from ...observe.traces.working import Working
from .client import Agent
from .page import misses

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

RECORD = {
    "version": str,
    "id": str,
    "timestamp": str,
    "vcs": {"type": str, "revision": str},
    "tool": {"name": str, "version": str},
    "files": [
        {
            "path": str,
            "conversations": [
                {"url": str, "contributor": {"type": str}, "ranges": [{"start_line": int, "end_line": int}]}
            ],
        }
    ],
}


def test_a_line_is_traced_to_its_conversation(tmp_path: Path) -> None:
    """Attributed, unattributed and uncommitted lines get different answers."""
    working = Working(tmp_path)
    working.type("a.py", "# typed by hand\n")
    working.commit()
    file = working.edit("some-session", "a.py", "# typed by hand\n", "# typed by hand\nprice = net * rate\n")
    commit = working.commit()
    file.write_text(f"{file.read_text()}later = True\n")
    working.traces()
    theo = Agent(tmp_path / "palaver")
    whole, one, by_hand, fresh = (
        theo.data("trace_query", file=str(file), **more) for more in ({}, {"line": 2}, {"line": 1}, {"line": 3})
    )

    assert misses(RECORD, whole["trace"]) == []
    assert whole["trace"] == one["trace"] == theo.data("trace_list")["traces"][0]
    assert (whole["commit"], whole["certainty"]) == (commit, "certain")
    assert whole["trace"]["files"][0]["conversations"][0]["url"] == "session:some-session"
    assert whole["lines"] == {"total": 3, "uncommitted": 1, "certain": 1, "likely": 0, "possible": 0, "none": 2}
    assert whole["message"] == "Agents wrote 1 of 3 lines; 1 line not committed yet"
    assert (by_hand["trace"], by_hand["certainty"], by_hand["message"]) == (None, "none", "No AI attribution found")
    assert fresh["message"] == "No AI attribution found; 1 line not committed yet"
    assert (fresh["commit"], fresh["lines"]["uncommitted"], fresh["commits"][0]["committed"]) == (None, 1, False)
    assert theo.data("trace_list", conversation_url="session:nobody") == {"traces": [], "total": 0}
    assert theo.data("trace_list", conversation_url="session:some-session", limit=1)["total"] == 1


def test_the_total_of_traces_counts_all(tmp_path: Path) -> None:
    """`total` counts all traces, regardless of the limit."""
    working = Working(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        working.write(f"talk-{name}", name, "price = net * rate\n")
        working.commit()
    working.traces()
    listed = Agent(tmp_path / "palaver").data("trace_list", limit=2)

    assert (len(listed["traces"]), listed["total"]) == (2, 3)
