"""Antigravity: authors, tool calls, and locations of transcripts."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats import Event
from palaver.archiver.formats.antigravity import Antigravity
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Kind, Speaker

from .. import reading
from ..reading import skipped

ANTIGRAVITY = Antigravity()


def step(source: str, kind: str, content: str = "", /, **fields: Any) -> dict[str, Any]:
    return {"step_index": 0, "source": source, "type": kind, "status": "DONE", "content": content, **fields}


def prompt(text: str) -> dict[str, Any]:
    settings = "<USER_SETTINGS_CHANGE>\nAnother model.\n</USER_SETTINGS_CHANGE>"
    return step("USER_EXPLICIT", "USER_INPUT", f"<USER_REQUEST>\n{text}\n</USER_REQUEST>\n{settings}")


def plan(*calls: tuple[str, dict[str, str]], **fields: Any) -> dict[str, Any]:
    return step(
        "MODEL", "PLANNER_RESPONSE", tool_calls=[{"name": name, "args": args} for name, args in calls], **fields
    )


def events(*records: object) -> list[Event]:
    return reading.events(ANTIGRAVITY, *records)


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    """Return the speaker, the kind and the text of each turn."""
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(ANTIGRAVITY, *records)]


def test_a_prompt_is_the_text_inside_the_request_tag() -> None:
    """Only the text inside the request tag is a prompt, because the program wrote the rest."""
    assert summary(prompt("List the files.")) == [(Speaker.HUMAN, Kind.PROMPT, "List the files.")]
    assert summary(step("USER_EXPLICIT", "USER_INPUT", "Go")) == [(Speaker.HUMAN, Kind.PROMPT, "Go")]


def test_results_belong_to_calls_in_their_order() -> None:
    """Results have no call ID and are matched in order. An argument may be JSON within JSON."""
    calls = plan(("write_file", {"TargetFile": '"/a.py"'}), ("run_command", {"CommandLine": '"ls"'}), thinking="Hm")
    records = (prompt("Go"), calls, step("MODEL", "CODE_ACTION", "Created"), step("MODEL", "RUN_COMMAND", "a.py"))
    found = reading.turns(ANTIGRAVITY, *records)

    assert summary(*records)[1:] == [
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.CALL, "write_file: path=/a.py"),
        (Speaker.ASSISTANT, Kind.CALL, "run_command: ls"),
        (Speaker.TOOL, Kind.RESULT, "/a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
    ]
    assert [(turn.tool, turn.writes) for turn in found[-2:]] == [("write_file", ("/a.py",)), ("run_command", ())]


def test_a_result_without_a_call_is_kept() -> None:
    """A result without a call is kept, and its tool is named after the step."""
    (turn,) = reading.turns(ANTIGRAVITY, step("MODEL", "VIEW_FILE", "no", status="ERROR"))

    assert (turn.tool, turn.text, turn.failed) == ("view_file", "no", True)


def test_records_of_the_program_have_their_own_kinds() -> None:
    """A checkpoint is a compaction, a message is injected, and other records are skipped."""
    assert [
        kind for _, kind, _ in summary(step("SYSTEM", "CHECKPOINT", "So far."), step("SYSTEM", "SYSTEM_MESSAGE", "x"))
    ] == [
        Kind.COMPACTION,
        Kind.INJECTED,
    ]
    assert skipped(
        events(step("SYSTEM", "CONVERSATION_HISTORY"), step("MODEL", "PLANNER_RESPONSE"), step("X", "Y"))
    ) == [
        (1, "bookkeeping"),
        (2, "empty"),
        (3, "unknown-type:X/Y"),
    ]


def test_steps_without_number_and_type_are_read() -> None:
    """The source of a step identifies its author if the step has no type."""

    def bare(source: str, content: str, **more: Any) -> dict[str, Any]:
        return {"source": source, "created_at": "2026-06-26T21:16:16Z", "content": content, **more}

    call = {"name": "run_command", "args": {"CommandLine": '"ls"'}}
    records = (
        bare("USER_EXPLICIT", "<USER_REQUEST>\nGo\n</USER_REQUEST>\n<ADDITIONAL_METADATA>x</ADDITIONAL_METADATA>"),
        bare("MODEL", "I list the files.", tool_calls=[call]),
        step("MODEL", "RUN_COMMAND", "a.py"),
        bare("USER_IMPLICIT", "Open files: a.py"),
        bare("MODEL", ""),
    )

    assert summary(*records) == [
        (Speaker.HUMAN, Kind.PROMPT, "Go"),
        (Speaker.ASSISTANT, Kind.PROSE, "I list the files."),
        (Speaker.ASSISTANT, Kind.CALL, "run_command: ls"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.HOST, Kind.INJECTED, "Open files: a.py"),
    ]
    assert skipped(events(*records)) == [(5, "empty")]
    assert [known.agent for known in all_formats() if known.recognises([records[0]])] == ["antigravity"]
    assert not ANTIGRAVITY.recognises([{"source": ["MODEL"], "created_at": 1, "content": ""}, {"source": "MODEL"}])


def test_sessions_are_found_in_the_folders_of_all_editions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sessions of all editions are found, and each session is named after its folder."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    path = (
        tmp_path / ".gemini" / "antigravity-cli" / "brain" / "0b7d" / ".system_generated" / "logs" / "transcript.jsonl"
    )
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")

    (root,) = ANTIGRAVITY.roots()

    assert list(ANTIGRAVITY.transcripts(root)) == [path]
    assert ANTIGRAVITY.identify(path, b"").native_id == "0b7d"
    assert [known.agent for known in all_formats() if known.recognises([prompt("Go")])] == ["antigravity"]


def test_encrypted_conversations_without_a_transcript_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only the program can decrypt them. One with a transcript is read."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    edition = tmp_path / ".gemini" / "antigravity"
    transcript = edition / "brain" / "0b7d" / ".system_generated" / "logs" / "transcript.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(b"")
    (edition / "conversations").mkdir()
    for name in ("0b7d.pb", "1c8e.pb", "2d9f.db"):
        (edition / "conversations" / name).write_bytes(b"\x00")

    assert ANTIGRAVITY.encrypted() == [edition / "conversations" / "1c8e.pb"]
