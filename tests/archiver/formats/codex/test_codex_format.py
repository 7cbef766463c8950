"""Locations and recognition of Codex rollouts."""

from pathlib import Path

import pytest

from palaver.archiver.formats.registry import all_formats, recognise

from ..reading import jsonl
from .codex_lines import CODEX, SESSION, meta


def test_only_rollouts_are_recognised() -> None:
    """Rollouts are recognised. Records of other agents are not."""
    assert [known.agent for known in all_formats() if known.recognises([meta()])] == ["codex"]
    assert recognise(jsonl([{"type": "world_state", "payload": {}}])) is not None
    assert not CODEX.recognises([{"type": "event_msg"}, {"type": "user", "payload": {}}, {}])


def test_rollouts_are_found_in_both_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Current and archived rollouts are found. A compressed duplicate is ignored."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    day = tmp_path / "sessions" / "2026" / "03" / "01"
    archived = tmp_path / "archived_sessions"
    for path in (
        day / "rollout-a.jsonl",
        day / "rollout-a.jsonl.zst",
        day / "rollout-b.jsonl.zst",
        archived / "rollout-c.jsonl",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "history.jsonl").write_bytes(b"")

    names = [CODEX.archive_name(path, root) for root in CODEX.roots() for path in CODEX.transcripts(root)]

    assert names == [
        "2026/03/01/rollout-a.jsonl",
        "2026/03/01/rollout-b.jsonl.zst",
        "archived_sessions/rollout-c.jsonl",
    ]


def test_without_a_header_the_file_name_identifies_the_session() -> None:
    """A file name that ends in a session ID identifies a session without a header."""
    path = Path(f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl.zst")

    assert CODEX.identify(path, b"").native_id == SESSION
    assert CODEX.identify(Path("other.jsonl"), b"").native_id == "other"
