"""The queue of ended sessions accepts any bytes, and returns each transcript once."""

import json
from pathlib import Path

import pytest

from palaver.archiver.ingest.ended_sessions import has_ended_sessions, take_ended_sessions
from palaver.core.home import Home


@pytest.fixture
def queue(tmp_path: Path) -> Home:
    home = Home(tmp_path / "palaver")
    home.make()
    return home


def test_transcripts_are_taken_once(queue: Home, tmp_path: Path) -> None:
    """Existing transcripts are returned once, in order, and the queue is empty afterwards."""
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    for path in (one, other):
        path.touch()
    paths = [one, other, one, tmp_path / "gone.jsonl", "relative.jsonl", "", 7, "/a\0b"]
    lines = [json.dumps({"transcript_path": path}, default=str) for path in paths]
    queue.ended_sessions.write_bytes(b"\n".join([b"\xff\xfe", b"[]", b"{", *map(str.encode, lines)]))

    assert has_ended_sessions(queue)
    assert take_ended_sessions(queue) == [one, other]
    assert not has_ended_sessions(queue)
    assert take_ended_sessions(queue) == []
    assert [path.name for path in queue.root.iterdir()] == []


def test_a_long_queue_is_dropped(queue: Home, tmp_path: Path) -> None:
    """A queue that is longer than its limit is dropped, because a scan finds the transcripts as well."""
    path = tmp_path / "one.jsonl"
    path.touch()
    queue.ended_sessions.write_text((json.dumps({"transcript_path": str(path)}) + "\n") * 40_000)

    assert take_ended_sessions(queue) == []
    assert not has_ended_sessions(queue)
