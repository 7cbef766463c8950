"""Transcripts: those of this user, or those that were named, each with the name of its copy."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.transcripts import DEMO, in_paths, of_this_user
from palaver.core.errors import SourceUnreadable

from .formats.claude import SESSION, said, written

OTHER = written([{"type": "session_meta", "payload": {"id": "x"}}])


def put(path: Path, data: bytes = written([said("hello", sessionId=SESSION, uuid="u", cwd="/w")])) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_all_of_this_users_transcripts_are_found(home: Path) -> None:
    """Sessions and sub-agents, with names that tell agent, project and session."""
    projects = home / ".claude" / "projects"
    session = put(projects / "-work-shop" / f"{SESSION}.jsonl")
    agent = put(projects / "-work-shop" / SESSION / "subagents" / "agent-1.jsonl")
    put(projects / "-work-shop" / "notes.txt")
    found = of_this_user()

    assert {each.path: each.archived for each in found} == {
        session: f"claude-code/-work-shop/{SESSION}.jsonl",
        agent: f"claude-code/-work-shop/{SESSION}/subagents/agent-1.jsonl",
    }
    assert {each.format.agent for each in found} == {"claude-code"}


def test_without_any_agent_there_is_nothing() -> None:
    """A new user has no transcripts, and that is no error."""
    assert of_this_user() == []


def test_a_folder_gives_the_same_names_as_the_users_own(home: Path) -> None:
    """Whether a folder is found or named, a session's copy has one name."""
    put(home / ".claude" / "projects" / "-work-shop" / f"{SESSION}.jsonl")
    names = [each.archived for each in of_this_user()]

    for named in (home, home / ".claude", home / ".claude" / "projects", home / ".claude" / "projects" / "-work-shop"):
        assert [each.archived for each in in_paths([named])] == names


def test_a_file_can_be_named(tmp_path: Path) -> None:
    """It is recognised by its content, whatever its name."""
    path = put(tmp_path / "shop" / "talk.txt")
    (found,) = in_paths([path])

    assert (found.path, found.archived) == (path, "claude-code/shop/talk.txt")


def test_a_path_is_the_same_however_it_is_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths, detours and links lead to one path."""
    path = put(tmp_path / "shop" / f"{SESSION}.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    spellings = [
        Path("shop"),
        Path("shop") / path.name,
        Path("shop/../shop"),
        tmp_path / "link",
        Path("link") / path.name,
    ]

    assert {each.path for each in in_paths(spellings)} == {path.resolve()}


def test_files_of_other_agents_are_passed_over(tmp_path: Path) -> None:
    """In a folder of many things only what may be a transcript of a known agent is taken."""
    put(tmp_path / "mixed" / "one.jsonl")
    put(tmp_path / "mixed" / "data.json", b"{}")

    assert [each.path.name for each in in_paths([tmp_path / "mixed"])] == ["one.jsonl"]


def test_what_cannot_be_recognised_yet_is_taken(tmp_path: Path) -> None:
    """A transcript may still be empty, or begin with a line longer than what is looked at."""
    put(tmp_path / "shop" / "empty.jsonl", b"")
    put(tmp_path / "shop" / "long.jsonl", written([said("x" * 300_000, sessionId=SESSION, uuid="u")]))

    assert [each.path.name for each in in_paths([tmp_path / "shop"])] == ["empty.jsonl", "long.jsonl"]


def refusal(path: Path) -> SourceUnreadable:
    with pytest.raises(SourceUnreadable) as refused:
        in_paths([path])
    assert refused.value.path == path
    assert refused.value.hint
    return refused.value


def test_a_path_without_transcripts_is_refused(tmp_path: Path) -> None:
    """Nothing there, an empty folder, or a file of something else: each is told apart."""
    (tmp_path / "empty").mkdir()

    assert refusal(tmp_path / "missing").reason == "No such file or directory"
    assert refusal(tmp_path / "empty").reason == "no transcripts here"
    assert refusal(put(tmp_path / "file.jsonl", b"not json\n")).reason == "not a transcript of a known agent"
    assert refusal(put(tmp_path / "other.jsonl", OTHER)).reason == "not a transcript of a known agent"
    assert "claude-code" in refusal(tmp_path / "empty").hint


def test_a_folder_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for an empty one."""
    folder = put(tmp_path / "shop" / "one.jsonl").parent
    listed = Path.iterdir

    def refuse(path: Path) -> Any:
        if path == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)

    assert refusal(folder).reason == "permission denied"


def test_one_bad_path_is_enough(tmp_path: Path) -> None:
    """A person who names several hears of the one that is wrong before anything is done."""
    good = put(tmp_path / "shop" / "one.jsonl")
    with pytest.raises(SourceUnreadable):
        in_paths([good, tmp_path / "missing"])


def test_the_bundled_history_is_one() -> None:
    """What is shown to people without a history is read like any other."""
    found = in_paths([DEMO])

    assert len(found) > 1
    assert all(each.archived.startswith("claude-code/") for each in found)
