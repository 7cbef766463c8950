"""Crush's databases: parts of messages, sub-agents, and the projects that Crush lists."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.crush import Crush
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from ..container_files import contents, database, events, turns
from ..reading import notes, unaccounted

FORMAT = Crush()
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
    message_count INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL,
    updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL,
    model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
    is_summary_message INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL);
"""
AT = 1_772_359_200


def session(name: str, parent: str | None = None, title: str = "Login") -> tuple[str, tuple[object, ...]]:
    values = (name, parent, title, 1, 2, 3, 0.1, AT + 9, AT, None, None)
    return f"INSERT INTO sessions VALUES ({','.join('?' * 11)})", values


def message(name: str, role: str, *parts: tuple[str, dict[str, Any]], summary: int = 0, owner: str = "s1") -> Any:
    data = json.dumps([{"type": kind, "data": value} for kind, value in parts])
    values = (name, owner, role, data, "m", AT, AT, None, "p", summary)
    return f"INSERT INTO messages VALUES ({','.join('?' * 10)})", values


def project(folder: Path, *rows: Any) -> Path:
    path = folder / ".crush" / "crush.db"
    database(path, SCHEMA, rows).close()
    return path


def test_a_session_is_read_part_by_part(tmp_path: Path) -> None:
    """Messages of one second are in the order in which they were stored."""
    path = project(
        tmp_path,
        session("s1"),
        message("m2", "user", ("text", {"text": "Fix the login"}), ("binary", {"Path": "a.png", "Data": "AAAA"})),
        message(
            "m1",
            "assistant",
            ("reasoning", {"thinking": "Hm"}),
            ("text", {"text": "I look."}),
            ("tool_call", {"id": "c1", "name": "view", "input": '{"file_path": "a.py"}', "finished": True}),
            ("finish", {"reason": "tool_use", "time": AT}),
        ),
        message("m0", "tool", ("tool_result", {"tool_call_id": "c1", "content": "x = 1", "is_error": False})),
        message("m4", "assistant", ("finish", {"reason": "error", "message": "API Error", "details": "no credit"})),
        message("m5", "assistant", ("text", {"text": "The login was fixed."}), summary=1),
    )

    assert turns(FORMAT, path) == {
        ".crush/s1.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Fix the login\n[file a.png]"),
            (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
            (Speaker.ASSISTANT, Kind.PROSE, "I look."),
            (Speaker.ASSISTANT, Kind.CALL, "view: file_path=a.py"),
            (Speaker.TOOL, Kind.RESULT, "a.py"),
            (Speaker.HOST, Kind.INJECTED, "API Error: no credit"),
            (Speaker.HOST, Kind.COMPACTION, "The login was fixed."),
        ]
    }


def test_a_shell_command_of_the_user_is_the_users(tmp_path: Path) -> None:
    """A command that begins with an exclamation mark has its output."""
    shell = ("shell_command", {"command": "ls", "output": "no", "exit_code": 1})
    path = project(tmp_path, session("s1"), message("m1", "user", shell))

    assert turns(FORMAT, path)[".crush/s1.jsonl"] == [
        (Speaker.HUMAN, Kind.CALL, "! ls"),
        (Speaker.TOOL, Kind.RESULT, "no"),
    ]


def test_the_programs_request_for_instructions_is_no_prompt(tmp_path: Path) -> None:
    """The text with which Crush asks for a file of instructions was not typed."""
    asked = "`Please analyze this codebase and create a **CRUSH.md** file containing: build commands"
    path = project(tmp_path, session("s1"), message("m1", "user", ("text", {"text": asked})))

    assert turns(FORMAT, path)[".crush/s1.jsonl"] == [(Speaker.HOST, Kind.INJECTED, asked)]


def test_a_sub_agent_belongs_to_its_call(tmp_path: Path) -> None:
    """A sub-agent's session follows its parent's, and its prompt is not the user's."""
    call = ("tool_call", {"id": "c1", "name": "agent", "input": '{"prompt": "Look"}', "finished": True})
    path = project(
        tmp_path,
        session("m1$$c1", parent="s1", title="Look"),
        session("s1"),
        message("m1", "assistant", call),
        message("m2", "user", ("text", {"text": "Look"}), owner="m1$$c1"),
    )
    parent, child = contents(FORMAT, path).values()
    known = FORMAT.identify(path, child)

    assert notes(events(FORMAT, parent), Fact.SUBAGENT) == [(2, "c1"), (2, "m1$$c1")]
    assert (known.native_id, known.kind, known.parent_id) == ("m1$$c1", SessionKind.SUBAGENT, "s1")
    assert turns(FORMAT, path)[".crush/m1$$c1.jsonl"] == [(Speaker.HOST, Kind.PROMPT, "Look")]


def test_a_session_has_title_time_model_and_folder(tmp_path: Path) -> None:
    """The folder is that of the project. A placeholder is no title."""
    path = project(tmp_path, session("s1"), session("s2", title="New Session"), message("m1", "assistant"))
    first, second = (events(FORMAT, data) for data in contents(FORMAT, path).values())

    assert [notes(first, fact)[0][1] for fact in (Fact.TITLE, Fact.MODEL, Fact.CWD)] == ["Login", "m", str(tmp_path)]
    assert notes(second, Fact.TITLE) == []
    assert [each.changed_at for each in FORMAT.sessions(path)] == [(AT + 9) * 1000] * 2


def test_growing_sessions_are_only_appended_to(tmp_path: Path) -> None:
    """Counts and times of changes are not copied, so that earlier lines stay as they are."""
    path = project(tmp_path, session("s1"), message("m1", "user", ("text", {"text": "Hi"})))
    before = contents(FORMAT, path)[".crush/s1.jsonl"]
    later = message("m2", "assistant", ("text", {"text": "Hi!"}))
    database(path, "UPDATE sessions SET message_count = 2, updated_at = 3, cost = 1", [later]).close()
    after = contents(FORMAT, path)[".crush/s1.jsonl"]

    assert after.startswith(before)
    assert len(after) > len(before)
    assert unaccounted(FORMAT, after) == {}


def test_listed_projects_are_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crush lists the data folder of each project, which can be outside the project."""
    path = project(tmp_path / "shop", session("s1"))
    listed = {"path": "/code/elsewhere", "data_dir": str(path.parent)}
    data = home / ".local" / "share" / "crush"
    data.mkdir(parents=True)
    (data / "projects.json").write_text(json.dumps({"projects": [listed, {"path": "x", "data_dir": ".crush"}, 3]}))

    assert list(FORMAT.containers()) == [path]
    assert b'"folder":"/code/elsewhere"' in contents(FORMAT, path)[".crush/s1.jsonl"]
    monkeypatch.setenv("CRUSH_GLOBAL_DATA", str(tmp_path))
    assert list(FORMAT.containers()) == []


def test_unknown_columns_are_reported(tmp_path: Path) -> None:
    """A database of a newer version is read, and its new columns are named."""
    path = project(tmp_path, session("s1"), message("m1", "user", ("text", {"text": "Hi"})))
    database(path, "ALTER TABLE messages ADD COLUMN mood TEXT").close()

    assert len(list(FORMAT.sessions(path))) == 1
    assert FORMAT.unknown_parts(path) == ["table messages has the unknown columns mood"]
