"""Hermes: the database, relations of sessions, rewinds, and the files of early versions."""

import io
import json
from pathlib import Path

from palaver.archiver.formats.hermes import Hermes
from palaver.archiver.lines import document_lines
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn

from ..container_files import contents, database, events, turns
from ..reading import jsonl, notes, prompts, session, skipped
from ..reading import turns as read_turns

KNOWN = Hermes()
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT, parent_session_id TEXT,
    started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, input_tokens INTEGER,
    output_tokens INTEGER, cache_read_tokens INTEGER, cwd TEXT, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, reasoning TEXT,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0);
"""
SESSION = "INSERT INTO sessions (id, source, started_at, parent_session_id, model_config, end_reason) VALUES "
MESSAGE = "INSERT INTO messages (session_id, role, content, timestamp, active, compacted) VALUES "
CALL = "INSERT INTO messages (session_id, role, content, tool_calls, reasoning, timestamp) VALUES "
RESULT = "INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp) VALUES "
WHOLE = "INSERT INTO sessions VALUES (?, 'cli', 'm', NULL, NULL, 1772359200.5, 1772359300.0, 'user_exit', 4, 7, 3, 5, "
MAIN = "20260301_100000_ab12cd"


def store(home: Path, *rows: tuple[str, tuple[object, ...]]) -> Path:
    """Create the database, and return its path."""
    path = home / ".hermes" / "state.db"
    database(path, SCHEMA, rows).close()
    return path


def test_a_session_of_the_database_is_read(home: Path) -> None:
    """A session has its title, folder and tokens. A result is the text in the JSON of the tool."""
    calls = json.dumps([{"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}])
    path = store(
        home,
        (
            f"{WHOLE}'/home/demo/shop', 'Login')",
            (MAIN,),
        ),
        (f"{MESSAGE}(?, 'user', 'Fix the login', 1772359201, 1, 0)", (MAIN,)),
        (
            f"{CALL}(?, 'assistant', 'I look.', ?, 'Hm', 1772359202)",
            (MAIN, calls),
        ),
        (
            f"{RESULT}(?, 'tool', ?, 'c1', 'read_file', 1772359203)",
            (MAIN, '{"output": "x", "exit_code": 0}'),
        ),
    )

    assert list(KNOWN.containers()) == [path]
    [(name, data)] = contents(KNOWN, path).items()
    assert turns(KNOWN, path)[name] == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "read_file: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
    ]
    found = events(KNOWN, data)
    assert notes(found, Fact.TITLE) == [(1, "Login")]
    assert notes(found, Fact.USAGE) == [(5, f"{MAIN} 12 3")]


def test_the_relation_to_a_parent_decides_what_a_session_is(home: Path) -> None:
    """A session that continues its parent after a compaction, or branches off, is no sub-agent."""
    path = store(
        home,
        (f"{SESSION}('main', 'cli', 1, NULL, NULL, NULL)", ()),
        (f"{SESSION}('full', 'cli', 2, NULL, NULL, 'compression')", ()),
        (f"{SESSION}('task', 'cli', 3, 'main', '{{}}', NULL)", ()),
        (f"{SESSION}('next', 'cli', 4, 'full', '{{}}', NULL)", ()),
        (f"{SESSION}('branch', 'cli', 5, 'main', ?, NULL)", (json.dumps({"_branched_from": "main"}),)),
    )
    found = {}
    for data in contents(KNOWN, path).values():
        made = KNOWN.identify(Path("x"), data)
        found[made.native_id] = (made.kind, made.parent_id, notes(events(KNOWN, data), Fact.CONTINUES))

    assert found == {
        "main": (SessionKind.MAIN, "", []),
        "full": (SessionKind.MAIN, "", []),
        "task": (SessionKind.SUBAGENT, "main", []),
        "next": (SessionKind.MAIN, "", [(1, "full")]),
        "branch": (SessionKind.MAIN, "", []),
    }


def test_rewound_messages_are_abandoned_and_compacted_ones_are_not(home: Path) -> None:
    """Both are inactive, but the user only abandoned the rewound ones."""
    path = store(
        home,
        (f"{SESSION}('a', 'cli', 1, NULL, NULL, NULL)", ()),
        *[
            (f"{MESSAGE}('a', 'user', ?, 1, ?, ?)", row)
            for row in [("One", 0, 1), ("Two", 1, 0), ("Three", 0, 0), ("Four", 1, 0)]
        ],
    )
    [data] = contents(KNOWN, path).values()

    assert notes(events(KNOWN, data), Fact.REWOUND) == [(5, "4")]


def test_a_rewind_changes_the_state_of_a_session(home: Path) -> None:
    """The program updates the session's row when it marks messages as inactive."""
    path = store(
        home,
        (f"{SESSION}('a', 'cli', 1, NULL, NULL, NULL)", ()),
        (f"{MESSAGE}('a', 'user', 'One', 1, 1, 0)", ()),
    )
    [before] = [part.fingerprint for part in KNOWN.sessions(path)]
    database(path, "UPDATE messages SET active = 0; UPDATE sessions SET message_count = 1").close()
    [after] = [part.fingerprint for part in KNOWN.sessions(path)]

    assert before != after


