"""Cowork: transcripts of Claude Code in the folders of tasks."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.claude_code import FORMAT as CLAUDE_CODE
from palaver.archiver.formats.cowork import Cowork
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn

from ..reading import jsonl, lines, notes, session

KNOWN = Cowork()
ID = "0d9f1c1e-0000-4000-8000-000000000042"


def record(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """Return a message in a transcript."""
    envelope = {"sessionId": ID, "cwd": "/sessions/quiet-river", "entrypoint": "local-agent", "isSidechain": False}
    message = {"role": kind, "content": content, "id": "msg_1", "model": "m"}
    return {**envelope, "type": kind, "uuid": kind, "timestamp": "2026-03-01T10:00:00Z", "message": message, **fields}


RECORDS = [record("user", "Fix the login"), record("assistant", [{"type": "text", "text": "Done."}])]


def task(home: Path) -> Path:
    """Create the folder of a task, and return the folder of its transcripts."""
    account = home / ".config" / "Claude" / "local-agent-mode-sessions" / "org" / "account"
    projects = account / "local_1" / ".claude" / "projects" / "-sessions-quiet-river"
    projects.mkdir(parents=True)
    about = {"sessionId": "local_1", "title": "Login", "userSelectedFolders": ["/home/demo/shop"]}
    (account / "local_1.json").write_text(json.dumps(about))
    (account / "local_1" / "audit.jsonl").write_bytes(jsonl(RECORDS))
    return projects


def test_the_transcripts_of_a_task_are_read(home: Path) -> None:
    """The task has the title and the folder of the user. Its audit file repeats the transcript."""
    path = task(home) / f"{ID}.jsonl"
    path.write_bytes(jsonl(RECORDS))
    own = session(KNOWN, path.read_bytes(), path)
    found = list(KNOWN.reader(own).read(lines(path.read_bytes())))

    assert [file for root in KNOWN.roots() for file in KNOWN.transcripts(root)] == [path]
    assert (own.native_id, own.title, own.cwd) == (ID, "Login", "/home/demo/shop")
    assert notes(found, Fact.CWD) == [(1, "/home/demo/shop")]
    assert [(turn.speaker, turn.kind, turn.text) for turn in found if isinstance(turn, Turn)] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]


def test_a_sub_agent_of_a_task_has_no_title(home: Path) -> None:
    """Sub-agents are stored as those of Claude Code. The title is that of the task."""
    path = task(home) / ID / "subagents" / "agent-a1b2.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl([record("user", "Look", agentId="a1b2", isSidechain=True)]))
    own = session(KNOWN, path.read_bytes(), path)

    assert (own.kind, own.parent_id, own.title) == (SessionKind.SUBAGENT, ID, "")
    assert [file for root in KNOWN.roots() for file in KNOWN.transcripts(root)] == [path]


def test_a_transcript_is_that_of_cowork_or_of_claude_code() -> None:
    """Only the entry point tells them apart."""
    own = [record("user", "Hi", entrypoint="cli")]

    assert (KNOWN.recognises(RECORDS), CLAUDE_CODE.recognises(RECORDS)) == (True, False)
    assert (KNOWN.recognises(own), CLAUDE_CODE.recognises(own)) == (False, True)
