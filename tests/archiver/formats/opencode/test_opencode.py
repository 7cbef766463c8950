"""OpenCode sessions in a database, in files and in exports."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from palaver.archiver.formats import ContainedSession
from palaver.archiver.formats.opencode import OpenCode
from palaver.archiver.formats.registry import recognise
from palaver.archiver.lines import HEAD_BYTES, opened
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn
from palaver.core.errors import PartlyRead

from ..container_files import contents, database, events, turn_tuples, turns
from ..reading import changed_by_resuming, jsonl, notes, skipped, unaccounted

KNOWN = OpenCode()
AT = 1_790_000_000_000
SCHEMA = """
PRAGMA journal_mode=WAL;
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
    time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_updated INTEGER, data TEXT);
"""
SESSION: dict[str, Any] = {"id": "ses_1", "directory": "/home/demo/shop", "title": "Fix the cart", "version": "1.2.3"}
TOOL = {"status": "completed", "input": {"filePath": "/a.py"}, "output": "code"}
MESSAGES: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        {"id": "msg_1", "role": "user", "time": {"created": AT}},
        [{"type": "text", "text": "Why?"}, {"type": "text", "text": "Remember", "synthetic": True}],
    ),
    (
        {"id": "msg_2", "role": "assistant", "time": {"created": AT + 1}, "modelID": "m", "tokens": {"input": 3}},
        [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Hm"},
            {"type": "tool", "tool": "read", "callID": "c", "state": TOOL},
            {"type": "text", "text": "Because."},
        ],
    ),
]
TOLD = [
    (Speaker.HUMAN, Kind.PROMPT, "Why?"),
    (Speaker.HOST, Kind.INJECTED, "Remember"),
    (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
    (Speaker.ASSISTANT, Kind.CALL, "read: filePath=/a.py"),
    (Speaker.TOOL, Kind.RESULT, "/a.py"),
    (Speaker.ASSISTANT, Kind.PROSE, "Because."),
]


def put(program: apsw.Connection, session: dict[str, Any] = SESSION, messages: Any = MESSAGES) -> None:
    own = {name: session.get(name) for name in ("id", "parent_id", "directory", "title", "version")}
    program.execute("INSERT OR REPLACE INTO session VALUES (?, 'p', ?, ?, ?, ?, 1, ?)", (*own.values(), AT))
    for info, parts in messages:
        data = {name: value for name, value in info.items() if name != "id"}
        program.execute("INSERT INTO message VALUES (?, ?, ?, 1, ?)", (info["id"], own["id"], AT, json.dumps(data)))
        for place, part in enumerate(parts):
            number = f"prt_{info['id']}_{place}"
            program.execute(
                "INSERT INTO part VALUES (?, ?, ?, 1, ?)", (number, info["id"], own["id"], json.dumps(part))
            )


def in_files(storage: Path) -> Path:
    path = storage / "session" / "p" / "ses_1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(SESSION, indent=2))
    for info, parts in MESSAGES:
        message = storage / "message" / "ses_1" / f"{info['id']}.json"
        message.parent.mkdir(parents=True, exist_ok=True)
        message.write_text(json.dumps({**info, "sessionID": "ses_1"}, indent=2))
        for place, part in enumerate(parts):
            piece = storage / "part" / info["id"] / f"prt_{place}.json"
            piece.parent.mkdir(parents=True, exist_ok=True)
            piece.write_text(json.dumps({**part, "id": f"prt_{place}", "messageID": info["id"]}, indent=2))
    return path


def exported(path: Path) -> bytes:
    messages: list[Any] = [{"info": {**info, "sessionID": "ses_1"}, "parts": parts} for info, parts in MESSAGES]
    path.write_text(json.dumps({"info": SESSION, "messages": messages}, indent=2))
    with opened(path) as file:
        return file.read()


def in_database(path: Path) -> bytes:
    program = database(path, SCHEMA)
    put(program)
    program.close()
    (data,) = contents(KNOWN, path).values()
    return data


@pytest.mark.parametrize(("metadata", "failed"), [({"exit": 0}, False), ({"exit": 2}, True), ({}, False)])
def test_the_exit_code_of_a_command_counts(metadata: dict[str, Any], failed: bool, tmp_path: Path) -> None:
    """A shell command with another exit code than 0 failed, although the tool completed."""
    state = {"status": "completed", "input": {"command": "make"}, "output": "out", "metadata": metadata}
    parts = [{"type": "tool", "tool": "bash", "callID": "c", "state": state}]
    program = database(tmp_path / "opencode.db", SCHEMA)
    put(program, messages=[({"id": "msg_1", "role": "assistant", "time": {"created": AT}}, parts)])
    program.close()
    (data,) = contents(KNOWN, tmp_path / "opencode.db").values()

    results = [event for event in events(KNOWN, data) if isinstance(event, Turn) and event.kind is Kind.RESULT]

    assert [(result.text, result.failed) for result in results] == [("out", failed)]


def test_a_session_is_the_same_in_every_storage(tmp_path: Path) -> None:
    """Records have the same IDs in every storage, so a migrated session is not archived twice."""
    forms = [
        in_database(tmp_path / "opencode.db"),
        b"".join(KNOWN.sessions(in_files(tmp_path / "storage")).__next__().lines()),
        exported(tmp_path / "export.json"),
    ]

    found = [events(KNOWN, data) for data in forms]

    assert [turn_tuples(each) for each in found] == [TOLD] * 3
    records = [[event.record for event in each if isinstance(event, Turn)] for each in found]
    assert records[0] == records[1] == records[2]
    assert {KNOWN.identify(Path("x"), data).native_id for data in forms} == {"ses_1"}


def test_a_session_has_title_folder_version_model_and_usage(tmp_path: Path) -> None:
    """Session facts are noted, except a placeholder title."""
    found = events(KNOWN, in_database(tmp_path / "opencode.db"))

    assert notes(found, Fact.TITLE) == [(1, "Fix the cart")]
    assert notes(found, Fact.CWD)[0] == (1, "/home/demo/shop")
    assert notes(found, Fact.VERSION) == [(1, "1.2.3")]
    assert notes(found, Fact.MODEL) == [(3, "m")]
    assert notes(found, Fact.USAGE) == [(3, "msg_2 3 0")]
    assert notes(events(KNOWN, jsonl([{"info": {**SESSION, "title": "New session - 1"}}])), Fact.TITLE) == []


def test_a_sub_agent_is_asked_by_its_parent(tmp_path: Path) -> None:
    """The session of a sub-agent contains the ID of its parent."""
    program = database(tmp_path / "opencode.db", SCHEMA)
    put(program, {**SESSION, "parent_id": "ses_0"}, MESSAGES[:1])
    program.close()
    (data,) = contents(KNOWN, tmp_path / "opencode.db").values()
    session = KNOWN.identify(Path("x"), data)

    assert (session.kind, session.parent_id) == (SessionKind.SUBAGENT, "ses_0")
    assert turn_tuples(events(KNOWN, data))[0] == (Speaker.HOST, Kind.PROMPT, "Why?")


def test_failures_are_turns() -> None:
    """Failed tools and interrupted replies are turns. A running tool has no result."""
    parts: list[dict[str, Any]] = [
        {"type": "tool", "tool": "bash", "callID": "a", "state": {"status": "error", "error": "no", "input": {}}},
        {"type": "tool", "tool": "bash", "callID": "b", "state": {"status": "running", "input": {"command": "ls"}}},
    ]
    error = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
    found = events(KNOWN, jsonl([{"info": {"id": "m", "role": "assistant", "error": error}, "parts": parts}]))

    assert turn_tuples(found)[1:] == [
        (Speaker.TOOL, Kind.RESULT, "no"),
        (Speaker.ASSISTANT, Kind.CALL, "bash: ls"),
        (Speaker.HOST, Kind.INJECTED, "aborted"),
    ]


def test_a_fingerprint_changes_only_with_its_session(tmp_path: Path) -> None:
    """A fingerprint changes only with its session, so only changed sessions of a database are read."""
    path = tmp_path / "opencode.db"
    program = database(path, SCHEMA)
    put(program)
    put(program, {**SESSION, "id": "ses_2"}, [({"id": "msg_9", "role": "user"}, [])])
    before = {each.archive_name: each.fingerprint for each in KNOWN.sessions(path)}

    program.execute("UPDATE part SET data = '{}' WHERE id = 'prt_msg_1_0'")
    after = {each.archive_name: each.fingerprint for each in KNOWN.sessions(path)}
    program.close()

    assert [name for name in before if before[name] != after[name]] == ["opencode.db/ses_1.jsonl"]


def test_unexpected_values_affect_only_their_line(tmp_path: Path) -> None:
    """Invalid JSON, other types, and messages of a missing session do not affect other lines."""
    path = tmp_path / "opencode.db"
    program = database(path, SCHEMA)
    put(program)
    odd: list[Any] = ['{"role": "us', b"\xff\x00", 3, None, "[]", '{"role": "robot"}', "x" * 3_000_000]
    for place, value in enumerate(odd):
        program.execute("INSERT INTO message VALUES (?, 'ses_1', ?, 1, ?)", (f"odd_{place}", AT + 9, value))
    program.execute("INSERT INTO message VALUES ('lost', NULL, NULL, NULL, NULL)")
    program.execute("INSERT INTO session VALUES (CAST(x'ff' AS TEXT), NULL, 3, x'00ff', '\x1b[31m', NULL, 'x', -1)")
    program.close()

    told = contents(KNOWN, path)
    data = told["opencode.db/ses_1.jsonl"]

    assert len(told) == 2
    assert turn_tuples(events(KNOWN, data)) == TOLD
    assert [reason for _, reason in skipped(events(KNOWN, data))] == [
        *["unknown-type:message"] * 5,
        "unknown-type:role robot",
        "unknown-type:message",
    ]
    assert unaccounted(KNOWN, data) == {}
    assert changed_by_resuming(KNOWN, data) == []


def test_missing_columns_and_newer_tables_are_named_after_all_else_is_read(tmp_path: Path) -> None:
    """Every readable session is read. Then an error names the tables that were not read."""
    old = "CREATE TABLE session (id TEXT); "
    text, entry = '{"type": "text", "text": "Why?"}', '{"text": "Why?"}'
    asked = "INSERT INTO session VALUES ('s'); INSERT INTO message VALUES ('m', 's', '{\"role\": \"user\"}'); "
    messages = f"{old}CREATE TABLE message (id TEXT, session_id TEXT, data TEXT); {asked}"
    parts = f"{messages}CREATE TABLE part (message_id TEXT, data TEXT); INSERT INTO part VALUES ('m', '{text}'); "
    entries = "CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, data TEXT); "
    told = f"INSERT INTO session_message VALUES ('e', 's', 'user', '{entry}'); "
    newer = "CREATE TABLE session_v3 (id TEXT, blob BLOB); INSERT INTO session_v3 VALUES ('n', x'00'); "
    later = "CREATE TABLE turn (session_id TEXT, data TEXT); INSERT INTO turn VALUES ('s', '{}'); "
    other = "INSERT INTO turn VALUES ('t', '{}'); "
    cases = {
        parts: (1, ""),
        f"{parts}CREATE TABLE session_v3 (id TEXT); ": (1, ""),
        f"{parts}{newer}": (1, "table session_v3 of a newer version of OpenCode is not read"),
        f"{parts}{later}": (1, ""),
        f"{parts}{later}{other}": (1, "table turn of a newer version of OpenCode is not read"),
        f"{parts}CREATE TABLE session_v3 (id TEXT); INSERT INTO session_v3 VALUES ('s'); ": (1, ""),
        f"{old}INSERT INTO session VALUES ('s'); {entries}{told}": (1, ""),
        f"{messages}CREATE TABLE part (message_id TEXT); {entries}{told}": (1, "table part has no column data"),
        messages: (0, "no table part"),
        f"{old}CREATE TABLE message (id TEXT)": (0, "table message has no column data and session_id; no table part"),
        f"{old}": (0, "no table session_message"),
        f"{entries}": (0, "no table of sessions with a column id"),
        newer: (0, "no table of sessions with a column id; no table session_message; table session_v3 of a newer"),
    }
    wrong: dict[str, object] = {}
    for number, (script, (prompts, problem)) in enumerate(cases.items()):
        path = tmp_path / str(number) / "opencode.db"
        database(path, script).close()
        found, reason = list[ContainedSession](), ""
        try:
            found += KNOWN.sessions(path)
        except PartlyRead as error:
            reason = error.reason
        told_turns = [turn for each in found for turn in turn_tuples(events(KNOWN, b"".join(each.lines())))]
        if told_turns != [(Speaker.HUMAN, Kind.PROMPT, "Why?")] * prompts or not reason.startswith(problem):
            wrong[script] = told_turns, reason
        elif bool(reason) != bool(problem):
            wrong[script] = reason

    assert wrong == {}


def test_databases_and_sessions_in_files_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases of all channels and the configured database are found. Other databases are not."""
    data = home / ".local" / "share" / "opencode"
    session = in_files(data / "storage")
    for name in ("opencode.db", "opencode-beta.db", "other.db", "named.db"):
        database(data / name, SCHEMA).close()
    monkeypatch.setenv("OPENCODE_DB", "named.db")

    found = list(KNOWN.containers())

    assert found == [data / "named.db", data / "opencode-beta.db", data / "opencode.db", session]
    assert all(map(KNOWN.is_container, found[1:]))
    assert not KNOWN.is_container(data / "other.db")
    assert not KNOWN.may_be_transcript(data / "storage" / "message" / "ses_1" / "msg_1.json", data)


