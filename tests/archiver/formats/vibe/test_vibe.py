"""Sessions of Mistral Vibe: messages, descriptions of sessions, sub-agents, and documents of older versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.vibe import FORMAT
from palaver.archiver.lines import opened
from palaver.core.conversation import Kind, SessionKind, Speaker, Turn

from .. import reading
from ..reading import unaccounted

SESSION, PARENT = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
ABOUT = {
    "session_id": SESSION,
    "parent_session_id": None,
    "start_time": "2026-03-01T10:00:00+00:00",
    "end_time": "2026-03-01T10:05:00+00:00",
    "git_branch": "main",
    "environment": {"working_directory": "/home/demo/shop"},
    "title": "Login",
    "config": {"active_model": "m"},
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "index": 0, "function": {"name": name, "arguments": json.dumps(arguments)}, "type": "function"}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, *records)]


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Fix the login", "message_id": "m1"},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm",
        "tool_calls": [call("read", file_path="a.py")],
    },
    {"role": "tool", "content": "x = 1", "name": "read", "tool_call_id": "c1"},
    {"role": "assistant", "content": "Done.", "message_id": "m2"},
]
TURNS = [
    (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
    (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
    (Speaker.ASSISTANT, Kind.PROSE, "I look."),
    (Speaker.ASSISTANT, Kind.CALL, "read: file_path=a.py"),
    (Speaker.TOOL, Kind.RESULT, "a.py"),
    (Speaker.ASSISTANT, Kind.PROSE, "Done."),
]


def folder(root: Path, name: str, about: object) -> Path:
    path = root / name / "messages.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(reading.jsonl(MESSAGES))
    (path.parent / "meta.json").write_text(json.dumps(about))
    return path


def test_a_session_is_read_message_by_message() -> None:
    """A reply has reasoning, text and calls, and results follow as messages."""
    assert summary(*MESSAGES) == TURNS


def test_text_of_the_program_is_not_the_users() -> None:
    """The program marks text that it added in the user's name."""
    assert summary({"role": "user", "content": "The plan changed.", "injected": True}) == [
        (Speaker.HOST, Kind.INJECTED, "The plan changed.")
    ]


def test_pictures_are_named() -> None:
    """A picture is shown with its name."""
    picture = {"source": {"kind": "file", "path": "/tmp/x"}, "alias": "a.png", "mime_type": "image/png"}

    assert summary({"role": "user", "content": "What is it?", "images": [picture]}) == [
        (Speaker.HUMAN, Kind.PROMPT, "What is it?\n[a.png]")
    ]


@pytest.mark.parametrize(
    ("tag", "failed"), [("tool_error", True), ("user_cancellation", True), ("vibe_warning", False)]
)
def test_errors_are_in_a_tag(tag: str, *, failed: bool) -> None:
    """The tag is not part of the result."""
    [result] = reading.turns(FORMAT, {"role": "tool", "content": f"<{tag}>no</{tag}>", "name": "bash"})

    assert (result.text, result.failed, result.tool) == ("no", failed, "bash")


def test_the_file_beside_the_messages_describes_the_session(tmp_path: Path) -> None:
    """A session has folder, branch, title, model and times. A copied session names its origin."""
    known = FORMAT.identify(folder(tmp_path, "session_1", {**ABOUT, "parent_session_id": PARENT}), b"")

    assert (known.native_id, known.parent_id, known.kind) == (SESSION, PARENT, SessionKind.MAIN)
    assert (known.cwd, known.branch, known.title, known.models) == ("/home/demo/shop", "main", "Login", ["m"])
    assert (known.started, known.ended) == (1772359200000, 1772359500000)
    found = FORMAT.reader(known).read(reading.lines(reading.jsonl(MESSAGES)))
    assert {turn.at for turn in found if isinstance(turn, Turn)} == {known.started}


def test_a_sub_agent_is_in_the_folder_of_its_parent(tmp_path: Path) -> None:
    """The task of a sub-agent is not the user's."""
    above = folder(tmp_path, "session_1", {**ABOUT, "session_id": PARENT})
    path = folder(above.parent / "agents", "session_2", ABOUT)
    known = FORMAT.identify(path, b"")
    found = list(FORMAT.reader(known).read(reading.lines(path.read_bytes())))

    assert (known.native_id, known.parent_id, known.kind) == (SESSION, PARENT, SessionKind.SUBAGENT)
    assert getattr(found[0], "speaker", None) is Speaker.HOST


def test_documents_of_older_versions_are_read(tmp_path: Path) -> None:
    """Before version 2.0, a session was one document."""
    path = tmp_path / "session_20260101_100000_abc.json"
    path.write_text(json.dumps({"metadata": {**ABOUT, "title": None}, "messages": MESSAGES}))
    with opened(path) as file:
        data = file.read()
    known = FORMAT.identify(path, data)
    found = list(FORMAT.reader(known).read(reading.lines(data)))

    assert (known.native_id, known.cwd) == (SESSION, "/home/demo/shop")
    assert [(turn.speaker, turn.kind, turn.text) for turn in found if isinstance(turn, Turn)] == TURNS
    assert unaccounted(FORMAT, data) == {}


def test_sessions_are_found(home: Path) -> None:
    """Descriptions are no sessions."""
    root = home / ".vibe" / "logs" / "session"
    path = folder(root, "session_1", ABOUT)
    child = folder(path.parent / "agents", "session_2", ABOUT)
    (root / "session_0.json").write_text("{}")

    assert [path for root in FORMAT.roots() for path in FORMAT.transcripts(root)] == [
        root / "session_0.json",
        child,
        path,
    ]
