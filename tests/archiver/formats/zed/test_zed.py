"""Zed's database of threads: compressed and plain documents, both generations of messages, and sub-agents."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.zed import Zed
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn
from palaver.core.errors import SourceUnreadable

from ..container_files import contents, database, events, turns
from ..reading import lines, notes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMAT = Zed()
OLD = (
    "id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, data_type TEXT NOT NULL, data BLOB NOT NULL"
)
SCHEMA = f"CREATE TABLE threads ({OLD}, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, created_at TEXT);"
CREATED, UPDATED = "2026-03-01T10:00:00+00:00", "2026-03-01T10:05:00.5+00:00"


def thread(name: str, *messages: object, parent: str | None = None, **fields: Any) -> tuple[str, tuple[object, ...]]:
    document = {"version": "0.3.0", "title": "Login", "messages": messages, "model": {"model": "m"}, **fields}
    data = zstd.compress(json.dumps(document).encode())
    values = (name, "Login", UPDATED, "zstd", data, parent, "/home/demo/shop\n/home/demo/web", "0,1", CREATED)
    return f"INSERT INTO threads VALUES ({','.join('?' * 9)})", values


def store(folder: Path, *rows: tuple[str, tuple[object, ...]], schema: str = SCHEMA) -> Path:
    path = folder / "threads" / "threads.db"
    database(path, schema, rows).close()
    return path


def user(*content: object, name: str = "u1") -> dict[str, Any]:
    return {"User": {"id": name, "content": [{"Text": part} if isinstance(part, str) else part for part in content]}}


def agent(*content: object, **results: Any) -> dict[str, Any]:
    return {"Agent": {"content": content, "tool_results": results, "reasoning_details": None}}


def test_a_thread_is_read_message_by_message(tmp_path: Path) -> None:
    """A reply has reasoning, text and calls. The results of the calls are recorded with it."""
    call = {"ToolUse": {"id": "c1", "name": "read_file", "raw_input": "{}", "input": {"path": "a.py"}}}
    result = {"tool_use_id": "c1", "tool_name": "read_file", "is_error": False, "content": [{"Text": "x = 1"}]}
    reply = agent({"Thinking": {"text": "Hm", "signature": None}}, {"Text": "I look."}, call, c1=result)
    path = store(tmp_path, thread("t1", user("Fix the login"), reply, "Resume"))

    assert turns(FORMAT, path) == {
        "threads/t1.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
            (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
            (Speaker.ASSISTANT, Kind.PROSE, "I look."),
            (Speaker.ASSISTANT, Kind.CALL, "read_file: path=a.py"),
            (Speaker.TOOL, Kind.RESULT, "a.py"),
        ]
    }


def test_a_call_without_a_result_was_interrupted(tmp_path: Path) -> None:
    """A call has no result if the user stopped it."""
    call = {"ToolUse": {"id": "c1", "name": "terminal", "input": {"command": "ls"}}}

    assert turns(FORMAT, store(tmp_path, thread("t1", agent(call))))["threads/t1.jsonl"] == [
        (Speaker.ASSISTANT, Kind.CALL, "terminal: ls")
    ]


def test_mentions_are_named_in_the_prompt(tmp_path: Path) -> None:
    """The text of a mention was not typed."""
    mention = {"Mention": {"uri": {"File": {"abs_path": "/shop/a.py"}}, "content": "x = 1"}}

    assert turns(FORMAT, store(tmp_path, thread("t1", user("Explain", mention))))["threads/t1.jsonl"] == [
        (Speaker.HUMAN, Kind.PROMPT, "Explain\n[/shop/a.py]"),
        (Speaker.HOST, Kind.INJECTED, "x = 1"),
    ]


def test_old_threads_are_read_from_old_databases(tmp_path: Path) -> None:
    """Zed converts a thread only when it is saved, and adds columns only when it starts."""
    messages = [
        {"id": 1, "role": "user", "segments": [{"type": "text", "text": "Why?"}]},
        {
            "id": 2,
            "role": "assistant",
            "segments": [{"type": "thinking", "text": "So"}, {"type": "text", "text": "Because."}],
            "tool_uses": [{"id": "c1", "name": "terminal", "input": {"command": "ls"}}],
            "tool_results": [{"tool_use_id": "c1", "is_error": True, "content": "no"}],
        },
    ]
    row = ("t1", "Login", UPDATED, "json", json.dumps({"version": "0.2.0", "summary": "Login", "messages": messages}))
    path = store(tmp_path, ("INSERT INTO threads VALUES (?,?,?,?,?)", row), schema=f"CREATE TABLE threads ({OLD});")

    assert turns(FORMAT, path)["threads/t1.jsonl"] == [
        (Speaker.HUMAN, Kind.PROMPT, "Why?"),
        (Speaker.ASSISTANT, Kind.THINKING, "So"),
        (Speaker.ASSISTANT, Kind.PROSE, "Because."),
        (Speaker.ASSISTANT, Kind.CALL, "terminal: ls"),
        (Speaker.TOOL, Kind.RESULT, "no"),
    ]


def test_a_thread_has_facts_times_and_tokens(tmp_path: Path) -> None:
    """The counts of a request belong to the prompt that led to it."""
    counts = {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": 4}
    path = store(tmp_path, thread("t1", user("Hi"), request_token_usage={"u1": counts}))
    [data] = contents(FORMAT, path).values()
    found, known = events(FORMAT, data), FORMAT.identify(path, data)

    assert [notes(found, fact)[0][1] for fact in (Fact.TITLE, Fact.MODEL, Fact.CWD, Fact.USAGE)] == [
        "Login",
        "m",
        "/home/demo/shop",
        "u1 16 3",
    ]
    assert (known.started, known.ended) == (1772359200000, 1772359500500)
    assert {turn.at for turn in FORMAT.reader(known).read(lines(data)) if isinstance(turn, Turn)} == {known.started}


def test_a_sub_agent_follows_its_parent(tmp_path: Path) -> None:
    """The prompt of a sub-agent is its parent's."""
    path = store(tmp_path, thread("t2", user("Look"), parent="t1"), thread("t1", user("Hi")))
    names, data = list(contents(FORMAT, path)), contents(FORMAT, path)["threads/t2.jsonl"]
    known = FORMAT.identify(path, data)

    assert names == ["threads/t1.jsonl", "threads/t2.jsonl"]
    assert (known.kind, known.parent_id) == (SessionKind.SUBAGENT, "t1")
    assert turns(FORMAT, path)["threads/t2.jsonl"] == [(Speaker.HOST, Kind.PROMPT, "Look")]


