"""Trae: conversations and prompts in the databases of the editor, and trajectories of Trae Agent."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.registry import by_agent, recognise
from palaver.archiver.formats.trae import Trae
from palaver.archiver.lines import opened
from palaver.core.conversation import Fact, Kind, Speaker

from ..container_files import contents, database, events, turn_tuples, turns
from ..reading import notes

KNOWN = Trae()
MESSAGES = [
    {"id": "m1", "role": "user", "content": "Fix the login", "timestamp": 1772359200000},
    {
        "id": "m2",
        "role": "assistant",
        "content": "Done.",
        "timestamp": 1772359201000,
        "agentTaskContent": {
            "guideline": {
                "planItems": [
                    {"thought": "Hm", "toolName": "view_file", "params": {"file_path": "a.py"}, "result": "x"},
                    "I look.",
                ]
            }
        },
    },
]


def store(home: Path, values: dict[str, Any], product: str = "Trae CN") -> Path:
    """Create the database of a workspace, and return its path."""
    folder = home / ".config" / product / "User" / "workspaceStorage" / "w1"
    path = folder / "state.vscdb"
    rows = [("INSERT INTO ItemTable VALUES (?, ?)", (key, json.dumps(value))) for key, value in values.items()]
    database(path, "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)", rows).close()
    (folder / "workspace.json").write_text('{"folder": "file:///home/demo/my%20shop"}')
    return path


def test_a_conversation_of_the_editor_is_read(home: Path) -> None:
    """The workspace has the folder. A plan has thoughts, calls and texts."""
    path = store(home, {"memento/icube-ai-agent-storage": {"list": [{"sessionId": "s1", "messages": MESSAGES}]}})

    assert list(KNOWN.containers()) == [path]
    assert turns(KNOWN, path) == {
        "w1/s1.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
            (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
            (Speaker.ASSISTANT, Kind.CALL, "view_file: file_path=a.py"),
            (Speaker.TOOL, Kind.RESULT, "a.py"),
            (Speaker.ASSISTANT, Kind.PROSE, "I look."),
            (Speaker.ASSISTANT, Kind.PROSE, "Done."),
        ]
    }
    [data] = contents(KNOWN, path).values()
    assert KNOWN.identify(Path("x"), data).cwd == "/home/demo/my shop"


def test_prompts_remain_if_the_conversations_are_encrypted(home: Path) -> None:
    """The same prompt twice is two prompts. A readable conversation contains the prompts already."""
    inputs = [{"inputText": "Fix the login"}, {"inputText": "Go on"}, {"inputText": "Go on"}]
    path = store(home, {"icube-ai-agent-storage-input-history": inputs, "memento/icube-ai-agent-storage": {"list": []}})

    assert turns(KNOWN, path) == {
        "w1/prompts-w1.jsonl": [(Speaker.HUMAN, Kind.PROMPT, text) for text in ("Fix the login", "Go on", "Go on")]
    }


def test_databases_of_other_editors_are_no_containers(tmp_path: Path) -> None:
    """Every editor of this kind has a database of this name."""
    path = tmp_path / "Code" / "User" / "globalStorage" / "state.vscdb"
    database(path, "CREATE TABLE ItemTable (key TEXT, value BLOB)").close()

    assert not KNOWN.is_container(path)


def test_a_trajectory_of_trae_agent_is_read(tmp_path: Path) -> None:
    """A run is one document. Its time has no zone, so it is local."""
    usage = {"input_tokens": 5, "output_tokens": 2}
    run: dict[str, Any] = {
        "task": "Fix the login",
        "start_time": "2026-03-01T10:00:00.000000",
        "provider": "p",
        "model": "m",
        "max_steps": 9,
        "llm_interactions": [
            {
                "timestamp": "2026-03-01T10:00:01",
                "input_messages": [],
                "response": {"content": "I run.", "usage": usage},
            }
        ],
        "agent_steps": [
            {
                "step_number": 1,
                "timestamp": "2026-03-01T10:00:02",
                "llm_response": {"content": "I run."},
                "tool_calls": [{"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}}],
                "tool_results": [{"call_id": "c1", "success": False, "error": "no"}],
            }
        ],
    }
    path = tmp_path / "trajectory_20260301_100000.json"
    path.write_text(json.dumps(run, indent=2))
    with opened(path) as file:
        data = file.read()
    found = events(KNOWN, data, path)

    assert recognise(data) == by_agent("trae")
    assert KNOWN.identify(path, data).native_id == "trajectory_20260301_100000@2026-03-01T10:00:00.000000"
    assert turn_tuples(found) == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.PROSE, "I run."),
        (Speaker.ASSISTANT, Kind.CALL, "bash: ls"),
        (Speaker.TOOL, Kind.RESULT, "no"),
    ]
    assert [value.partition(" ")[2] for _, value in notes(found, Fact.USAGE)] == ["5 2"]