def test_folders_can_be_named_by_the_ids_in_the_files(tmp_path: Path) -> None:
    """The messages of a session are found by the session's ID if its file has another name."""
    path = in_files(tmp_path / "storage")
    renamed = path.rename(path.with_name("ses_first.json"))
    for message in (tmp_path / "storage" / "message" / "ses_1").iterdir():
        message.rename(message.with_name(f"of_{message.name}"))

    assert turns(KNOWN, renamed) == {"p/ses_first.jsonl": TOLD}
    renamed.write_text('{"directory": "/home/demo/shop"}')
    assert turns(KNOWN, renamed) == {"p/ses_first.jsonl": []}


def test_an_export_is_recognised(tmp_path: Path) -> None:
    """An export is recognised by its header."""
    found = recognise(exported(tmp_path / "export.json")[:HEAD_BYTES])

    assert found is not None
    assert found.agent == "opencode"


NEWER_TABLES = """
CREATE TABLE session_v2 (id TEXT PRIMARY KEY, parent_id TEXT, fork_session_id TEXT, directory TEXT, title TEXT,
    version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER,
    time_updated INTEGER, data TEXT);
"""


def put_newer(
    program: apsw.Connection, *entries: tuple[str, dict[str, Any]], session: str = "ses_2", at: int = AT
) -> None:
    """Store a session with these messages in the tables of version 2."""
    program.execute(
        "INSERT OR REPLACE INTO session_v2 VALUES (?, NULL, 'ses_0', '/home/demo/bakery', 'Bake', '2.0.1', ?, ?)",
        (session, at, at),
    )
    for place, (kind, data) in enumerate(entries):
        # The names of messages are in another order than the messages.
        name = f"msg_{session}_{9 - place}"
        program.execute(
            "INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, session, kind, place + 1, at + place, at + place, json.dumps(data)),
        )


