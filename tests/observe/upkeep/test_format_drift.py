"""Signs that an agent's format changed are found, and contain no value of a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import of_this_user
from palaver.core.reports import FormatDrift
from palaver.observe.upkeep.format_drift import format_drift, shape_of, shown_file, shown_version, version_order

from ...archiver.formats.container_files import database
from ...archiver.formats.crush.test_crush import SCHEMA, message
from ...archiver.formats.crush.test_crush import session as session_row
from ...archiver.formats.reading import jsonl
from ...archiver.history import History

SECRET = "the plan for the harbour"


def record(number: int, kind: str = "message", version: str = "", **fields: Any) -> dict[str, Any]:
    """Return a record of a session of Qwen Code."""
    return {
        "uuid": f"019f0000-0000-7000-8000-{number:012d}",
        "parentUuid": None,
        "sessionId": "019f0000-0000-7000-8000-000000000001",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "version": version,
        **({"type": "system", "subtype": kind, "systemPayload": fields} if kind != "message" else _message()),
    }


def _message() -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "parts": [{"text": SECRET}]}}


def chats(home: Path) -> Path:
    """Return the folder with the sessions of Qwen Code."""
    folder = home / ".qwen" / "projects" / "-shop" / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def session(number: int, version: str, *kinds: str) -> list[dict[str, Any]]:
    """Return the records of one session."""
    own = [record(number * 1000 + place, kind, version) for place, kind in enumerate(kinds)]
    return [each | {"sessionId": f"019f0000-0000-7000-8000-{number:012d}"} for each in own]


def drift(folder: Path) -> list[FormatDrift]:
    """Archive this user's transcripts in a new home, and return the signs."""
    with History(folder) as history:
        Ingest(history.store, history.raw).run(of_this_user())
        return format_drift(history.store, history.raw)


def test_a_known_format_has_no_signs(home: Path, tmp_path: Path) -> None:
    """Without unknown records, nothing is reported."""
    (chats(home) / "a.jsonl").write_bytes(jsonl(session(1, "0.21", "message", "rewind")))

    assert drift(tmp_path) == []


def test_unknown_types_are_counted_with_their_shape(home: Path, tmp_path: Path) -> None:
    """The shape has the fields of the record and their types. Names that can be data are left out."""
    payload: dict[str, Any] = {"note": SECRET, "items": [{"at": 1}, {"at": 2}], "src/plan.py": True, "0a1b2c": None}
    lines = [record(1, version="0.21"), *(record(place, "mind_map", "0.21", **payload) for place in (2, 3))]
    (chats(home) / "a.jsonl").write_bytes(jsonl(lines))

    [sign] = drift(tmp_path)
    assert (sign.agent, sign.version, sign.lines) == ("qwen-code", "0.21", 2)
    assert sign.problem == "records of the unknown type system/mind_map"
    assert "systemPayload: {note: text, items: [{at: number}], …: yes or no, …: nothing}" in sign.shape
    assert SECRET not in repr(sign)


def test_an_unknown_type_of_several_versions_is_one_sign(home: Path, tmp_path: Path) -> None:
    """The sign has the newest version and the lines of all versions, whatever their order in time."""
    for name, version, lines in (("a", "0.100", 2), ("b", "0.21", 1)):
        (chats(home) / f"{name}.jsonl").write_bytes(jsonl(session(lines, version, "message", *["mind_map"] * lines)))

    assert [(sign.version, sign.record_type, sign.lines) for sign in drift(tmp_path)] == [
        ("0.100", "system/mind_map", 3)
    ]
    assert sorted(["v1.0.77", "1.0.8", ""], key=version_order) == ["", "1.0.8", "v1.0.77"]


def test_a_version_that_is_skipped_far_more_often_is_a_sign(home: Path, tmp_path: Path) -> None:
    """The shares of skipped lines are compared, if both versions have many lines."""
    (chats(home) / "a.jsonl").write_bytes(jsonl(session(1, "0.21", *["message"] * 200, *["rewind"] * 20)))
    newer = [each | {"timestamp": "2026-04-01T10:00:00.000Z"} for each in session(2, "0.22", *["rewind"] * 150)]
    messages = [each | {"timestamp": "2026-04-01T10:00:00.000Z"} for each in session(2, "0.22", *["message"] * 60)]
    (chats(home) / "b.jsonl").write_bytes(jsonl([*messages, *newer]))

    [sign] = drift(tmp_path)
    assert (sign.version, sign.problem) == ("0.22", "71% of the lines are skipped, after 9% in older versions")


