"""Cursor: conversations in the editor's databases, in databases of chats, and in transcripts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.cursor import Cursor
from palaver.archiver.formats.registry import all_formats, recognise
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn
from palaver.core.errors import PartlyRead

from ..container_files import contents, database, turn_tuples, turns
from ..container_files import events as unrolled
from ..reading import changed_by_resuming, events, jsonl, notes, skipped, unaccounted

KNOWN = Cursor()
TABLES = """
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""
PUT = "INSERT INTO cursorDiskKV VALUES (?, ?)"
TOOL = {"name": "edit_file", "toolCallId": "t", "params": '{"path": "a.py"}', "status": "completed", "result": "{}"}
BUBBLES: dict[str, Any] = {
    "b1": {"type": 1, "text": "Add a test", "workspaceProjectDir": "/home/demo/shop"},
    "b2": {"type": 2, "text": "", "thinking": {"text": "Hm"}, "modelInfo": {"modelName": "m"}},
    "b3": {"type": 2, "text": "Done.", "toolFormerData": TOOL, "tokenCount": {"inputTokens": 3, "outputTokens": 4}},
}
TOLD = [
    (Speaker.HUMAN, Kind.PROMPT, "Add a test"),
    (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
    (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    (Speaker.ASSISTANT, Kind.CALL, "edit_file: path=a.py"),
    (Speaker.TOOL, Kind.RESULT, "a.py"),
]


def composer(order: str = "b1 b2 b3", **more: Any) -> tuple[str, tuple[object, ...]]:
    headers = [{"bubbleId": each} for each in order.split()]
    return PUT, ("composerData:k1", json.dumps({"name": "Tests", "fullConversationHeadersOnly": headers, **more}))


def bubble(name: str, value: object) -> tuple[str, tuple[object, ...]]:
    return PUT, (f"bubbleId:k1:{name}", value if isinstance(value, bytes | None) else json.dumps(value))


def editor(path: Path, *rows: tuple[str, tuple[object, ...]]) -> Path:
    database(path, TABLES, rows).close()
    return path


def test_messages_come_in_the_order_of_the_conversation(tmp_path: Path) -> None:
    """Messages follow the conversation's order, not the database's. Unlisted messages come last."""
    backwards = [bubble(name, value) for name, value in reversed(BUBBLES.items())]
    path = editor(
        tmp_path / "globalStorage" / "state.vscdb", composer(), *backwards, bubble("b0", {"type": 1, "text": "?"})
    )

    assert turns(KNOWN, path) == {"globalStorage/k1.jsonl": [*TOLD, (Speaker.HUMAN, Kind.PROMPT, "?")]}


def test_a_conversation_has_title_folder_model_and_usage(tmp_path: Path) -> None:
    """The header and the bubbles provide title, folder, model and usage."""
    path = editor(tmp_path / "state.vscdb", composer(), *(bubble(*each) for each in BUBBLES.items()))
    (data,) = contents(KNOWN, path).values()
    found = unrolled(KNOWN, data)

    assert notes(found, Fact.TITLE) == [(1, "Tests")]
    assert set(notes(found, Fact.CWD)) == {(2, "/home/demo/shop")}
    assert notes(found, Fact.MODEL) == [(3, "m")]
    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["3", "4"]]
    assert KNOWN.identify(Path("x"), data).native_id == "k1"


def test_older_storage_is_read_too(tmp_path: Path) -> None:
    """Messages inside a conversation and tabs in a project's database are read."""
    inline = [{"bubbleId": name, **value} for name, value in BUBBLES.items()]
    tab = {
        "tabId": "t1",
        "chatTitle": "Old",
        "bubbles": [{"type": "user", "text": "Q"}, {"type": "ai", "rawText": "A"}],
    }
    key = "workbench.panel.aichat.view.aichat.chatdata"
    row = ("INSERT INTO ItemTable VALUES (?, ?)", (key, json.dumps({"tabs": [tab, 3]})))
    path = editor(tmp_path / "w1" / "state.vscdb", composer("", conversation=inline), row)
    (tmp_path / "w1" / "workspace.json").write_text('{"folder": "file:///home/demo/my%20shop"}')

    found = turns(KNOWN, path)

    assert found["w1/k1.jsonl"] == TOLD
    assert found["w1/t1.jsonl"] == [(Speaker.HUMAN, Kind.PROMPT, "Q"), (Speaker.ASSISTANT, Kind.PROSE, "A")]
    assert KNOWN.identify(Path("x"), contents(KNOWN, path)["w1/t1.jsonl"]).cwd == "/home/demo/my shop"


def test_unexpected_values_affect_only_their_line(tmp_path: Path) -> None:
    """NULL, invalid values, other types, and messages of a missing conversation do not affect other lines."""
    odd = [bubble("o1", None), bubble("o2", b"\xff{garbled"), bubble("o3", [3]), bubble("o4", {"type": 9})]
    odd += [(PUT, ("bubbleId:lost:b", '{"type": 1, "text": "Lost"}')), (PUT, ("composerData:", b"\x00"))]
    path = editor(tmp_path / "state.vscdb", composer(), *(bubble(*each) for each in BUBBLES.items()), *odd)

    told = contents(KNOWN, path)
    data = told[f"{tmp_path.name}/k1.jsonl"]

    assert turn_tuples(unrolled(KNOWN, data)) == TOLD
    assert [reason for _, reason in skipped(unrolled(KNOWN, data))] == ["empty"] * 3 + ["unknown-type:bubble 9"]
    assert turns(KNOWN, path)[f"{tmp_path.name}/lost.jsonl"] == [(Speaker.HUMAN, Kind.PROMPT, "Lost")]
    assert unaccounted(KNOWN, data) == {}
    assert changed_by_resuming(KNOWN, data) == []


def test_a_fingerprint_changes_only_with_its_conversation(tmp_path: Path) -> None:
    """A fingerprint also changes if a value is replaced by another value of the same length."""
    path = editor(tmp_path / "state.vscdb", composer(), bubble("b1", BUBBLES["b1"]), (PUT, ("composerData:k2", "{}")))
    before = {each.archive_name: each.fingerprint for each in KNOWN.sessions(path)}
    database(path, "", [bubble("b1", {**BUBBLES["b1"], "text": "Add a TEST"})]).close()
    after = {each.archive_name: each.fingerprint for each in KNOWN.sessions(path)}

    assert [name for name in before if before[name] != after[name]] == [f"{tmp_path.name}/k1.jsonl"]


def test_a_chat_has_its_messages_in_order(tmp_path: Path) -> None:
    """Binary blobs are ignored, and tool output with a user envelope is not a prompt."""
    path = tmp_path / "w1" / "c1" / "store.db"
    blobs: list[object] = [
        json.dumps({"role": "system", "content": "Be brief"}),
        b"\x0a\x20binary",
        json.dumps({"role": "user", "content": "<user_info>\nx\n</user_info>"}),
        json.dumps({"role": "user", "content": [{"type": "text", "text": "<user_query>\nGo\n</user_query>"}]}),
        json.dumps(
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "ls", "args": {}}]}
        ).encode(),
        json.dumps({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "result": "a.py"}]}),
        json.dumps({"role": "tool", "content": [{"type": "text", "text": "<user_query>\nObey\n</user_query>"}]}),
        "{broken",
    ]
    script = "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT, value TEXT)"
    rows = [("INSERT INTO blobs VALUES (?, ?)", (f"id{place}", data)) for place, data in enumerate(blobs)]
    named = json.dumps({"agentId": "c1", "name": "Listing", "createdAt": 1_790_000_000_000}).encode().hex()
    database(path, script, [*rows, ("INSERT INTO meta VALUES ('0', ?)", (named,))]).close()

    assert turns(KNOWN, path) == {
        "w1/c1.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Go"),
            (Speaker.ASSISTANT, Kind.CALL, "ls"),
            (Speaker.TOOL, Kind.RESULT, "a.py"),
        ]
    }
    (data,) = contents(KNOWN, path).values()
    assert notes(unrolled(KNOWN, data), Fact.TITLE) == [(1, "Listing")]


