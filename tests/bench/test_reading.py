"""Tests of the counts of what was read from transcripts."""

from pathlib import Path

from bench.reading import Counts, differences, read, totals
from palaver.core.home import Home

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, progress, result, tool, user

SESSION = "0d9f1c1e-0000-4000-8000-000000000001"


def test_counts_of_a_session_and_its_subagent(tmp_path: Path) -> None:
    """Prompts, calls and written files are counted for each session. A sub-agent is named with its parent."""
    edit = tool("Edit", {"file_path": "/a.py", "old_string": "1", "new_string": "2"})
    records = [user("Change it", sessionId=SESSION), assistant(edit), result("done")]
    records.append(progress(user("Look around"), agent="a1"))
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / f"{SESSION}.jsonl").write_bytes(jsonl(records))

    assert read([folder], Home(tmp_path / "home")) == {
        f"claude-code {SESSION}": Counts(sessions=1, exchanges=1, typed=1, calls=1, edits=1),
        f"claude-code agent-a1 in {SESSION}": Counts(sessions=1, subagents=1, exchanges=1),
    }


def test_only_sessions_with_other_counts_are_listed() -> None:
    """The table shows the earlier sum in parentheses, and each different session has a line."""
    before, now = {"a": Counts(calls=1), "b": Counts(calls=2)}, {"a": Counts(calls=1), "b": Counts(calls=3)}

    assert differences("set", before, now) == ["set: b: calls 2 -> 3"]
    assert "4 (3)" in totals({"set": now}, {"set": before})