def test_newest_transcripts_without_conversation_are_a_sign(home: Path, tmp_path: Path) -> None:
    """Older transcripts were read, but none of the newest five."""
    (chats(home) / "a.jsonl").write_bytes(jsonl(session(1, "", *["message"] * 12)))
    for number in range(2, 7):
        (chats(home) / f"b{number}.jsonl").write_bytes(jsonl(session(number, "", *["rewind"] * 12)))

    assert [sign.problem for sign in drift(tmp_path)] == [
        "the 5 newest transcripts contain no conversation that can be read"
    ]


@pytest.mark.parametrize(("lines", "is_sign"), [(49, True), (48, False)])
def test_a_transcript_that_grew_without_text_is_a_sign(
    home: Path, tmp_path: Path, lines: int, *, is_sign: bool
) -> None:
    """The text of messages moved to another field. The prompt before them was read."""
    first, *others = session(1, "0.21", *["message"] * (lines + 1))
    moved = [each | {"message": {"role": "user", "pieces": [{"text": SECRET}]}} for each in others]
    path = chats(home) / "a.jsonl"
    path.write_bytes(jsonl([first]))
    with History(tmp_path) as history:
        Ingest(history.store, history.raw).run(of_this_user())
        path.write_bytes(jsonl([first, *moved]))
        Ingest(history.store, history.raw).run(of_this_user())
        signs = [(sign.problem, sign.lines) for sign in format_drift(history.store, history.raw)]

    problem = "a transcript grew, but nothing after its last prompt can be read"
    assert signs == [(problem, lines)] * is_sign


def test_newer_generations_are_signs(home: Path, tmp_path: Path) -> None:
    """A folder or a database that differs from a known one by a number may be its successor."""
    (chats(home) / "a.jsonl").write_bytes(jsonl(session(1, "0.21", "message")))
    for name in ("projects-v2", "projects_backup", "projection"):
        (home / ".qwen" / name).mkdir()
    goose = home / ".local" / "share" / "goose" / "sessions"
    sessions = "CREATE TABLE sessions (id TEXT, working_dir TEXT, aura TEXT);"
    schema = f"{sessions} CREATE TABLE messages (id, session_id, role, content_json);"
    rows: list[tuple[str, tuple[object, ...]]] = [("INSERT INTO sessions VALUES ('1', '/shop', NULL)", ())]
    for name in ("sessions.db", "sessions3.db"):
        database(goose / name, schema, rows).close()

    assert [(sign.agent, sign.problem) for sign in drift(tmp_path)] == [
        ("goose", "sessions.db: table sessions has the unknown columns aura"),
        ("qwen-code", "~/.qwen/projects-v2 may be a newer form of projects, which is read"),
        ("goose", "~/.local/share/goose/sessions/sessions3.db may be a newer form of sessions.db, which is read"),
    ]


def test_a_sign_names_no_project(home: Path, tmp_path: Path) -> None:
    """A database in a project is named by its own folder, not by the folders of the project."""
    list_of_projects = home / ".local" / "share" / "crush" / "projects.json"
    list_of_projects.parent.mkdir(parents=True)
    list_of_projects.write_text(
        json.dumps({"projects": [{"path": str(home / "harbour"), "data_dir": str(home / "harbour" / ".crush")}]})
    )
    for name in ("crush.db", "crush2.db"):
        rows = [session_row("s1"), message("m1", "user", ("text", {"text": SECRET}))]
        database(home / "harbour" / ".crush" / name, SCHEMA, rows).close()

    assert [sign.problem for sign in drift(tmp_path)] == [
        "…/.crush/crush2.db may be a newer form of crush.db, which is read"
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [("/home/demo/threads.db", "threads.db"), ("/shop/the harbour.zip", "….zip"), ("0a1b.jsonl", "….jsonl")],
)
def test_a_file_name_that_can_be_data_is_replaced(path: str, name: str) -> None:
    """The names of databases are those of programs."""
    assert shown_file(path) == name


@pytest.mark.parametrize("version", ["the harbour 2", "[redacted]", "1.0 of alice", "1" * 40])
def test_a_version_or_type_that_can_be_data_is_replaced(home: Path, tmp_path: Path, version: str) -> None:
    """Neither the text of a version nor a type with spaces is shown."""
    (chats(home) / "a.jsonl").write_bytes(jsonl(session(1, version, "message", "plan the harbour")))

    [sign] = drift(tmp_path)
    assert (sign.version, sign.problem) == ("…", "records of the unknown type …")


@pytest.mark.parametrize("version", ["", "0.21", "v1.0.77-beta+2"])
def test_a_version_is_shown(version: str) -> None:
    """Pre-releases and a leading v are usual."""
    assert shown_version(version) == version


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, "{a: {b: {c: {d: {…}}}}}"),
        ([1, "x", None, 2.5], "[number | text | nothing]"),
        ({"/home/demo": 1, "alice@example.com": 2}, "{…: number}"),
    ],
)
def test_a_shape_has_no_value(value: object, shape: str) -> None:
    """Deep values are cut."""
    assert shape_of(value) == shape
