"""OpenClaw: files and databases with the records of pi, sub-agents, and messages of chat channels."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.openclaw import OpenClaw
from palaver.archiver.formats.pi import FORMAT as PI
from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.conversation import Kind, SessionKind, Speaker
from palaver.core.errors import PartlyRead

from ..container_files import contents, database, events, turn_tuples, turns
from ..reading import jsonl, prompts, session
from ..reading import turns as turns_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KNOWN = OpenClaw()
ID = "019e19b4-0000-7000-8000-000000000009"
ATTACHED = "[media attached: /a.jpg]\nTo send an image back, use the tool.\n"
SCHEMA = """
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL,
    created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq));
"""


def said(role: str, text: str) -> dict[str, Any]:
    """Return an entry with a message."""
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {
        "type": "message",
        "id": text[:4],
        "parentId": None,
        "timestamp": "2026-03-01T10:00:00Z",
        "message": message,
    }


HEADER = {"type": "session", "version": 3, "id": ID, "timestamp": "2026-03-01T10:00:00Z", "cwd": "/home/demo"}
RECORDS = [HEADER, said("user", "Fix the login"), said("assistant", "Done.")]
TURNS = [(Speaker.HUMAN, Kind.PROMPT, "Fix the login"), (Speaker.ASSISTANT, Kind.PROSE, "Done.")]


def store(home: Path, *rows: tuple[object, ...], script: str = SCHEMA) -> Path:
    """Create the database of an agent, and return its path."""
    path = home / ".openclaw" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    statement = (
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_zstd) VALUES (?, ?, ?, 1, ?)"
    )
    database(path, script, [(statement, row) for row in rows]).close()
    return path


def test_the_rows_of_a_database_are_the_lines_of_a_session(home: Path) -> None:
    """Long records are compressed."""
    packed = zstd.compress(json.dumps(RECORDS[2]).encode())
    path = store(home, (ID, 1, json.dumps(HEADER), None), (ID, 2, json.dumps(RECORDS[1]), None), (ID, 3, "", packed))

    assert list(KNOWN.containers()) == [path]
    assert turns(KNOWN, path) == {f"main/sessions/{ID}.jsonl": TURNS}
    [data] = contents(KNOWN, path).values()
    assert (session(KNOWN, data).native_id, session(KNOWN, data).cwd) == (ID, "/home/demo")


def test_the_database_has_the_keys_of_sessions(home: Path) -> None:
    """The parent of a sub-agent is the latest session with the key of the parent."""
    script = f"""{SCHEMA} CREATE TABLE session_windows (session_id TEXT, session_key TEXT,
        created_at INTEGER, parent_session_key TEXT, spawned_by TEXT);
    INSERT INTO session_windows VALUES ('old', 'agent:main:main', 1, NULL, NULL),
        ('new', 'agent:main:main', 2, NULL, NULL), ('{ID}', 'agent:main:subagent:1', 3, NULL, 'agent:main:main');"""
    path = store(home, (ID, 1, json.dumps(HEADER), None), script=script)
    child = session(KNOWN, jsonl(RECORDS), path / f"{ID}.jsonl")
    parent = session(KNOWN, jsonl([{**HEADER, "id": "new"}]), path / "new.jsonl")

    assert (child.kind, child.parent_id) == (SessionKind.SUBAGENT, "new")
    assert (parent.kind, parent.parent_id) == (SessionKind.MAIN, "")


def test_a_damaged_row_does_not_hide_the_session(home: Path) -> None:
    """A record that cannot be decompressed becomes a blank line."""
    rows = [(ID, number, json.dumps(record), None) for number, record in enumerate(RECORDS)]
    path = store(home, *rows, (ID, 9, "", b"\x28\xb5\x2f\xfdx"))

    assert turns(KNOWN, path) == {f"main/sessions/{ID}.jsonl": TURNS}
    assert contents(KNOWN, path)[f"main/sessions/{ID}.jsonl"].endswith(b"\n\n")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (SCHEMA.replace("event_json", "body"), "lacks event_json"),
        (f"{SCHEMA} ALTER TABLE transcript_events ADD COLUMN mood TEXT", "unknown columns mood"),
    ],
)
def test_other_columns_are_reported(script: str, problem: str, home: Path) -> None:
    """Later versions may change the table."""
    with pytest.raises(PartlyRead, match=problem):
        list(KNOWN.sessions(store(home, script=script)))


def test_the_database_of_an_earlier_version_has_no_sessions(home: Path) -> None:
    """Before version 2026.8.1, the database had settings only, which is no problem."""
    assert list(KNOWN.sessions(store(home, script="CREATE TABLE meta (key TEXT)"))) == []


def test_files_of_earlier_versions_are_read(home: Path) -> None:
    """Deleted and reset sessions stay in files. Checkpoints and trajectories are copies."""
    folder = home / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    names = [
        f"{ID}.jsonl",
        f"{ID}.jsonl.reset.2026-03-01T10-00-00.000Z",
        f"{ID}.jsonl.deleted.2026-03-01T10-00-00.000Z",
    ]
    for name in [*names, f"{ID}.checkpoint.1.jsonl", f"{ID}.trajectory.jsonl", f"{ID}.jsonl.lock"]:
        (folder / name).write_bytes(jsonl(RECORDS))

    assert sorted(path.name for root in KNOWN.roots() for path in KNOWN.transcripts(root)) == sorted(names)


def test_the_key_of_a_session_names_a_sub_agent(home: Path) -> None:
    """The list of sessions has the key of the session that started a sub-agent."""
    folder = home / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    listed = {
        "agent:main:main": {"sessionId": "parent"},
        "agent:main:subagent:1": {"sessionId": ID, "spawnedBy": "agent:main:main"},
    }
    (folder / "sessions.json").write_text(json.dumps(listed))
    found = session(KNOWN, jsonl(RECORDS), folder / f"{ID}.jsonl")

    assert (found.native_id, found.kind, found.parent_id) == (ID, SessionKind.SUBAGENT, "parent")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (
            "Sender (untrusted metadata):\n```json\n{}\n```\n\n[Sun 2026-03-01 10:00 GMT] Fix the login",
            ["Fix the login"],
        ),
        ("[Sun 2026-03-01 10:00 GMT] Fix the login", ["Fix the login"]),
        ("[Sun 2026-03-01 10:00 GMT] Fix the login\n[message_id: 17]", ["Fix the login"]),
        ("Sender (untrusted metadata):\n```json\n{}\n```\n\n[message_id: om_1]\nAda: Fix it", ["Fix it"]),
        (
            f"{ATTACHED}Sender (untrusted metadata):\n```json\n{{}}\n```\n\nWhat is this?",
            ["What is this?"],
        ),
        ("[OpenClaw heartbeat poll]", []),
        ("Pre-compaction memory flush. Store durable memories now.", []),
        ("[1] is wrong", ["[1] is wrong"]),
        ("[cron:1 backup] Run it", []),
        ("Read HEARTBEAT.md if it exists", []),
        ("System: [2026-03-01 10:00:00 GMT] Exec completed", []),
        ("A new session was started via /new or /reset. Greet the user.", []),
        ("System: [2026-03-01 10:00:00 GMT] Chat | x\n\n[System: The bot has no permission.]", []),
        (
            "[Queued messages while agent was busy]\n\n---\nQueued #1\nSystem: x\n\nFix it\n\n---\nQueued #2\nTest it",
            ["Fix it\n\nTest it"],
        ),
    ],
)
def test_text_of_a_channel_is_not_part_of_a_prompt(text: str, typed: list[str]) -> None:
    """The program adds the sender and the time, and writes prompts itself."""
    assert prompts(KNOWN, HEADER, said("user", text)) == typed


def test_a_task_for_a_sub_agent_is_recognised_by_its_instructions(tmp_path: Path) -> None:
    """A list with the keys of the sessions can be missing, for example in a copy."""
    text = "[Sun 2026-03-01 10:00 GMT] [Subagent Context] You are a subagent.\n\n[Subagent Task]: Fix the login"
    data = jsonl([HEADER, said("user", text), said("assistant", "Done.")])
    path = tmp_path / "sessions" / f"{ID}.jsonl"

    assert KNOWN.identify(path, data).kind is SessionKind.SUBAGENT
    assert turn_tuples(events(KNOWN, data, path)) == [(Speaker.HOST, Kind.PROMPT, "Fix the login"), TURNS[1]]


def test_a_transcript_that_the_program_renamed_is_in_its_folder(tmp_path: Path) -> None:
    """A reset renames the transcript."""
    path = tmp_path / "sessions" / f"{ID}.jsonl.reset.2026-03-01T10-00-00.000Z"
    path.parent.mkdir()
    own: list[dict[str, Any]] = [*RECORDS, {"type": "custom", "customType": "model-snapshot", "id": "x", "data": {}}]
    path.write_bytes(jsonl(own))

    assert [transcript.path.name for transcript in in_paths([tmp_path])] == [path.name]


def test_a_file_is_that_of_openclaw_or_of_pi() -> None:
    """Both have the same entries. Only OpenClaw writes its own custom entries."""
    own: list[dict[str, Any]] = [*RECORDS, {"type": "custom", "customType": "model-snapshot", "id": "x", "data": {}}]

    assert (KNOWN.recognises(RECORDS), PI.recognises(RECORDS)) == (False, True)
    assert (KNOWN.recognises(own), PI.recognises(own)) == (True, False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[[reply_to_current]] Done.", ["Done."]),
        ("[[ reply_to: 1234 ]]\nDone.", ["Done."]),
        ("Done.\n[[reply_to:1234]]", ["Done."]),
        ("Write `[[reply_to_current]]` first.", ["Write `[[reply_to_current]]` first."]),
        ("[[reply_to_current]]", []),
    ],
)
def test_the_tag_of_a_reply_is_not_shown(text: str, shown: list[str]) -> None:
    """The program removes the tag from the beginning or the end of a reply."""
    assert [turn.text for turn in turns_of(KNOWN, HEADER, said("assistant", text))] == shown