def test_a_message_without_a_time_has_that_of_the_session() -> None:
    """JSON documents have times of the whole session only. The ID of a session is the time of its start."""
    document = {
        "session_id": "20260301_100000_ab12cd",
        "platform": "cli",
        "session_start": "2026-03-01T10:00:00.500000",
        "tools": [{"type": "function", "function": {"name": "x"}}],
        "messages": [{"role": "user", "content": "Fix the login"}],
    }
    with io.BytesIO(json.dumps(document, indent=2).encode()) as file:
        data = document_lines(file).read()

    found = events(KNOWN, data)
    assert [(event.text, event.at) for event in found if isinstance(event, Turn)] == [
        ("Fix the login", 1_772_359_200_000)
    ]
    assert [reason for _, reason in skipped(found)] == ["context"]


def test_the_prompt_of_a_scheduled_job_begins_after_the_text_of_the_program() -> None:
    """The added text says that the job was scheduled."""
    added = "[IMPORTANT: You are running as a scheduled cron job. Respond with [SILENT] if there is nothing.]"

    assert prompts(KNOWN, {"role": "user", "content": f"{added}\n\nCheck the mail"}) == ["Check the mail"]


def test_files_are_read_unless_the_database_has_their_session(home: Path) -> None:
    """Times in files have no zone, so they are local. The file name is the ID."""
    folder = home / ".hermes" / "sessions"
    folder.mkdir(parents=True)
    records = [
        {"role": "session_meta", "platform": "cli", "model": "m", "timestamp": "2026-03-01T10:00:00.000000"},
        {"role": "user", "content": "Fix the login", "timestamp": "2026-03-01T10:00:01.000000"},
        {"role": "assistant", "content": "Done", "timestamp": "2026-03-01T10:00:02.000000"},
    ]
    for name in (MAIN, "20260302_100000_ab12cd"):
        (folder / f"{name}.jsonl").write_bytes(jsonl(records))
    store(home, (f"{SESSION}(?, 'cli', 1, NULL, NULL, NULL)", (MAIN,)))
    [root] = KNOWN.roots()
    [path] = KNOWN.transcripts(root)

    assert session(KNOWN, path.read_bytes(), path).native_id == "20260302_100000_ab12cd"
    assert [(turn.text, turn.at) for turn in read_turns(KNOWN, *records)] == [
        ("Fix the login", 1_772_359_201_000),
        ("Done", 1_772_359_202_000),
    ]


def test_profiles_can_use_one_id_for_different_sessions() -> None:
    """Each profile has a database of its own."""
    data = jsonl([{"id": "api-1", "cwd": "/home/demo"}])
    profiles = [Path(f"/home/demo/.hermes{folder}/state.db/api-1.jsonl") for folder in ("", "/profiles/ops", "-brain")]

    assert [session(KNOWN, data, path).scope for path in profiles] == ["", "ops", ".hermes-brain"]
    assert {session(KNOWN, data, path).project for path in profiles} == {"hermes"}
