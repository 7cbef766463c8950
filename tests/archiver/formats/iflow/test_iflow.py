"""iFlow sessions: calls that several records repeat, and results in the form of Gemini CLI."""

from pathlib import Path
from typing import Any

from palaver.archiver.formats.iflow import Iflow
from palaver.archiver.formats.registry import recognise
from palaver.core.conversation import Kind, SessionKind

from ..reading import events, jsonl, session, skipped, turns

KNOWN = Iflow()
SESSION = "session-5de701fc-0000-4000-8000-000000000001"
CALL = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"absolute_path": "a.py"}}


def record(kind: str, content: object, **fields: Any) -> dict[str, Any]:
    """Return a message of a session."""
    message = {"role": kind, "content": content}
    return {"uuid": "u", "parentUuid": None, "sessionId": SESSION, "type": kind, "message": message, **fields}


def test_a_call_on_several_lines_is_one_turn() -> None:
    """While a reply arrives, later records repeat the calls that still run."""
    made = events(KNOWN, record("user", "Go"), record("assistant", [CALL]), record("assistant", [CALL]))

    assert skipped(made) == [(3, "repeated")]


def test_the_same_call_in_the_next_exchange_is_another_turn() -> None:
    """Repetitions are recognised within one exchange only."""
    made = [record("user", "Go"), record("assistant", [CALL]), record("user", "Again"), record("assistant", [CALL])]

    assert [turn.line for turn in turns(KNOWN, *made) if turn.kind is Kind.CALL] == [2, 4]


def test_a_session_is_none_of_claude_code() -> None:
    """The records have the form of Claude Code, except for the ID of the session."""
    found = recognise(jsonl([record("user", "Go", isSidechain=False)]))

    assert found is not None
    assert found.agent == "iflow"


def test_a_sub_agent_names_its_parent() -> None:
    """The records of a sub-agent have the ID of the session that started it."""
    found = session(KNOWN, jsonl([record("user", "Go", isSidechain=True)]), Path("session-other.jsonl"))

    assert (found.native_id, found.kind, found.parent_id) == ("session-other", SessionKind.SUBAGENT, SESSION)
