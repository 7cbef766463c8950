"""OpenHands: folders of conversations, sub-agents, branches, and the events of early versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.openhands import OpenHands
from palaver.archiver.formats.registry import by_agent, recognise
from palaver.archiver.lines import opened
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from ..container_files import contents, events, turn_tuples, turns
from ..reading import jsonl, notes

KNOWN = OpenHands()
ID = "0c4f6a1e-0000-4000-8000-00000000000a"
CHILD = "0c4f6a1e-0000-4000-8000-00000000000b"


def said(number: int, source: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return an event with a message."""
    message = {"role": "user" if source == "user" else "assistant", "content": [{"type": "text", "text": text}]}
    at = f"2026-03-01T10:00:{number:02}.000000"
    event = {"kind": "MessageEvent", "id": f"e{number}", "timestamp": at, "source": source, "llm_message": message}
    return {**event, **fields}


def store(folder: Path, *written: dict[str, Any], own_id: str = ID, **state: Any) -> Path:
    """Write a conversation, and return the path of its state."""
    (folder / "events").mkdir(parents=True)
    for number, event in enumerate(written):
        (folder / "events" / f"event-{number:05}-{event['id']}.json").write_text(json.dumps(event))
    path = folder / "base_state.json"
    path.write_text(json.dumps({"id": own_id, "workspace": {"working_dir": "/home/demo/shop"}, **state}))
    return path


def test_a_conversation_is_read_from_its_events(home: Path) -> None:
    """Events are read in the order of their numbers. The state has the folder and the token counts."""
    counts = {"model": "m", "prompt_tokens": 9, "completion_tokens": 2, "response_id": "r1"}
    stats = {"usage_to_metrics": {"agent": {"token_usages": [counts]}}}
    messages = [said(number, "user" if number % 2 == 0 else "agent", f"Text {number}") for number in range(12)]
    path = store(home / ".openhands" / "conversations" / ID.replace("-", ""), *messages, stats=stats)

    assert list(KNOWN.containers()) == [path]
    [(name, data)] = contents(KNOWN, path).items()
    session = KNOWN.identify(Path("x"), data)
    found = events(KNOWN, data)
    assert (name, session.native_id, session.cwd) == (f"sessions/{ID.replace('-', '')}.jsonl", ID, "/home/demo/shop")
    assert turns(KNOWN, path)[name] == [
        (
            Speaker.ASSISTANT if number % 2 else Speaker.HUMAN,
            Kind.PROSE if number % 2 else Kind.PROMPT,
            f"Text {number}",
        )
        for number in range(12)
    ]
    assert notes(found, Fact.USAGE) == [(14, "r1 9 2")]


def test_a_new_event_changes_the_state_and_only_the_end(home: Path) -> None:
    """A conversation is only appended to."""
    path = store(home / ".openhands" / "conversations" / "a", said(0, "user", "Fix the login"))
    state, before = KNOWN.container_state(path), contents(KNOWN, path)["sessions/a.jsonl"]
    (path.parent / "events" / "event-00001-e1.json").write_text(json.dumps(said(1, "agent", "Done")))

    assert contents(KNOWN, path)["sessions/a.jsonl"].startswith(before)
    assert KNOWN.container_state(path) != state


def test_a_sub_agent_has_a_folder_below_its_parent(home: Path) -> None:
    """The prompt of a sub-agent was written by its parent."""
    parent = home / ".openhands" / "conversations" / "a"
    store(parent, said(0, "user", "Fix the login"))
    path = store(parent / "subagents" / "b", said(0, "user", "Look"), own_id=CHILD)

    assert path in list(KNOWN.containers())
    [data] = contents(KNOWN, path).values()
    session = KNOWN.identify(Path("x"), data)
    assert (session.native_id, session.kind, session.parent_id) == (CHILD, SessionKind.SUBAGENT, ID)


def test_an_event_with_an_earlier_parent_abandons_a_branch(home: Path) -> None:
    """After a rewind, the lines of the other branch are abandoned."""
    path = store(
        home / ".openhands" / "conversations" / "a",
        said(0, "user", "Fix the login"),
        said(1, "agent", "Done", parent_id="e0"),
        said(2, "user", "Undo it", parent_id="e1"),
        said(3, "user", "Test it", parent_id="e1"),
    )
    [data] = contents(KNOWN, path).values()

    assert notes(events(KNOWN, data), Fact.REWOUND) == [(5, "4")]


@pytest.mark.parametrize(("exit_code", "failed"), [(0, False), (1, True), (-1, False), (None, False)])
def test_the_exit_code_of_a_command_counts(exit_code: int | None, failed: bool) -> None:
    """A command that is still running has the exit code -1."""
    found = {"kind": "TerminalObservation", "content": [{"type": "text", "text": "out"}], "exit_code": exit_code}
    event = {
        "kind": "ObservationEvent",
        "id": "e",
        "source": "environment",
        "observation": found,
        "tool_name": "terminal",
    }
    [result] = events(KNOWN, jsonl([{"id": "event-1", "message": event}]))

    assert (result.text, result.failed) == ("out", failed)  # type: ignore[union-attr]


def test_events_of_early_versions_are_numbered_files(home: Path) -> None:
    """Before version 1.0, an event is an action or an observation. The first file represents the session."""
    folder = home / ".openhands" / "sessions" / "old" / "events"
    folder.mkdir(parents=True)
    at = {"timestamp": "2025-06-01T10:00:00", "source": "agent"}
    written: list[dict[str, Any]] = [
        {"id": 0, **at, "source": "user", "action": "message", "args": {"content": "Fix the login"}},
        {"id": 1, **at, "action": "read", "args": {"path": "a.py", "thought": "I look."}},
        {"id": 2, **at, "observation": "read", "content": "x", "extras": {"path": "a.py"}, "cause": 1},
        {"id": 3, **at, "action": "finish", "args": {"final_thought": "Ready"}},
    ]
    for event in written:
        (folder / f"{event['id']}.json").write_text(json.dumps(event))

    assert [*KNOWN.containers()] == [folder / "0.json"]
    assert turns(KNOWN, folder / "0.json")["sessions/old.jsonl"] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "read: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Ready"),
    ]


def test_a_saved_trajectory_is_a_list_of_events(tmp_path: Path) -> None:
    """`palaver archive FILE` reads it, although no conversation has such a file."""
    event = {"id": 0, "timestamp": "2025-06-01T10:00:00", "source": "user", "action": "message"}
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps([{**event, "args": {"content": "Fix the login"}}], indent=2))
    with opened(path) as file:
        data = file.read()

    assert recognise(data) == by_agent("openhands")
    assert turn_tuples(events(KNOWN, data)) == [(Speaker.HUMAN, Kind.PROMPT, "Fix the login")]
