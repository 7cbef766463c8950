"""Windsurf: the transcripts that a hook writes."""

import os
from pathlib import Path

from palaver.archiver.formats.windsurf import Windsurf
from palaver.core.conversation import Kind, Speaker

from ..reading import jsonl, session, turns

KNOWN = Windsurf()
RECORDS = [
    {"type": "user_input", "status": "done", "user_input": {"user_response": "Fix the login"}},
    {"type": "planner_response", "status": "done", "planner_response": {"response": "I look."}},
    {
        "type": "code_action",
        "status": "done",
        "code_action": {"path": "file:///home/demo/my%20shop/a.py", "new_content": "x = 1"},
    },
    {"type": "command_action", "status": "error", "command_action": {"command": "make", "output": "no"}},
]


def test_a_transcript_of_the_hook_is_read(home: Path) -> None:
    """A step is a call with its result. The file name is the ID of the conversation, its time that of all steps."""
    path = home / ".windsurf" / "transcripts" / "0c4f6a1e-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl(RECORDS))
    os.utime(path, (1772359200, 1772359200))
    found = turns(KNOWN, *RECORDS)

    assert [file for root in KNOWN.roots() for file in KNOWN.transcripts(root)] == [path]
    assert session(KNOWN, path.read_bytes(), path).native_id == "0c4f6a1e-0000-4000-8000-000000000001"
    assert session(KNOWN, path.read_bytes(), path).started == 1772359200000
    assert [(turn.speaker, turn.kind, turn.text) for turn in found] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "write_file: path=/home/demo/my shop/a.py, new_content=x = 1"),
        (Speaker.TOOL, Kind.RESULT, "/home/demo/my shop/a.py"),
        (Speaker.ASSISTANT, Kind.CALL, "run_command: make"),
        (Speaker.TOOL, Kind.RESULT, "no"),
    ]
    assert [turn.failed for turn in found if turn.kind is Kind.RESULT] == [False, True]


def test_encrypted_conversations_are_left_alone(home: Path) -> None:
    """Only the vendor can decrypt them. One with a transcript is read."""
    folder = home / ".codeium" / "windsurf" / "cascade"
    folder.mkdir(parents=True)
    (folder / "0c4f6a1e-0000-4000-8000-000000000001.pb").write_bytes(b"\x00")

    assert KNOWN.encrypted() == [folder / "0c4f6a1e-0000-4000-8000-000000000001.pb"]
    assert KNOWN.roots() == []
    transcript = home / ".windsurf" / "transcripts" / "0c4f6a1e-0000-4000-8000-000000000001.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(jsonl(RECORDS))
    assert KNOWN.encrypted() == []
