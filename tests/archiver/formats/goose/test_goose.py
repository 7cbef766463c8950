"""Goose: the database, its unknown columns, and the files of older versions."""

import json
from pathlib import Path

import pytest

from palaver.archiver.formats.goose import Goose
from palaver.core.conversation import Kind, SessionKind, Speaker
from palaver.core.errors import PartlyRead

from ..container_files import contents, database, turns
from ..reading import jsonl, session

KNOWN = Goose()
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, created_at TIMESTAMP,
    updated_at TIMESTAMP, parent_session_id TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
    created_timestamp INTEGER, metadata_json TEXT);
"""
ROWS: list[tuple[str, tuple[object, ...]]] = [
    ("INSERT INTO sessions VALUES ('b', 'Part', '', '/shop', '2026-03-01', '2026-03-01', 'a', NULL)", ()),
    (
        "INSERT INTO sessions VALUES ('a', 'Login', '', '/shop', '2026-03-01', '2026-03-01', NULL, ?)",
        ('{"model": "m"}',),
    ),
    ("INSERT INTO messages VALUES (1, 'x', 'a', 'user', ?, 1772359201, NULL)", ('[{"type":"text","text":"123"}]',)),
    ("INSERT INTO messages VALUES (2, 'y', 'a', 'assistant', ?, 1772359202, NULL)", ('[{"type":"text","text":"Hi"}]',)),
]


def store(home: Path) -> Path:
    """Return the path of the database."""
    return home / ".local" / "share" / "goose" / "sessions" / "sessions.db"


def test_sessions_of_the_database_are_read(home: Path) -> None:
    """Parents come before sub-agents. Text that looks like a number stays text."""
    database(store(home), SCHEMA, ROWS).close()

    assert list(KNOWN.containers()) == [store(home)]
    assert turns(KNOWN, store(home)) == {
        "sessions/a.jsonl": [(Speaker.HUMAN, Kind.PROMPT, "123"), (Speaker.ASSISTANT, Kind.PROSE, "Hi")],
        "sessions/b.jsonl": [],
    }
    [_, part] = contents(KNOWN, store(home)).values()
    found = KNOWN.identify(Path("x"), part)
    assert (found.native_id, found.kind, found.parent_id, found.cwd) == ("b", SessionKind.SUBAGENT, "a", "/shop")


def test_a_new_message_changes_only_the_end_of_a_session(home: Path) -> None:
    """Times and counts of a session change with each message, and are left out of its header."""
    program = database(store(home), SCHEMA, ROWS)
    before = contents(KNOWN, store(home))["sessions/a.jsonl"]
    program.execute("UPDATE sessions SET updated_at = '2026-04-01'")
    program.execute("INSERT INTO messages VALUES (3, 'z', 'a', 'user', '[]', 1772359203, NULL)")

    after = contents(KNOWN, store(home))["sessions/a.jsonl"]
    assert after.startswith(before)
    assert len(after) > len(before)


def test_unknown_columns_are_copied_and_reported(home: Path) -> None:
    """A sign that the form changed names columns and tables, never their values."""
    more = (
        "ALTER TABLE messages ADD COLUMN mood TEXT; CREATE TABLE messages_v2 (id TEXT); CREATE TABLE other (id TEXT);"
    )
    database(store(home), SCHEMA, ROWS).close()
    assert KNOWN.unknown_parts(store(home)) == []
    database(store(home), more, [("UPDATE messages SET mood = 'glad'", ())]).close()

    assert b'"mood":"glad"' in contents(KNOWN, store(home))["sessions/a.jsonl"]
    signs = ["table messages has the unknown columns mood", "table messages_v2 is not read"]
    assert KNOWN.unknown_parts(store(home)) == signs


def test_a_column_name_with_quotes_is_copied(home: Path) -> None:
    """The name of an unknown column is never part of a statement's syntax."""
    name = 'mood", (SELECT 1) AS "x'
    quoted = name.replace('"', '""')
    database(store(home), SCHEMA, ROWS).close()
    database(
        store(home),
        f'ALTER TABLE messages ADD COLUMN "{quoted}" TEXT',
        [(f'UPDATE messages SET "{quoted}" = ?', ("glad",))],
    ).close()

    first = json.loads(contents(KNOWN, store(home))["sessions/a.jsonl"].splitlines()[1])
    assert first["message"][name] == "glad"


def test_a_lacking_column_is_reported(home: Path) -> None:
    """Without the column that holds the words, nothing is read."""
    database(store(home), SCHEMA.replace("content_json", "body"), ROWS[:2]).close()

    with pytest.raises(PartlyRead, match="table messages lacks content_json"):
        contents(KNOWN, store(home))


def test_older_files_are_read_unless_a_database_imported_them(home: Path) -> None:
    """An older file begins with the description of the session."""
    folder = store(home).parent
    folder.mkdir(parents=True)
    lines = [
        {"description": "Login", "working_dir": "/shop", "message_count": 1},
        {"role": "user", "created": 1, "content": [{"type": "text", "text": "Fix the login"}]},
    ]
    (folder / "20250724_1.jsonl").write_bytes(jsonl(lines))

    assert [path.name for root in KNOWN.roots() for path in KNOWN.transcripts(root)] == ["20250724_1.jsonl"]
    assert session(KNOWN, jsonl(lines), Path("20250724_1.jsonl")).native_id == "20250724_1"
    assert KNOWN.recognises([json.loads(json.dumps(lines[0]))])
    database(store(home), SCHEMA).close()
    assert KNOWN.roots() == []