def said_in(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(content)}}


def test_a_transcript_is_read_line_by_line() -> None:
    """Equal lines of a transcript are different prompts."""
    text = {"type": "text", "text": "Go"}
    call = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "code"}]}
    records = [said_in("user", text), said_in("assistant", call), said_in("user", result), said_in("user", text)]

    found = events(KNOWN, *records, {"type": "turn_ended", "status": "success"})

    assert [kind for _, kind, _ in turn_tuples(found)] == [Kind.PROMPT, Kind.CALL, Kind.RESULT, Kind.PROMPT]
    assert skipped(found) == [(5, "bookkeeping")]
    assert [known.agent for known in all_formats() if known.recognises(records)] == ["cursor"]
    assert recognise(jsonl(records)) is not None


def test_a_transcript_has_the_time_of_its_file_and_its_parent(tmp_path: Path) -> None:
    """A transcript has no times or IDs, so its time comes from the file."""
    path = tmp_path / "p1" / "subagents" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("")
    session = KNOWN.identify(path, b"")

    assert (session.native_id, session.kind, session.parent_id) == ("s1", SessionKind.SUBAGENT, "p1")
    assert session.started == path.stat().st_mtime_ns // 1_000_000


def test_databases_and_transcripts_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases of the editor and of chats, and agent transcripts, are found."""
    monkeypatch.setattr("sys.platform", "linux")
    places = [
        home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb",
        home / ".config" / "Cursor" / "User" / "workspaceStorage" / "w1" / "state.vscdb",
    ]
    for place in places:
        editor(place)
    transcript = home / ".cursor" / "projects" / "shop" / "agent-transcripts" / "a1" / "a1.jsonl"
    for path in (transcript, transcript.parents[2] / "other.jsonl"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    assert list(KNOWN.containers()) == places
    assert all(map(KNOWN.is_container, places))
    assert [path for root in KNOWN.roots() for path in KNOWN.transcripts(root)] == [transcript]


LIST = "INSERT INTO ItemTable VALUES (?, ?)"


def workspace(user: Path, name: str, about: dict[str, Any], conversations: dict[str, Any] | None = None) -> None:
    """Store a workspace with this description, and with a list of conversations."""
    folder = user / "workspaceStorage" / name
    rows = [(LIST, ("composer.composerData", json.dumps(conversations)))] if conversations is not None else []
    editor(folder / "state.vscdb", *rows)
    (folder / "workspace.json").write_text(json.dumps(about))


def test_conversations_of_the_global_database_have_their_own_folders(tmp_path: Path) -> None:
    """The folder is in the list of the database, or in the workspace that lists or has opened the conversation."""
    user = tmp_path / "User"

    def listed(*names: str) -> dict[str, Any]:
        return {"allComposers": [{"composerId": name} for name in names]}

    workspace(user, "w1", {"folder": "file:///home/demo/my%20shop"}, listed("in folder", "moved"))
    workspace(user, "w2", {"workspace": "file:///home/demo/all.code-workspace"}, listed("in workspace"))
    workspace(user, "w3", {"folder": "file:///c%3A/code/bakery"}, {"selectedComposerIds": ["opened", "in folder"]})
    workspace(user, "w4", {"folder": "vscode-remote://wsl%2Bubuntu/home/demo/inn"}, {**listed("remote"), "x": 1})
    workspace(user, "w5", {}, listed("nowhere"))
    workspace(user, "w6", {"folder": "file:///home/demo/old"})
    (user / "workspaceStorage" / "w7").mkdir()
    (user / "workspaceStorage" / "w7" / "workspace.json").write_text('{"folder": "file:///x"}')
    (user / "workspaceStorage" / "w7" / "state.vscdb").write_bytes(b"no database")
    registered = [
        {"composerId": "moved", "workspaceIdentifier": {"uri": {"fsPath": "/home/demo/market", "scheme": "file"}}},
        {"composerId": "in list", "workspaceIdentifier": {"configPath": {"external": "file:///w/team.code-workspace"}}},
        {"composerId": "odd", "workspaceIdentifier": ["x"]},
    ]
    names = ["in folder", "moved", "in workspace", "opened", "remote", "nowhere", "in list", "odd"]
    path = editor(
        user / "globalStorage" / "state.vscdb",
        (LIST, ("composer.composerHeaders", json.dumps({"allComposers": registered}))),
        *((PUT, (f"composerData:{name}", "{}")) for name in names),
    )

    sessions = [KNOWN.identify(Path("x"), data) for data in contents(KNOWN, path).values()]
    found = {session.native_id: session.cwd for session in sessions}

    assert found == {
        "in folder": "/home/demo/my shop",
        "moved": "/home/demo/market",
        "in workspace": "/home/demo/all",
        "opened": "c:/code/bakery",
        "remote": "/home/demo/inn",
        "nowhere": "",
        "in list": "/w/team",
        "odd": "",
    }


def test_agent_transcripts_have_the_folder_of_a_workspace_with_their_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a transcript is named after its project, with hyphens in place of other characters."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    user = home / ".config" / "Cursor" / "User"
    names = ["home-demo-my-shop", "home-demo-inn"]
    paths = [home / ".cursor" / "projects" / name / "agent-transcripts" / "x" / "x.jsonl" for name in names]

    before = [KNOWN.identify(path, b"").cwd for path in paths]
    workspace(user, "w1", {"folder": "file:///home/demo/my_shop"})
    after = [KNOWN.identify(path, b"").cwd for path in paths]

    assert (before, after) == (["", ""], ["/home/demo/my_shop", ""])


def test_a_prompt_has_the_time_that_the_program_wrote_above_it() -> None:
    """The written time has a time zone. Other text in its place gives no time, and is no part of the prompt."""
    base = 1_784_978_760_000  # 2026-07-25 11:26 UTC
    times = {
        "Saturday, Jul 25, 2026, 2:26 PM (UTC+3)": base,
        "Saturday, Jul 25, 2026, 4:56 PM (UTC+5:30)": base,
        "Saturday, July 25, 2026, 3:26 AM (UTC-8)": base,
        "Saturday, Jul 25, 2026, 11:26 AM (UTC)": base,
        "Jul 25, 2026, 11:26:07 (GMT)": base + 7_000,
        "Saturday, Jul 25, 2026, 12:26 AM (UTC+1)": base - 12 * 3_600_000,
        "Saturday, Jul 25, 2026, 12:26 PM (UTC+1)": base,
        "2026-07-25T11:26:00Z": base,
        "Saturday, Jul 45, 2026, 2:26 PM (UTC+3)": None,
        "yesterday": None,
    }
    found: dict[str, list[tuple[str, int | None]]] = {}
    for written in times:
        for text in (
            f"<timestamp>{written}</timestamp>\n<user_query>\nWhy?\n</user_query>",
            f"<timestamp>{written}</timestamp>\nWhy?",
        ):
            record = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}
            found.setdefault(written, []).extend(
                (event.text, event.at) for event in events(KNOWN, record) if isinstance(event, Turn)
            )

    assert found == {written: [("Why?", at)] * 2 for written, at in times.items()}


def test_a_database_is_read_with_the_tables_that_it_has(tmp_path: Path) -> None:
    """Conversations need only their own table. A table without the needed columns is named after all else is read."""
    store = (
        "CREATE TABLE cursorDiskKV (key TEXT, value BLOB); INSERT INTO cursorDiskKV VALUES ('composerData:k', '{}');"
    )
    cases = {
        store: (1, ""),
        f"{store} CREATE TABLE ItemTable (key TEXT, content BLOB);": (1, "table ItemTable has no column key or value"),
        "CREATE TABLE ItemTable (key TEXT, value BLOB)": (0, ""),
        "CREATE TABLE cursorDiskKV (name TEXT)": (0, "table cursorDiskKV has no column key or value"),
        "CREATE TABLE conversation (id TEXT)": (0, "no table ItemTable or cursorDiskKV"),
    }
    found: dict[str, tuple[int, str]] = {}
    for number, script in enumerate(cases):
        path, count, reason = tmp_path / str(number) / "state.vscdb", 0, ""
        database(path, script).close()
        try:
            for _ in KNOWN.sessions(path):
                count += 1
        except PartlyRead as error:
            reason = error.reason
        found[script] = count, reason

    assert found == cases
