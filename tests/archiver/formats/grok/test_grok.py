"""Grok Build: the model's context with the times of what was displayed, sub-agents, and compactions."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.grok import Grok
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn

from ..container_files import contents, events, turns
from ..reading import jsonl, notes

KNOWN = Grok()
ID = "019f6000-0000-7000-8000-000000000001"
HISTORY: list[dict[str, Any]] = [
    {"type": "system", "content": "You are"},
    {"type": "user", "content": [{"type": "text", "text": "<user_info>\nlinux\n</user_info>"}]},
    {
        "type": "user",
        "content": [{"type": "text", "text": "<user_query>\nFix the login\n</user_query>"}],
        "prompt_index": 0,
    },
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
    {
        "type": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "c1", "name": "read_file", "arguments": '{"target_file": "a.py"}'}],
    },
    {"type": "tool_result", "tool_call_id": "c1", "content": "no such file"},
    {"type": "assistant", "content": "Done."},
]


def update(at: int, kind: str, index: int | None = None, **values: Any) -> dict[str, Any]:
    """Return a message about what was displayed."""
    about = {"agentTimestampMs": at, **({} if index is None else {"promptIndex": index})}
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **values}, "_meta": about}}


UPDATES = [
    update(1772359200000, "user_message_chunk", 0),
    update(1772359201000, "tool_call", toolCallId="c1"),
    update(1772359202000, "tool_call_update", toolCallId="c1", status="failed"),
    update(1772359203000, "agent_message_chunk"),
]


def store(home: Path, own_id: str = ID, history: Any = HISTORY, **summary: Any) -> Path:
    """Write a session, and return the path of its context."""
    folder = home / ".grok" / "sessions" / "%2Fhome%2Fdemo%2Fshop" / own_id
    folder.mkdir(parents=True)
    (folder / "chat_history.jsonl").write_bytes(jsonl(history))
    (folder / "updates.jsonl").write_bytes(jsonl(UPDATES))
    about = {"info": {"id": own_id, "cwd": "/home/demo/shop"}, "generated_title": "Login", **summary}
    (folder / "summary.json").write_text(json.dumps(about))
    return folder / "chat_history.jsonl"


def test_a_session_has_the_times_of_what_was_displayed(home: Path) -> None:
    """The context has neither times nor the failures of tools."""
    path = store(home)
    [(name, data)] = contents(KNOWN, path).items()
    found = [event for event in events(KNOWN, data) if isinstance(event, Turn)]

    assert list(KNOWN.containers()) == [path]
    assert name == f"sessions/{ID}.jsonl"
    assert [(turn.speaker, turn.kind, turn.text, (turn.at or 0) // 1000 % 10, turn.failed) for turn in found] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login", 0, False),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm", 0, False),
        (Speaker.ASSISTANT, Kind.PROSE, "I look.", 1, False),
        (Speaker.ASSISTANT, Kind.CALL, "read_file: target_file=a.py", 1, False),
        (Speaker.TOOL, Kind.RESULT, "no such file", 2, True),
        (Speaker.ASSISTANT, Kind.PROSE, "Done.", 3, False),
    ]
    assert notes(events(KNOWN, data), Fact.TITLE) == [(1, "Login")]


def test_items_keep_their_ids_when_a_compaction_rewrites_the_file(home: Path) -> None:
    """The ID of an item is the digest of its line, with a number if the line is there twice."""
    path = store(home)
    path.write_bytes(jsonl([*HISTORY[-1:], *HISTORY[-1:]]))
    [data] = contents(KNOWN, path).values()
    ids = [json.loads(line)["id"] for line in data.splitlines()[1:]]

    assert len(set(ids)) == 2
    assert ids[1] == f"{ids[0]}-2"


def test_the_first_prompt_has_the_time_of_the_session_if_none_is_recorded(home: Path) -> None:
    """Without `updates.jsonl`, a session would have no time."""
    path = store(home, created_at="2026-03-01T10:00:00.5Z")
    path.with_name("updates.jsonl").unlink()
    [data] = contents(KNOWN, path).values()

    times = [event.at for event in events(KNOWN, data) if isinstance(event, Turn)]
    assert times == [1_772_359_200_500, *[None] * 5]


def test_an_unfinished_line_is_read_later(home: Path) -> None:
    """The program is still writing a line without a line end."""
    path = store(home)
    before = contents(KNOWN, path)
    with path.open("ab") as file:
        file.write(b'{"type": "assist')

    assert contents(KNOWN, path) == before


def test_a_sub_agent_is_listed_in_the_folder_of_its_parent(home: Path) -> None:
    """A fork has a parent too, but is no sub-agent."""
    parent = store(home)
    child, fork = ID.replace("1", "2"), ID.replace("1", "3")
    paths = [
        store(home, child, HISTORY[:3], session_kind="subagent"),
        store(home, fork, HISTORY[:3], parent_session_id=ID, session_kind="fork"),
    ]
    (parent.parent / "subagents" / child).mkdir(parents=True)
    (parent.parent / "subagents" / child / "meta.json").write_text(json.dumps({"parent_session_id": ID}))
    found = [KNOWN.identify(Path("x"), data) for path in paths for data in contents(KNOWN, path).values()]

    assert [(session.native_id, session.kind, session.parent_id) for session in found] == [
        (child, SessionKind.SUBAGENT, ID),
        (fork, SessionKind.MAIN, ""),
    ]


def test_messages_of_the_program_are_no_prompts(home: Path) -> None:
    """The reason for a message says who wrote it."""
    history = [
        {"type": "user", "content": [{"type": "text", "text": text}], "synthetic_reason": reason}
        for text, reason in [("Rules", "project_instructions"), ("Stop", "interjection"), ("So far", "compaction_meta")]
    ]
    [found] = turns(KNOWN, store(home, history=history)).values()

    assert found == [
        (Speaker.HOST, Kind.INJECTED, "Rules"),
        (Speaker.HUMAN, Kind.PROMPT, "Stop"),
        (Speaker.HOST, Kind.COMPACTION, "So far"),
    ]
