"""Transcripts are found in folders and recognised by their content."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from palaver.archiver.formats.registry import all_formats
from palaver.archiver.ingest.ended_sessions import ended_sessions, has_ended_sessions
from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.lines import HEAD_BYTES
from palaver.core.errors import SourceUnreadable
from palaver.core.home import Home
from palaver.core.reports import Unsearched

from ..formats.claude_code.claude_lines import user
from ..formats.codex.codex_lines import meta
from ..formats.reading import jsonl

EVENT = {"type": "session.start", "data": {"sessionId": "s"}, "id": "e1", "parentId": None}
HEADER = {"type": "session", "version": 3, "id": "s", "cwd": "/work"}


def agents(found: Sequence[Transcript]) -> dict[str, str | None]:
    """Return the agent of each file by file name, or None for an unknown file."""
    formats = {each.path.name: each.recognise() for each in found}
    return {name: known.agent if known else None for name, known in formats.items()}


def test_files_of_a_mixed_folder_are_recognised(tmp_path: Path) -> None:
    """Each file of a mixed folder is recognised by its content. Files of unknown agents have no format."""
    contents: dict[str, list[object]] = {
        "a.jsonl": [user("Go", sessionId="s", cwd="/work")],
        "b.jsonl": [meta()],
        "c.jsonl": [EVENT],
        "d.jsonl": [HEADER],
        "e.jsonl": [{"a": 1}],
        "11111111-0000-4000-8000-000000000001.jsonl": [{"a": 1}],
    }
    for name, records in contents.items():
        (tmp_path / name).write_bytes(jsonl(records))

    assert agents(in_paths([tmp_path])) == {
        "a.jsonl": "claude-code",
        "b.jsonl": "codex",
        "c.jsonl": "copilot",
        "d.jsonl": "pi",
        "e.jsonl": None,
        "11111111-0000-4000-8000-000000000001.jsonl": None,
    }
    assert len(in_paths([tmp_path])) == 6


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b'{"type": "us'])
def test_an_empty_file_is_recognised_by_its_name(tmp_path: Path, content: bytes) -> None:
    """An empty or damaged file is recognised if its name is specific to one agent."""
    owners = {
        "11111111-0000-4000-8000-000000000001.jsonl": "claude-code",
        "agent-a1.jsonl": "claude-code",
        "rollout-2026-01-01T00-00-00-1.jsonl": "codex",
        "events.jsonl": "copilot",
        "2026-01-01T00-00-00-000Z_1.jsonl": "pi",
        "notes.jsonl": None,
    }
    for name in owners:
        (tmp_path / name).write_bytes(content)

    assert agents(in_paths([tmp_path])) == owners


@pytest.mark.parametrize("before", [[], [{"type": "unheard-of"}]])
def test_a_very_long_first_line_is_read_to_its_end(tmp_path: Path, before: list[object]) -> None:
    """A file is recognised even if its first line is longer than the usual read size."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl([*before, user("x" * 2 * HEAD_BYTES, sessionId="s", cwd="/work")]))

    assert agents(in_paths([path])) == agents(in_paths([tmp_path])) == {"a.jsonl": "claude-code"}


def test_other_folders_of_an_agent_have_no_transcripts(tmp_path: Path) -> None:
    """A transcript in a folder that its agent uses for other files is not recognised."""
    for folder in ("files", "kept"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_bytes(jsonl([EVENT]))

    found = in_paths([tmp_path])

    assert [each.found.parent.name for each in found if each.recognise()] == ["kept"]


def test_an_unknown_file_is_rejected(tmp_path: Path) -> None:
    """A named file of an unknown agent is refused, and the error lists the known agents."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"no transcript\n")

    with pytest.raises(SourceUnreadable, match="the file is not a transcript of a known agent") as caught:
        in_paths([path])

    assert caught.value.hint == f"Known agents: {', '.join(known.agent for known in all_formats())}."


def test_nothing_in_a_home_is_a_transcript(tmp_path: Path) -> None:
    """A home below a searched folder is skipped. A home or raw copy that is named explicitly is refused."""
    copy = tmp_path / "some" / "home" / "archive" / "claude-code" / "p" / "a.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(jsonl([user("Go", sessionId="s", cwd="/work")]))
    home = tmp_path / "some" / "home"
    (home / "palaver.db").touch()
    (tmp_path / "b.jsonl").write_bytes(copy.read_bytes())
    skipped = Unsearched()

    assert [each.path.name for each in in_paths([tmp_path], skipped)] == ["b.jsonl"]
    assert skipped == Unsearched(homes={home})
    for path in (home, home / "archive", copy):
        with pytest.raises(SourceUnreadable, match="belongs to the Palaver home"):
            in_paths([path])


# The queue of ended sessions accepts any bytes, and returns each transcript once.


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
