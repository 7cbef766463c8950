"""Kimi CLI journals and contexts: authors, tool calls, and locations of transcripts."""

from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats import Event
from palaver.archiver.formats.kimi_cli import KimiCli
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Fact, Kind, Session, SessionKind, Speaker

from .. import reading
from ..reading import notes, skipped

KIMI = KimiCli()
WIRE = {"type": "metadata", "protocol_version": "1.3"}
CONTEXT = {"role": "_system_prompt", "content": "You are Kimi."}
HUMAN, ASSISTANT = Speaker.HUMAN, Speaker.ASSISTANT


def event(kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1785612812.5, "message": {"type": kind, "payload": payload}}


def prompt(text: str) -> dict[str, Any]:
    return event("TurnBegin", user_input=text)


def tool(name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function", "id": f"{name}:0", "function": {"name": name, "arguments": arguments}}


def tool_result(name: str, output: object, *, failed: bool = False) -> dict[str, Any]:
    return event("ToolResult", tool_call_id=f"{name}:0", return_value={"is_error": failed, "output": output})


def events(*records: object) -> list[Event]:
    return reading.events(KIMI, *records)


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    """Return the speaker, the kind and the text of each turn."""
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(KIMI, *records)]


def test_a_journal_has_prompts_replies_and_calls() -> None:
    """Results have the IDs of their calls, and times are in seconds."""
    records = (
        prompt("Fix it"),
        event("ContentPart", type="think", think="Hm"),
        event("ContentPart", type="text", text="I look."),
        event("ToolCall", **tool("ReadFile", '{"path": "a.py"}')),
        tool_result("ReadFile", "x"),
        event("StatusUpdate", message_id="m", token_usage={"input_other": 5, "input_cache_read": 3, "output": 2}),
    )
    found = reading.turns(KIMI, WIRE, *records)

    assert summary(WIRE, *records) == [
        (HUMAN, Kind.PROMPT, "Fix it"),
        (ASSISTANT, Kind.THINKING, "Hm"),
        (ASSISTANT, Kind.PROSE, "I look."),
        (ASSISTANT, Kind.CALL, "ReadFile: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
    ]
    assert found[0].at == 1785612812500
    assert found[-1].reads == ("a.py",)
    assert notes(events(WIRE, *records), Fact.USAGE) == [(7, "m 8 2")]


def test_a_context_has_the_same_without_times() -> None:
    """A context of an older version yields the same turns as a journal, but without times."""
    records = (
        CONTEXT,
        {"role": "user", "content": [{"type": "text", "text": "Fix it"}]},
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "Hm"}, {"type": "text", "text": "I look."}],
            "tool_calls": [tool("Shell", '{"command": "ls"}')],
        },
        {"role": "tool", "content": "<system>ERROR: no</system>", "tool_call_id": "Shell:0"},
        {"role": "_usage", "token_count": 3},
        {"role": "user", "content": "<system>Mind this.</system>"},
    )

    assert summary(*records) == [
        (HUMAN, Kind.PROMPT, "Fix it"),
        (ASSISTANT, Kind.THINKING, "Hm"),
        (ASSISTANT, Kind.PROSE, "I look."),
        (ASSISTANT, Kind.CALL, "Shell: ls"),
        (Speaker.TOOL, Kind.RESULT, "<system>ERROR: no</system>"),
        (Speaker.HOST, Kind.INJECTED, "<system>Mind this.</system>"),
    ]
    assert skipped(events(*records)) == [(1, "context"), (5, "bookkeeping")]


def test_a_failed_call_touches_no_file() -> None:
    """A failed call lists no files as read or written, and its text contains the reason."""
    call = event("ToolCall", **tool("WriteFile", '{"path": "a.py", "content": "x"}'))
    turn = reading.turns(KIMI, prompt("Go"), call, tool_result("WriteFile", "denied", failed=True))[-1]

    assert (turn.failed, turn.writes, turn.text) == (True, (), "denied")


def test_other_records_are_skipped_by_reason() -> None:
    """State is bookkeeping, events of sub-agents are repeated, and unknown types are skipped by type name."""
    records = (event("StepBegin", n=1), event("SubagentEvent"), event("New"), {"role": "new"}, prompt(""), {"a": 1})

    assert [reason for _, reason in skipped(events(*records))] == [
        "bookkeeping",
        "repeated",
        "unknown-type:New",
        "unknown-type:role/new",
        "empty",
        "unknown-type:",
    ]


@pytest.mark.parametrize("first", [prompt("hi"), CONTEXT, {"role": "_checkpoint", "id": 0}])
def test_its_own_records_are_recognised(first: dict[str, Any]) -> None:
    """Records are recognised by the event envelope, or by roles that only Kimi CLI uses."""
    assert [known.agent for known in all_formats() if known.recognises([first])] == ["kimi-cli"]


def test_sessions_are_found_by_journal_or_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The context of a session is read only if the session has no journal."""
    monkeypatch.setenv("KIMI_SHARE_DIR", str(tmp_path))
    folder = tmp_path / "sessions" / "0b7dfb1274ee51b3"
    names = ["new/wire.jsonl", "new/subagents/a1/wire.jsonl", "old/context.jsonl"]
    for name in [*names, "new/context.jsonl", "new/subagents/a1/context.jsonl"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")

    (root,) = KIMI.roots()

    assert sorted(KIMI.transcripts(root)) == sorted(folder / name for name in names)
    assert KIMI.identify(folder / names[0], b"") == Session("kimi-cli", "new")
    assert KIMI.identify(folder / names[1], b"") == Session("kimi-cli", "new-a1", SessionKind.SUBAGENT, "new")


def test_a_folder_named_by_a_digest_is_found_in_the_list_of_folders(tmp_path: Path) -> None:
    """A session without a state of its own gets the working folder whose MD5 digest its folder has."""
    digest = md5(b"/home/demo/shop", usedforsecurity=False).hexdigest()
    (tmp_path / "kimi.json").write_text('{"work_dirs": [{"path": "/home/demo/bakery"}, {"path": "/home/demo/shop"}]}')
    places = ((digest, "s"), (f"local_{digest}", "s"), (digest, "s/subagents/a"), ("0" * 32, "s"))

    found = [KIMI.identify(tmp_path / "sessions" / name / below / "wire.jsonl", b"").cwd for name, below in places]

    assert found == ["/home/demo/shop", "/home/demo/shop", "/home/demo/shop", ""]
