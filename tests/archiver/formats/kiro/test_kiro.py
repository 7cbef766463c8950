"""Kiro's three stores: messages of the program, events, and the program's database."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.kiro import Kiro
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from .. import reading
from ..container_files import contents, database, turns
from ..reading import notes, skipped

FORMAT = Kiro()
V2 = """CREATE TABLE conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL, value TEXT NOT NULL,
created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (key, conversation_id));"""


def message(kind: str, *blocks: tuple[str, object], **fields: Any) -> dict[str, Any]:
    content = [{"kind": name, "data": value} for name, value in blocks]
    return {"version": "v1", "kind": kind, "data": {"message_id": "m1", "content": content, **fields}}


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"id": "e1", "timestamp": "2026-03-01T10:00:00Z", "payload": {"type": kind, **fields}}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, *records)]


def test_messages_of_the_program_are_read() -> None:
    """Only prompts have a time, which is in seconds."""
    call = {"toolUseId": "t1", "name": "shell", "input": {"command": "ls", "__tool_use_purpose": "List"}}
    output = {"exit_status": "exit status: 0", "stdout": "a.py\n", "stderr": ""}
    result = {"toolUseId": "t1", "content": [{"kind": "json", "data": output}], "status": "success"}
    records = (
        message("Prompt", ("text", "Fix the login"), meta={"timestamp": 1772359200}),
        message("AssistantMessage", ("thinking", {"text": "Hm"}), ("text", "I look."), ("toolUse", call)),
        message("ToolResults", ("toolResult", result)),
        message("AssistantMessage", ("text", "Done.")),
    )

    assert summary(*records) == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "shell: ls"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]
    assert reading.turns(FORMAT, *records)[0].at == 1772359200000


def test_events_are_read() -> None:
    """The operation of a text says whether it is reasoning, a reply or a summary."""
    found = summary(
        event("session_start", content="You are Kiro."),
        event("user", content="Fix the login", images=[{"name": "a.png"}], documents=[]),
        event("assistant", content="Hm", operationType="Reasoning"),
        event("assistant", content="So", reasoningSignature="x"),
        event("tool_call", toolCallId="t1", toolName="fs_write", args={"path": "a.py"}),
        event("tool_result", toolCallId="t1", success=True, content="ok"),
        event("assistant", content="Done.", operationType="Say"),
        event("assistant", content="The login was fixed.", operationType="Summary"),
        event("session_metadata", key="displayError", value={"message": "No credit"}),
        event("turn_end", stopReason="end_turn"),
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login\n[a.png]"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.THINKING, "So"),
        (Speaker.ASSISTANT, Kind.CALL, "fs_write: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
        (Speaker.HOST, Kind.COMPACTION, "The login was fixed."),
        (Speaker.HOST, Kind.INJECTED, "No credit"),
    ]


def test_a_sub_agent_is_a_call_with_a_session() -> None:
    """The start names the session of the sub-agent, and the end has its answer."""
    started = event("sub_agent_start", subSessionId="c1", subAgentName="reviewer", prompt="Look")
    ended = event("sub_agent_complete", subSessionId="c1", errorMessage="gone")

    assert summary(started, ended) == [
        (Speaker.ASSISTANT, Kind.CALL, "reviewer: prompt=Look"),
        (Speaker.TOOL, Kind.RESULT, "gone"),
    ]
    assert notes(reading.events(FORMAT, started), Fact.SUBAGENT) == [(1, "c1")]


def test_state_of_the_program_is_skipped() -> None:
    """Requests for approval and the share of the context are no part of the conversation."""
    usage = event("session_metadata", key="contextUsage", value={"usagePercentage": 3})

    assert skipped(reading.events(FORMAT, usage, event("pending_interaction"), event("new"))) == [
        (1, "bookkeeping"),
        (2, "bookkeeping"),
        (3, "unknown-type:new"),
    ]


def test_conversations_of_the_database_are_read(tmp_path: Path) -> None:
    """A turn has the results of the calls before it, or a prompt, and the answer of the model."""
    write = {"id": "t1", "name": "fs_write", "args": {"path": "a.py"}}
    ran = {"tool_use_id": "t1", "content": [{"Text": ""}, {"Json": {"stdout": "ok"}}], "status": "Success"}
    refused = {"tool_use_id": "t2", "content": [{"Text": "refused"}], "status": "Error"}
    history = [
        {
            "user": {"content": {"Prompt": {"prompt": "Create a.py"}}, "timestamp": "2026-03-01T10:00:00+00:00"},
            "assistant": {"ToolUse": {"message_id": "m1", "content": "I write.", "tool_uses": [write]}},
            "request_metadata": {"model_id": "m", "stream_end_timestamp_ms": 1772359205000},
        },
        {
            "user": {"content": {"ToolUseResults": {"tool_use_results": [ran]}}, "timestamp": None},
            "assistant": {"Response": {"message_id": "m2", "content": "Done."}},
        },
        {"user": {"content": {"CancelledToolUses": {"prompt": "Stop", "tool_use_results": [refused]}}}},
    ]
    path = tmp_path / "data.sqlite3"
    row = ("/home/demo/shop", "c1", json.dumps({"history": history}), 1772359200000, 1772359300000)
    database(path, V2, [("INSERT INTO conversations_v2 VALUES (?,?,?,?,?)", row)]).close()
    [data] = contents(FORMAT, path).values()
    known = FORMAT.identify(path, data)

    assert turns(FORMAT, path)["kiro-cli/c1.jsonl"] == [
        (Speaker.HUMAN, Kind.PROMPT, "Create a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "I write."),
        (Speaker.ASSISTANT, Kind.CALL, "fs_write: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
        (Speaker.TOOL, Kind.RESULT, "refused"),
        (Speaker.HUMAN, Kind.PROMPT, "Stop"),
    ]
    assert (known.cwd, known.started, known.ended) == ("/home/demo/shop", 1772359200000, 1772359300000)


def test_older_databases_have_one_conversation_per_folder(tmp_path: Path) -> None:
    """The folder identifies the conversation. A database of other tables is not Kiro's."""
    path = tmp_path / "data.sqlite3"
    value = json.dumps({"history": [{"user": {"content": {"Prompt": {"prompt": "Hi"}}}}]})
    schema = "CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);"
    database(path, schema, [("INSERT INTO conversations VALUES (?,?)", ("/shop", value))]).close()
    other = tmp_path / "other" / "data.sqlite3"
    database(other, "CREATE TABLE history (id INTEGER)").close()

    assert list(turns(FORMAT, path).values()) == [[(Speaker.HUMAN, Kind.PROMPT, "Hi")]]
    assert [FORMAT.is_container(each) for each in (path, other)] == [True, False]
    assert list(FORMAT.sessions(other)) == []