def test_messages_of_version_2_are_read(tmp_path: Path) -> None:
    """Every type of message has the same kinds of turns as in version 1. Only new types are unknown."""
    done = {"status": "completed", "input": {"filePath": "/a.py"}, "content": [{"type": "text", "text": "ok"}]}
    failed = {"status": "error", "input": {"command": "make"}, "error": {"type": "unknown", "message": "no rule"}}
    running = {"status": "running", "input": {"command": "ls"}}
    content: list[dict[str, Any]] = [
        {"type": "reasoning", "text": "Hm"},
        {"type": "text", "text": "I try."},
        {"type": "tool", "id": "c1", "name": "edit", "state": done},
        {"type": "tool", "id": "c2", "name": "bash", "state": failed},
        {"type": "tool", "id": "c3", "name": "bash", "state": running},
    ]
    tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 10, "write": 0}}
    reply = {"model": {"id": "m2"}, "content": content, "tokens": tokens, "time": {"created": AT + 7}}
    program = database(tmp_path / "opencode.db", NEWER_TABLES)
    put_newer(
        program,
        ("user", {"text": "Bake it", "files": [{"uri": "file:///plan.md", "name": "plan.md"}]}),
        ("synthetic", {"text": "Be brief"}),
        ("assistant", reply),
        ("shell", {"command": "ls", "exit": 1, "output": "denied"}),
        ("compaction", {"status": "completed", "summary": "So far."}),
        ("compaction", {"status": "failed", "error": {"message": "too long"}}),
        ("assistant", {"content": [], "error": {"type": "aborted"}}),
        ("system", {"text": "x"}),
        ("idle", {}),
        ("hologram", {}),
    )
    program.close()
    (data,) = contents(KNOWN, tmp_path / "opencode.db").values()
    found, session = events(KNOWN, data), KNOWN.identify(Path("x"), data)

    assert turn_tuples(found) == [
        (Speaker.HUMAN, Kind.PROMPT, "Bake it\n\n[file plan.md]"),
        (Speaker.HOST, Kind.INJECTED, "Be brief"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I try."),
        (Speaker.ASSISTANT, Kind.CALL, "edit: filePath=/a.py"),
        (Speaker.TOOL, Kind.RESULT, "/a.py"),
        (Speaker.ASSISTANT, Kind.CALL, "bash: make"),
        (Speaker.TOOL, Kind.RESULT, "no rule"),
        (Speaker.ASSISTANT, Kind.CALL, "bash: ls"),
        (Speaker.HUMAN, Kind.CALL, "! ls"),
        (Speaker.TOOL, Kind.RESULT, "denied"),
        (Speaker.HOST, Kind.COMPACTION, "So far."),
        (Speaker.HOST, Kind.INJECTED, "too long"),
        (Speaker.HOST, Kind.INJECTED, "aborted"),
    ]
    assert skipped(found) == [(9, "context"), (10, "bookkeeping"), (11, "unknown-type:hologram")]
    assert notes(found, Fact.MODEL) == [(4, "m2")]
    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["15", "3"]]
    assert (notes(found, Fact.TITLE), notes(found, Fact.PARENT)) == ([(1, "Bake")], [(1, "ses_0")])
    assert (session.native_id, session.kind) == ("ses_2", SessionKind.MAIN)
    assert [turn.writes for turn in found if isinstance(turn, Turn) and turn.writes] == [("/a.py",)]
    assert unaccounted(KNOWN, data) == {}
    assert changed_by_resuming(KNOWN, data) == []


