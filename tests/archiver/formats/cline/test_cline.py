"""Cline's tasks and sessions: files of the editor, files of the program, and the words of the user."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.cline import Cline
from palaver.core.conversation import Kind, SessionKind, Speaker
from palaver.core.errors import SourceUnreadable

from ..container_files import contents, turns
from ..reading import jsonl, prompts
from ..reading import turns as turns_of

KNOWN = Cline()
TASK = "1772359200000"
SHOWN: list[dict[str, Any]] = [
    {"ts": 1772359200000, "type": "say", "say": "text", "text": "Fix the login"},
    {"ts": 1772359201000, "type": "say", "say": "text", "text": "Done."},
]


def write(path: Path, value: object) -> Path:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def task_folder(home: Path) -> Path:
    """Return the folder of a task in the editor."""
    user = home / ".config" / "Code" / "User"
    return user / "globalStorage" / "saoudrizwan.claude-dev" / "tasks" / TASK


def test_a_task_is_found_in_the_editor(home: Path) -> None:
    """The messages that the user saw are read; the list of tasks has title and folder."""
    folder = task_folder(home)
    shown = write(folder / "ui_messages.json", SHOWN)
    write(folder / "api_conversation_history.json", [{"role": "user", "content": "<task>\nFix the login\n</task>"}])
    write(
        folder.parents[1] / "state" / "taskHistory.json",
        [{"id": TASK, "task": "Login", "cwdOnTaskInitialization": "/shop"}],
    )

    assert list(KNOWN.containers()) == [shown]
    assert turns(KNOWN, shown) == {
        f"sessions/{TASK}.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
            (Speaker.ASSISTANT, Kind.PROSE, "Done."),
        ]
    }
    assert KNOWN.identify(Path("x"), *contents(KNOWN, shown).values()).cwd == "/shop"


def test_without_shown_messages_those_of_the_model_are_read(home: Path) -> None:
    """The program adds details of the environment, and results of tools, to the user's messages."""
    details = "<environment_details>\n# Current Working Directory (/home/demo/shop) Files\n</environment_details>"
    messages = [
        {"role": "user", "content": [{"type": "text", "text": f"<task>\nFix the login\n</task>\n{details}"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}]},
        {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a.py'] Result:\nx = 1"}]},
        {"role": "user", "content": [{"type": "text", "text": "<feedback>\nShorter\n</feedback>"}]},
    ]
    path = write(task_folder(home) / "api_conversation_history.json", messages)

    assert list(KNOWN.containers()) == [path]
    assert turns(KNOWN, path)[f"sessions/{TASK}.jsonl"] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.HOST, Kind.INJECTED, "[read_file for 'a.py'] Result:\nx = 1"),
        (Speaker.HUMAN, Kind.PROMPT, "Shorter"),
    ]


def test_a_session_of_the_program_has_sub_agents(home: Path) -> None:
    """Each agent of a session has its own file; the file of the session describes it."""
    folder = home / ".cline" / "data" / "sessions" / "s1"
    write(folder / "s1.json", {"workspace_root": "/shop", "metadata": {"title": "Login"}})
    messages = [{"id": "m1", "role": "user", "content": [{"type": "text", "text": "Fix the login"}]}]
    for name in ("s1", "agent_2"):
        write(folder / f"{name}.messages.json", {"version": 1, "messages": messages})

    found = [KNOWN.identify(Path("x"), data) for path in KNOWN.containers() for data in contents(KNOWN, path).values()]
    assert [(each.native_id, each.kind, each.parent_id, each.cwd) for each in found] == [
        ("s1-agent_2", SessionKind.SUBAGENT, "s1", "/shop"),
        ("s1", SessionKind.MAIN, "", "/shop"),
    ]


def test_a_file_that_is_being_written_is_read_later(home: Path) -> None:
    """An unfinished file is an error, so that the next run reads it again."""
    path = task_folder(home) / "ui_messages.json"
    path.parent.mkdir(parents=True)
    path.write_text('[{"ts": 1, "type": "say"')

    with pytest.raises(SourceUnreadable, match="still being written"):
        contents(KNOWN, path)


def test_a_change_of_the_task_changes_its_state(home: Path) -> None:
    """Title and folder are in other files than the messages."""
    path = write(task_folder(home) / "ui_messages.json", SHOWN)
    before = KNOWN.container_state(path)
    write(path.with_name("history_item.json"), {"task": "Login"})

    assert KNOWN.container_state(path) != before


def test_feedback_in_a_task_of_another_task_is_the_users() -> None:
    """The prompt of a sub-task is the program's word; feedback is the user's."""
    header = {"id": TASK, "conversation": {"id": TASK, "subagentOf": "0"}}
    feedback = {"ts": 1, "type": "say", "say": "user_feedback", "text": "Shorter"}
    made = [header, {"id": "1", "first": True, "message": SHOWN[0]}, {"id": "2", "message": feedback}]

    assert prompts(KNOWN, *made) == ["Fix the login", "Shorter"]
    assert [turn.speaker for turn in turns_of(KNOWN, *made)] == [Speaker.HOST, Speaker.HUMAN]
    assert KNOWN.identify(Path("x"), jsonl(made)).kind is SessionKind.SUBAGENT


def edit(at: int, path: str) -> dict[str, Any]:
    """Return a message with an edit that the user is asked to allow."""
    call = {"tool": "editedExistingFile", "path": path, "content": "x = 1"}
    return {"ts": at, "type": "ask", "ask": "tool", "text": json.dumps(call)}


def request(at: int, text: str) -> dict[str, Any]:
    """Return a message with the text of a request to the model."""
    return {"ts": at, "type": "say", "say": "api_req_started", "text": json.dumps({"request": text})}


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a task's copy."""
    return contents(KNOWN, path)[f"sessions/{TASK}.jsonl"].splitlines()


def test_a_refused_edit_changes_no_file(home: Path) -> None:
    """The next request to the model contains the refusal. An edit without a refusal changed the file."""
    shown = [
        *SHOWN,
        edit(1772359202000, "a.py"),
        request(1772359203000, "[replace_in_file for 'a.py'] Result:\nThe user denied this operation."),
        edit(1772359204000, "a.py"),
        request(1772359205000, "[replace_in_file for 'a.py'] Result:\nThe content was saved."),
        edit(1772359206000, "b.py"),
        {"ts": 1772359207000, "type": "say", "say": "user_feedback", "text": "Not that file"},
        request(1772359208000, "[write_to_file for 'b.py'] Result:\nThe user denied this operation and said"),
        edit(1772359209000, "c.py"),
    ]
    folder = task_folder(home)
    before = lines_of(write(folder / "ui_messages.json", shown[:-4]))
    lines = lines_of(write(folder / "ui_messages.json", shown))
    rows = list(map(json.loads, lines))
    results = [turn for turn in turns_of(KNOWN, *rows) if turn.kind is Kind.RESULT]

    assert [turn.failed for turn in results] == [True, False, True, False]
    assert [turn.writes for turn in results] == [(), ("a.py",), (), ("c.py",)]
    assert lines[: len(before)] == before  # The copy only grows.


def test_a_refused_call_in_the_messages_of_the_model_failed() -> None:
    """The result of a refused call is a text."""
    call = {"type": "tool_use", "id": "t1", "name": "write_to_file", "input": {"path": "a.py", "content": "x"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "The user denied this operation."}
    rows = [
        {"id": "1", "message": {"role": "assistant", "content": [call]}},
        {"id": "2", "message": {"role": "user", "content": [result]}},
    ]

    assert [(turn.failed, turn.writes) for turn in turns_of(KNOWN, *rows)][-1] == (True, ())