def test_tables_of_newer_versions_are_named(tmp_path: Path) -> None:
    """A table whose name has a later number is reported."""
    path = tmp_path / "data.sqlite3"
    database(path, f"{V2} CREATE TABLE conversations_v3 (id TEXT);").close()

    assert FORMAT.unknown_parts(path) == ["table conversations_v3 is not read"]


def test_the_file_beside_the_messages_describes_the_session(home: Path) -> None:
    """The program and the IDE name the fields differently."""
    sessions = home / ".kiro" / "sessions"
    program, ide = sessions / "cli" / "s1.jsonl", sessions / "abcd" / "sess_2" / "messages.jsonl"
    for path in (program, ide, ide.parent / "snapshots" / "messages.jsonl", ide.with_name("other.jsonl")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    times = ("2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z")
    about: dict[str, Any] = {
        "session_id": "s1",
        "cwd": "/shop",
        "title": "Login",
        "created_at": times[0],
        "updated_at": times[1],
    }
    program.with_suffix(".json").write_text(json.dumps({**about, "session_created_reason": "subagent"}))
    about = {"id": "sess_2", "workspacePaths": ["/web"], "title": "Cart", "createdAt": times[0], "modelId": "m"}
    ide.with_name("session.json").write_text(json.dumps({**about, "lastModifiedAt": times[1]}))
    found = [FORMAT.identify(path, b"") for root in FORMAT.roots() for path in FORMAT.transcripts(root)]

    assert [(each.native_id, each.kind, each.cwd, each.title, each.models) for each in found] == [
        ("sess_2", SessionKind.MAIN, "/web", "Cart", ["m"]),
        ("s1", SessionKind.SUBAGENT, "/shop", "Login", []),
    ]
    assert {(each.started, each.ended) for each in found} == {(1772359200000, 1772359500000)}


def test_databases_are_found(home: Path) -> None:
    """The database of macOS is found on any system."""
    paths = [home / ".local/share/kiro-cli/data.sqlite3", home / "Library/Application Support/kiro-cli/data.sqlite3"]
    for path in paths:
        database(path, V2).close()

    assert list(FORMAT.containers()) == paths