def test_both_generations_of_a_database_are_read_once(tmp_path: Path) -> None:
    """A session with messages in the tables of both generations has each message once, oldest first."""
    program = database(tmp_path / "opencode.db", SCHEMA + NEWER_TABLES)
    put(program)
    put_newer(program, ("user", {"text": "Other?"}), session="ses_2")
    put_newer(program, ("user", {"text": "Why?"}), session="ses_1", at=AT)  # A copy of an older message.
    program.execute("UPDATE session_message SET seq = 0 WHERE session_id = 'ses_1'")
    later = json.dumps({"text": "And now?"})
    program.execute("INSERT INTO session_message VALUES ('msg_new', 'ses_1', 'user', 9, ?, 1, ?)", (AT + 60_000, later))
    program.close()

    found = turns(KNOWN, tmp_path / "opencode.db")

    assert found == {
        "opencode.db/ses_1.jsonl": [*TOLD, (Speaker.HUMAN, Kind.PROMPT, "And now?")],
        "opencode.db/ses_2.jsonl": [(Speaker.HUMAN, Kind.PROMPT, "Other?")],
    }


def test_the_state_changes_with_any_file_of_a_session(tmp_path: Path) -> None:
    """A new message changes the state, although the session's header file is unchanged."""
    path = in_files(tmp_path / "storage")
    before = KNOWN.container_state(path)
    assert KNOWN.container_state(path) == before
    (tmp_path / "storage" / "message" / "ses_1" / "msg_3.json").write_text('{"role": "user"}')

    assert KNOWN.container_state(path) != before
    assert turns(KNOWN, path)["p/ses_1.jsonl"] == TOLD
