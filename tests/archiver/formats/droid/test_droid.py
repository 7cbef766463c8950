"""Sessions of Factory Droid: blocks of messages, notices, reasoning of several providers, and sub-agents."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.droid import FORMAT
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from .. import reading
from ..reading import jsonl, notes, skipped

SESSION = "00000000-0000-4000-8000-000000000001"
HEADER = {"type": "session_start", "id": SESSION, "title": "Fix the", "sessionTitle": "Login", "cwd": "/home/demo/shop"}


def message(role: str, *blocks: dict[str, Any] | str, visibility: str = "", **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    shown = {"visibility": visibility} if visibility else {}
    return {"type": "message", "message": {"role": role, "content": content, **shown}, **fields}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, HEADER, *records)]


def test_a_session_is_read_block_by_block() -> None:
    """Results of tools are in messages of the user, and reminders are not part of the prompt."""
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}}
    found = summary(
        message("user", "<system-reminder>\nBe brief.\n</system-reminder>", "Fix the login"),
        message("assistant", {"type": "thinking", "thinking": "Hm", "signature": ""}, "I look.", call),
        message("user", {"type": "tool_result", "tool_use_id": "t1", "is_error": False, "content": "x = 1"}),
        message("assistant", "Done."),
        {"type": "compaction_state", "summaryText": "The login was fixed."},
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "Read: file_path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
        (Speaker.HOST, Kind.COMPACTION, "The login was fixed."),
    ]


def test_a_result_and_a_prompt_may_be_in_one_message() -> None:
    """A prompt that interrupts a tool follows the result of the tool."""
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    [failed, prompt] = reading.turns(FORMAT, HEADER, message("user", result, "Stop"))

    assert (failed.kind, failed.text, failed.failed) == (Kind.RESULT, "no", True)
    assert (prompt.kind, prompt.text) == (Kind.PROMPT, "Stop")


def test_notices_are_not_prompts() -> None:
    """Messages with a visibility were written by the program. Their tags are left out."""
    reminder = "<system-reminder>\nTools are available.\n</system-reminder>"

    assert summary(message("user", reminder, visibility="llm_only")) == [
        (Speaker.HOST, Kind.INJECTED, "Tools are available.")
    ]
    assert summary(message("user", "Error: Connection error.", visibility="user_only")) == [
        (Speaker.HOST, Kind.INJECTED, "Error: Connection error.")
    ]


def test_reasoning_may_be_beside_the_message() -> None:
    """Models with the interface of OpenAI have their reasoning in another field."""
    reply = message("assistant", "Done.", chatCompletionReasoningContent="So")

    assert summary(reply) == [(Speaker.ASSISTANT, Kind.THINKING, "So"), (Speaker.ASSISTANT, Kind.PROSE, "Done.")]


def test_pictures_are_labels() -> None:
    """A picture is shown with its type and size."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4096}}

    assert summary(message("user", "What is it?", picture)) == [
        (Speaker.HUMAN, Kind.PROMPT, "What is it?\n[image/png, 3 KB]")
    ]


def test_the_header_names_the_session() -> None:
    """The title that replaces the placeholder wins over the first words of the prompt."""
    placeholder = {**HEADER, "sessionTitle": "New Session"}
    titles = [notes(reading.events(FORMAT, header), Fact.TITLE) for header in (HEADER, placeholder)]

    untitled = {**placeholder, "title": "New Session"}
    reply = {**message("assistant", "Hi"), "message": {"role": "assistant", "content": "Hi", "modelId": "m"}}

    assert titles == [[(1, "Login")], [(1, "Fix the")]]
    assert notes(reading.events(FORMAT, untitled), Fact.TITLE) == []
    assert notes(reading.events(FORMAT, HEADER, reply), Fact.MODEL) == [(2, "m")]
    assert skipped(reading.events(FORMAT, HEADER, {"type": "todo_state", "todos": []})) == [(2, "bookkeeping")]


def test_a_sub_agent_names_its_parent(tmp_path: Path) -> None:
    """The header of a sub-agent names the session that called it, and its prompt is not the user's."""
    header = {**HEADER, "callingSessionId": "parent", "callingToolUseId": "t1"}
    path = tmp_path / f"{SESSION}.jsonl"
    path.with_suffix(".settings.json").write_text(json.dumps({"model": "m", "tokenUsage": {"inputTokens": 3}}))
    known = FORMAT.identify(path, jsonl([header]))

    assert (known.kind, known.parent_id, known.models) == (SessionKind.SUBAGENT, "parent", ["m"])
    assert reading.turns(FORMAT, header, message("user", "Look"))[0].speaker is Speaker.HOST


def test_settings_are_no_sessions(home: Path) -> None:
    """Sessions are found in Factory's folder, without the settings beside them."""
    folder = home / ".factory" / "sessions" / "-home-demo-shop"
    folder.mkdir(parents=True)
    for name in (f"{SESSION}.jsonl", f"{SESSION}.settings.json", f"{SESSION}.settings.json.bak"):
        (folder / name).write_text("{}")

    assert [path.name for root in FORMAT.roots() for path in FORMAT.transcripts(root)] == [f"{SESSION}.jsonl"]
