"""Qwen Code sessions: sub-agents, branches and the words of the user."""

from pathlib import Path
from typing import Any

from palaver.archiver.formats.qwen_code import QwenCode
from palaver.archiver.formats.registry import recognise
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from ..reading import events, jsonl, notes, prompts, session, turns

KNOWN = QwenCode()
SESSION = "019f0000-0000-7000-8000-000000000001"


def record(number: int, kind: str, *parts: Any, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    """Return a record with the parts of a message."""
    return {
        "uuid": f"019f0000-0000-7000-8000-{number:012d}",
        "parentUuid": None if parent is None else f"019f0000-0000-7000-8000-{parent:012d}",
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T10:00:{number:02d}.000Z",
        "type": kind,
        "message": {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]},
        **fields,
    }


def test_records_of_a_sub_agent_are_its_own_session() -> None:
    """The parent agent wrote the prompt of a sub-agent."""
    data = jsonl([record(1, "user", "Find it", isSidechain=True, agentId="explore-7f3c")])
    found = session(KNOWN, data, Path("subagents") / SESSION / "agent-explore-7f3c.jsonl")

    assert (found.native_id, found.kind, found.parent_id) == (f"{SESSION}-explore-7f3c", SessionKind.SUBAGENT, SESSION)
    assert turns(KNOWN, record(1, "user", "Find it", isSidechain=True, agentId="x"))[0].speaker is Speaker.HOST


def test_a_rewind_abandons_the_records_after_its_target() -> None:
    """The active branch is the one with the last message."""
    made = events(
        KNOWN,
        record(1, "user", "First"),
        record(2, "assistant", "Wrong", parent=1),
        record(3, "system", parent=1, subtype="rewind", systemPayload={"truncatedCount": 1}),
        record(4, "user", "Second", parent=3),
    )

    assert notes(made, Fact.REWOUND) == [(4, "2")]


def test_only_typed_text_is_a_prompt() -> None:
    """Notices, scheduled prompts and the context of hooks are text of the program."""
    hooked = "<qwen:user-prompt-submit-context>\nBe kind.\n</qwen:user-prompt-submit-context>"

    assert prompts(KNOWN, record(1, "user", "Typed", hooked)) == ["Typed"]
    assert prompts(KNOWN, record(1, "user", "Tick", subtype="cron")) == []
    assert prompts(KNOWN, record(1, "user", "Also typed", subtype="mid_turn_user_message")) == ["Also typed"]


def test_parts_of_one_message_are_different_records() -> None:
    """Two records with one ID are no repetitions."""
    parts = [record(1, "assistant", "One"), record(1, "assistant", "Two") | {"timestamp": "2026-03-01T10:00:09.000Z"}]

    assert len({turn.record for turn in turns(KNOWN, *parts)}) == 2


def test_older_chats_are_left_to_no_other_agent() -> None:
    """A session is recognised as one of Qwen Code, not of Claude Code, whose records also have parents."""
    found = recognise(jsonl([record(1, "user", "x")]))

    assert found is not None
    assert found.agent == "qwen-code"
    assert turns(KNOWN, record(1, "assistant", {"text": "Hm", "thought": True}))[0].kind is Kind.THINKING


def test_sessions_are_found_below_projects(home: Path) -> None:
    """Chats and transcripts of sub-agents are transcripts; other files are not."""
    for name in ("chats/a.jsonl", "subagents/s/agent-b.jsonl", "chats/a.json"):
        path = home / ".qwen" / "projects" / "-home-demo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert [path.name for root in KNOWN.roots() for path in KNOWN.transcripts(root)] == ["a.jsonl", "agent-b.jsonl"]
