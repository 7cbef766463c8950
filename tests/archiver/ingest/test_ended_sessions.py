"""The queue of ended sessions accepts any bytes, and returns each transcript once."""

import json
from pathlib import Path

import pytest

from palaver.archiver.ingest.ended_sessions import ended_sessions, has_ended_sessions
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
    given = [one, other, one, tmp_path / "gone.jsonl", "relative.jsonl", "", 7, "/a\0b"]
    lines = [json.dumps({"transcript_path": path}, default=str) for path in given]
    queue.ended_sessions.write_bytes(b"\n".join([b"\xff\xfe", b"[]", b"{", *map(str.encode, lines)]))

    assert has_ended_sessions(queue)
    with ended_sessions(queue) as paths:
        assert paths == [one, other]
    assert not has_ended_sessions(queue)
    with ended_sessions(queue) as paths:
        assert paths == []
    assert [path.name for path in queue.root.iterdir()] == []


def test_a_long_queue_is_dropped(queue: Home, tmp_path: Path) -> None:
    """A queue that is longer than its limit is dropped, because a scan finds the transcripts as well."""
    path = tmp_path / "one.jsonl"
    path.touch()
    queue.ended_sessions.write_text((json.dumps({"transcript_path": str(path)}) + "\n") * 40_000)

    with ended_sessions(queue) as paths:
        assert paths == []
    assert not has_ended_sessions(queue)


def added(home: Home, path: Path) -> Path:
    """Append a transcript to the queue, as the hook does."""
    path.touch()
    with home.ended_sessions.open("a") as queue:
        queue.write(json.dumps({"transcript_path": str(path)}) + "\n")
    return path


def test_transcripts_stay_in_the_queue_after_a_failure(queue: Home, tmp_path: Path) -> None:
    """If the run that archives them fails, the transcripts are returned again, with those added since then."""
    one = added(queue, tmp_path / "one.jsonl")
    with pytest.raises(ZeroDivisionError), ended_sessions(queue):
        raise ZeroDivisionError

    assert has_ended_sessions(queue)
    other = added(queue, tmp_path / "other.jsonl")
    with ended_sessions(queue) as paths:
        assert sorted(paths) == [one, other]
    assert not has_ended_sessions(queue)


def test_two_processes_lose_no_transcript(queue: Home, tmp_path: Path) -> None:
    """A process that takes the queue keeps the transcripts of a process that still archives."""
    one = added(queue, tmp_path / "one.jsonl")
    with ended_sessions(queue) as first:
        other = added(queue, tmp_path / "other.jsonl")
        with ended_sessions(queue) as second:
            assert first == [one]
            assert sorted(second) == [one, other]

    assert not has_ended_sessions(queue)
