"""Which files are transcripts, and whose."""

from pathlib import Path

import pytest

from palaver.archiver.transcripts import in_paths
from palaver.core.errors import SourceUnreadable

from .formats.claude import said
from .formats.codex import meta
from .formats.reading import written

EVENT = {"type": "session.start", "data": {"sessionId": "s"}, "id": "e1", "parentId": None}
HEADER = {"type": "session", "version": 3, "id": "s", "cwd": "/work"}


def test_in_a_mixed_folder_each_file_belongs_to_the_agent_that_wrote_it(tmp_path: Path) -> None:
    """Files are told by their content, and what nobody recognises is archived once too."""
    contents: dict[str, list[object]] = {
        "a.jsonl": [said("Go", sessionId="s", cwd="/work")],
        "b.jsonl": [meta()],
        "c.jsonl": [EVENT],
        "d.jsonl": [HEADER],
        "e.jsonl": [b"no transcript"],
    }
    for name, records in contents.items():
        (tmp_path / name).write_bytes(written(records))

    found = {each.path.name: each.format.agent for each in in_paths([tmp_path])}

    assert found == {
        "a.jsonl": "claude-code",
        "b.jsonl": "codex",
        "c.jsonl": "copilot",
        "d.jsonl": "pi",
        "e.jsonl": "claude-code",
    }
    assert len(in_paths([tmp_path])) == 5


def test_a_file_that_nobody_recognises_is_refused_when_it_is_named(tmp_path: Path) -> None:
    """The error names the agents that are known."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"no transcript\n")

    with pytest.raises(SourceUnreadable, match="not a transcript of a known agent") as caught:
        in_paths([path])

    assert caught.value.hint == "Known agents: claude-code, codex, copilot, pi."
