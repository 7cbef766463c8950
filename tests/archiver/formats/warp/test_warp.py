"""Warp: tasks in the encoding of Protocol Buffers, sub-agents, and prompts without messages."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from palaver.archiver.formats.protobuf import Field, decoded, fields
from palaver.archiver.formats.warp import Warp
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker
from palaver.core.errors import PartlyRead

from ..container_files import contents, database, events, turns
from ..reading import notes

KNOWN = Warp()
SCHEMA = """
CREATE TABLE agent_conversations (id INTEGER PRIMARY KEY, conversation_id TEXT, conversation_data TEXT,
    last_modified_at TIMESTAMP);
CREATE TABLE agent_tasks (id INTEGER PRIMARY KEY, conversation_id TEXT, task_id TEXT, task BLOB,
    last_modified_at TIMESTAMP);
"""
QUERIES = """
CREATE TABLE ai_queries (id INTEGER PRIMARY KEY, exchange_id TEXT, conversation_id TEXT, start_ts DATETIME, input TEXT,
    working_directory TEXT, output_status TEXT, model_id TEXT);
"""
CONVERSATION = "INSERT INTO agent_conversations VALUES (NULL, ?, ?, '2026-03-01 10:00:00')"
TASK = "INSERT INTO agent_tasks VALUES (NULL, ?, ?, ?, '2026-03-01 10:00:00')"
QUERY = "INSERT INTO ai_queries VALUES (NULL, ?, ?, '2026-03-01 10:00:01.5', ?, '/home/demo/shop', 'Completed', 'auto')"


def number(value: int) -> bytes:
    """Return an integer in the encoding of Protocol Buffers."""
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def encoded(*values: tuple[int, object]) -> bytes:
    """Return a message with these fields. Text and bytes have a length, and integers have none."""
    made = b""
    for field, value in values:
        if isinstance(value, int):
            made += number(field << 3) + number(value)
        else:
            data = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
            made += number(field << 3 | 2) + number(len(data)) + data
    return made


def message(own_id: str, field: int, content: bytes) -> bytes:
    """Return a message of a task, with a time and a field that the reader does not know."""
    return encoded((1, own_id), (field, content), (14, encoded((1, 1772359200))), (999, "new"))


def task(own_id: str, messages: Iterable[bytes], description: str = "", parent: str = "") -> bytes:
    """Return a task."""
    return encoded((1, own_id), (2, description), (3, encoded((1, parent))), *((5, each) for each in messages))


MESSAGES = [
    message("m1", 2, encoded((1, "Fix the login"), (2, encoded((1, encoded((1, "/home/demo/shop"))))))),
    message("m2", 15, encoded((1, "Hm"))),
    message("m3", 3, encoded((1, "I look."))),
    message("m4", 4, encoded((1, "c1"), (2, encoded((1, "make test"))))),
    message("m5", 5, encoded((1, "c1"), (2, encoded((5, encoded((1, "1 failed"), (2, 2))))))),
    message("m6", 16, encoded((1, encoded((1, "So far."))))),
]


def store(home: Path, *rows: tuple[str, tuple[object, ...]], script: str = SCHEMA + QUERIES) -> Path:
    """Create the database, and return its path."""
    path = home / ".local" / "state" / "warp-terminal" / "warp.sqlite"
    database(path, script, rows).close()
    return path


def test_the_messages_of_a_task_are_read(home: Path) -> None:
    """The description of the task is the title. A message keeps all of its bytes."""
    path = store(home, (CONVERSATION, ("a", "{}")), (TASK, ("a", "t", task("t", MESSAGES, "Fix login"))))

    assert list(KNOWN.containers()) == [path]
    assert turns(KNOWN, path) == {
        "warp-terminal/a.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
            (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
            (Speaker.ASSISTANT, Kind.PROSE, "I look."),
            (Speaker.ASSISTANT, Kind.CALL, "run_shell_command: make test"),
            (Speaker.TOOL, Kind.RESULT, "1 failed"),
            (Speaker.HOST, Kind.COMPACTION, "So far."),
        ]
    }
    [data] = contents(KNOWN, path).values()
    found = events(KNOWN, data)
    [result] = [event for event in found if getattr(event, "kind", None) is Kind.RESULT]
    assert result.failed  # type: ignore[union-attr]
    assert result.at == 1_772_359_200_000  # type: ignore[union-attr]
    assert notes(found, Fact.TITLE) == [(1, "Fix login")]
    assert notes(found, Fact.CWD)[0][1] == "/home/demo/shop"
    assert data.count(b'"raw"') == len(MESSAGES)


def test_a_sub_task_is_the_session_of_a_sub_agent(home: Path) -> None:
    """A task with a parent has a session of its own."""
    path = store(
        home,
        (CONVERSATION, ("a", json.dumps({"x": 1}))),
        (TASK, ("a", "t1", task("t1", MESSAGES[:1]))),
        (TASK, ("a", "t2", task("t2", MESSAGES[:1], parent="t1"))),
    )
    found = [KNOWN.identify(Path("x"), data) for data in contents(KNOWN, path).values()]

    assert [(session.native_id, session.kind, session.parent_id) for session in found] == [
        ("a", SessionKind.MAIN, ""),
        ("t2", SessionKind.SUBAGENT, "a"),
    ]


def test_a_conversation_without_messages_has_its_prompts(home: Path) -> None:
    """Early versions, and conversations in the cloud, have prompts only."""
    asked = json.dumps([{"Query": {"text": "Fix the login", "context": []}}])
    path = store(home, (CONVERSATION, ("a", "{}")), (QUERY, ("x1", "a", asked)))

    assert turns(KNOWN, path)["warp-terminal/a.jsonl"] == [(Speaker.HUMAN, Kind.PROMPT, "Fix the login")]


def test_a_damaged_task_does_not_hide_other_sessions(home: Path) -> None:
    """A task that cannot be decoded has no messages."""
    path = store(
        home,
        (CONVERSATION, ("a", "{}")),
        (CONVERSATION, ("b", "{}")),
        (TASK, ("a", "t", b"\x2a\xff")),
        (TASK, ("b", "u", task("u", MESSAGES[:1]))),
    )

    assert [len(found) for found in turns(KNOWN, path).values()] == [0, 1]


def test_a_lacking_table_is_reported(home: Path) -> None:
    """The sessions are read without the lacking table."""
    path = store(home, (CONVERSATION, ("a", "{}")), (TASK, ("a", "t", task("t", MESSAGES))), script=SCHEMA)
    sessions = KNOWN.sessions(path)

    assert b"Fix the login" in b"".join(next(iter(sessions)).lines())
    with pytest.raises(PartlyRead, match="table ai_queries lacks conversation_id"):
        list(sessions)


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\xff" * 12, b"\x0b", b"\x09\x00"])
def test_damaged_bytes_are_an_error(data: bytes) -> None:
    """Truncated fields and unknown types of fields raise an error."""
    with pytest.raises(ValueError, match="damaged"):
        list(fields(data))


def test_a_message_nested_too_deeply_is_an_error() -> None:
    """The nesting is limited, because the decoder calls itself."""
    schema: dict[int, Field] = {}
    schema[1] = Field("inner", schema)
    data = b""
    for _ in range(40):
        data = encoded((1, data))

    with pytest.raises(ValueError, match="deeply"):
        decoded(data, schema)
