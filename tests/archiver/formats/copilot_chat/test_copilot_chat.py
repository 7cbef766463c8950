"""Chats of Visual Studio Code: documents, logs of changes, and exports."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.copilot_chat import CopilotChat
from palaver.core.conversation import Kind, Speaker
from palaver.core.errors import SourceUnreadable

from ..container_files import contents, turns
from ..reading import jsonl

KNOWN = CopilotChat()
REQUEST: dict[str, Any] = {"requestId": "r1", "message": {"text": "Fix the login"}, "response": [{"value": "I look."}]}
CHAT: dict[str, Any] = {"version": 3, "sessionId": "s1", "requests": [REQUEST]}
TALK = [(Speaker.HUMAN, Kind.PROMPT, "Fix the login"), (Speaker.ASSISTANT, Kind.PROSE, "I look.")]


def chats(home: Path) -> Path:
    """Return the folder of the chats of a workspace."""
    workspace = home / ".config" / "Code" / "User" / "workspaceStorage" / "0a1b"
    (workspace / "chatSessions").mkdir(parents=True)
    (workspace / "workspace.json").write_text('{"folder": "file:///home/demo/my%20shop"}')
    return workspace / "chatSessions"


def test_a_document_is_read(home: Path) -> None:
    """The folder of the project is that of the workspace. A chat without questions is no session."""
    folder = chats(home)
    (folder / "s1.json").write_text(json.dumps(CHAT))
    (folder / "s2.json").write_text(json.dumps({"sessionId": "s2", "requests": []}))

    assert [path.name for path in KNOWN.containers()] == ["s1.json", "s2.json"]
    assert turns(KNOWN, folder / "s1.json") == {"0a1b/s1.jsonl": TALK}
    assert turns(KNOWN, folder / "s2.json") == {}
    assert KNOWN.identify(Path("x"), *contents(KNOWN, folder / "s1.json").values()).cwd == "/home/demo/my shop"


def test_a_log_of_changes_is_replayed(home: Path) -> None:
    """Changes set and delete fields, and append to lists. The last line may be unfinished."""
    folder = chats(home)
    log: list[dict[str, Any]] = [
        {"kind": 0, "v": {"version": 3, "sessionId": "s1", "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [REQUEST | {"response": []}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "No."}, {"value": "Wrong"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "i": 1, "v": [{"value": " Right."}]},
        {"kind": 1, "k": ["requests", 0, "response", 0], "v": {"value": "I look."}},
        {"kind": 1, "k": ["customTitle"], "v": "Login"},
        {"kind": 3, "k": ["customTitle"]},
        {"kind": 1, "k": ["nowhere", 7, "x"], "v": 1},
    ]
    (folder / "s1.json").write_text("{}")
    (folder / "s1.jsonl").write_bytes(jsonl(log) + b'{"kind": 1, "k"')

    assert [path.name for path in KNOWN.containers()] == ["s1.jsonl"]
    assert turns(KNOWN, folder / "s1.jsonl") == {"0a1b/s1.jsonl": [TALK[0], (*TALK[1][:2], "I look. Right.")]}
    assert b"Login" not in contents(KNOWN, folder / "s1.jsonl")["0a1b/s1.jsonl"]


def test_a_damaged_log_is_an_error(home: Path) -> None:
    """A damaged line before the last one is not skipped, because later changes depend on it."""
    path = chats(home) / "s1.jsonl"
    path.write_bytes(b'{"kind": 0, "v": {}}\n{"kind"\n{"kind": 1}\n')

    with pytest.raises(SourceUnreadable):
        contents(KNOWN, path)


def test_an_export_is_recognised_by_its_content(tmp_path: Path) -> None:
    """An exported chat can have any name."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"responderUsername": "GitHub Copilot", "requests": [REQUEST]}))

    assert KNOWN.is_container(path)
    assert list(turns(KNOWN, path).values()) == [TALK]