@pytest.mark.parametrize(("data_type", "data"), [("zstd", b"\x28\xb5\x2f\xfd\x01"), ("json", b"{"), ("brotli", b"x")])
def test_a_damaged_thread_does_not_affect_the_others(tmp_path: Path, data_type: str, data: bytes) -> None:
    """Only reading the damaged thread fails."""
    row = ("t0", "Lost", UPDATED, data_type, data, None, None, None, None)
    damaged, whole = FORMAT.sessions(
        store(tmp_path, (f"INSERT INTO threads VALUES ({','.join('?' * 9)})", row), thread("t1", user("Hi")))
    )

    with pytest.raises(
        SourceUnreadable, match="data type of a thread is unknown" if data_type == "brotli" else "damaged"
    ):
        list(damaged.lines())
    assert len(list(whole.lines())) == 2


def test_a_changed_thread_has_another_fingerprint(tmp_path: Path) -> None:
    """Other threads keep their fingerprints. New columns are named."""
    path = store(tmp_path, thread("t1", user("Hi")), thread("t2", user("Hi")))
    before = {session.path.stem: session.fingerprint for session in FORMAT.sessions(path)}
    database(path, "UPDATE threads SET summary = 'Cart' WHERE id = 't1'").close()
    after = {session.path.stem: session.fingerprint for session in FORMAT.sessions(path)}

    assert [name for name in before if before[name] != after[name]] == ["t1"]
    assert FORMAT.unknown_parts(path) == []
    database(path, "ALTER TABLE threads ADD COLUMN mood TEXT").close()
    assert FORMAT.unknown_parts(path) == ["table threads has the unknown columns mood"]


def test_databases_are_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of macOS is found on any system. A database of other threads is not Zed's."""
    linux = store(home / ".local" / "share" / "zed", thread("t1", user("Hi")))
    mac = store(home / "Library" / "Application Support" / "Zed", thread("t1", user("Hi")))
    flatpak = store(tmp_path / "zed", thread("t1", user("Hi")))
    other = store(tmp_path / "other", schema="CREATE TABLE threads (id TEXT, pitch TEXT)")

    assert list(FORMAT.containers()) == [linux, mac]
    assert [FORMAT.is_container(path) for path in (linux, other)] == [True, False]
    monkeypatch.setenv("FLATPAK_XDG_DATA_HOME", str(tmp_path))
    assert list(FORMAT.containers()) == [flatpak, mac]
