"""Tests of `containers.py`."""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.formats import containers
from palaver.archiver.formats.containers import ForeignDatabase, conversations, head
from palaver.core.errors import SourceUnreadable

# Databases can be read while other programs write to them.


WRITER = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    with connection:
        number += 1
        connection.execute("INSERT INTO pair VALUES (?, 'a'), (?, 'b')", (number, number))
    time.sleep(0.02 if number % 20 else 1)  # long pauses, so that a slow reader also succeeds
"""


def made(path: Path, mode: str = "wal") -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode={mode}").fetchall()
    connection.execute("CREATE TABLE pair (number INTEGER, side TEXT)")
    connection.execute("INSERT INTO pair VALUES (0, 'a'), (0, 'b')")
    return connection


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "closed"])
def test_reading_leaves_no_trace(tmp_path: Path, mode: str, *, running: bool) -> None:
    """Reading creates, changes or removes no file, whether or not the other program is running.

    Only the marks of readers in the shared memory of the log change. SQLite needs them beside a running program.
    """
    program = made(tmp_path / "x.db", mode)
    if not running:
        program.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert ForeignDatabase(tmp_path / "x.db").rows("SELECT count(*) FROM pair") == [(2,)]
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} <= ({"x.db-shm"} if running else set())
    program.close()


def test_changes_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    """Recent changes of a running program are read from its write-ahead log."""
    program = made(tmp_path / "x.db")
    state = ForeignDatabase(tmp_path / "x.db").state()
    program.execute("INSERT INTO pair VALUES (1, 'a')")

    assert ForeignDatabase(tmp_path / "x.db").rows("SELECT max(number) FROM pair") == [(1,)]
    assert ForeignDatabase(tmp_path / "x.db").state() != state
    program.close()


def test_a_copied_database_with_a_log_is_read(tmp_path: Path) -> None:
    """A copy made while the program was running has a write-ahead log, but not the index of the log."""
    program = made(tmp_path / "x.db")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("x.db", "x.db-wal"):
        shutil.copy(tmp_path / name, copy)
    program.close()

    assert ForeignDatabase(copy / "x.db").rows("SELECT count(*) FROM pair") == [(2,)]
    assert names(copy) == {"x.db", "x.db-wal"}


def test_reading_does_not_block_writers(tmp_path: Path) -> None:
    """Another program can write even while a query is running."""
    program = made(tmp_path / "x.db", "delete")
    program.set_busy_timeout(0)
    reader = ForeignDatabase(tmp_path / "x.db")

    with reader._opened(immutable=True) as connection:  # pyright: ignore[reportPrivateUsage]
        rows = connection.execute("SELECT * FROM pair")
        next(rows)
        program.execute("INSERT INTO pair VALUES (1, 'a')")
    program.close()


def test_a_database_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows from two states of a database are never mixed."""
    program = made(tmp_path / "x.db", "delete")
    opened = ForeignDatabase._opened  # pyright: ignore[reportPrivateUsage]
    writes = ["INSERT INTO pair VALUES (1, 'a')"]

    @contextmanager
    def disturbed(self: ForeignDatabase, *, immutable: bool) -> Generator[apsw.Connection]:
        with opened(self, immutable=immutable) as connection:
            yield connection
        if writes:
            program.execute(writes.pop())

    monkeypatch.setattr(ForeignDatabase, "_opened", disturbed)

    assert ForeignDatabase(tmp_path / "x.db").rows("SELECT count(*) FROM pair") == [(3,)]
    program.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_every_read_is_one_consistent_state(tmp_path: Path, mode: str) -> None:
    """While another process writes pairs, a read returns complete pairs or reports a busy database."""
    path = tmp_path / "x.db"
    made(path, mode).close()
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        query = "SELECT count(*), sum(side = 'a') - sum(side = 'b') FROM pair"
        seen: list[int] = []
        try:
            while len(seen) < 20:
                with suppress(SourceUnreadable):
                    ((count, halves),) = ForeignDatabase(path).rows(query)
                    assert halves == 0
                    seen.append(int(str(count)))
        finally:
            writer.kill()

    assert seen == sorted(seen)


@pytest.mark.parametrize("data", [b"", b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_other_files_are_unreadable(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not a database is reported as unreadable without retries."""
    monkeypatch.setattr(containers, "_PAUSE", 0)
    (tmp_path / "x.db").write_bytes(data)

    with pytest.raises(SourceUnreadable, match="cannot be read"):
        ForeignDatabase(tmp_path / "x.db").rows("SELECT * FROM pair")
    with pytest.raises(SourceUnreadable, match="cannot be read"):
        ForeignDatabase(tmp_path / "gone.db").rows("SELECT * FROM pair")


def test_a_database_with_a_hot_journal_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database with a hot journal is unreadable, because only its own program may repair it."""
    monkeypatch.setattr(containers, "_PAUSE", 0)
    made(tmp_path / "x.db", "delete").close()
    (tmp_path / "x.db-journal").write_bytes(b"\xd9\xd5\x05\xf9 not empty")

    with pytest.raises(SourceUnreadable, match="another program is writing") as caught:
        ForeignDatabase(tmp_path / "x.db").rows("SELECT * FROM pair")
    assert "start and quit it" in caught.value.hint
    assert (tmp_path / "x.db-journal").exists()


def test_columns_are_the_names_of_a_table(tmp_path: Path) -> None:
    """The result contains the column names of a table, and is empty for a missing table."""
    made(tmp_path / "x.db").close()

    assert ForeignDatabase(tmp_path / "x.db").columns("pair") == {"number", "side"}
    assert ForeignDatabase(tmp_path / "x.db").columns("none") == set()


# Exports of web services: JSON files, usually in a zip.


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters())
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)


def saved(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def packed(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in files.items():
            pack.writestr(name, data if isinstance(data, bytes) else json.dumps(data))
    return path


@given(st.lists(st.dictionaries(st.text(st.characters()), VALUES, max_size=4), max_size=6), st.integers(1, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_conversation_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[dict[str, object]], piece: int
) -> None:
    """Every conversation is decoded, whatever the read size."""
    monkeypatch.setattr(containers, "_PIECE", piece)

    assert list(conversations(saved(tmp_path / "conversations.json", found))) == found


def test_a_file_may_contain_one_conversation_or_none(tmp_path: Path) -> None:
    """A file may contain a single conversation without a list, or no conversation."""
    assert list(conversations(saved(tmp_path / "a.json", {"id": 1}))) == [{"id": 1}]
    assert list(conversations(saved(tmp_path / "a.json", [3, None, "x"]))) == []
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf \n")
    assert list(conversations(tmp_path / "a.json")) == []


def test_only_conversations_are_read_from_a_zip(tmp_path: Path) -> None:
    """Conversation files are read in order of their names. Names that point outside the zip are harmless."""
    files = {
        "conversations-001.json": [{"id": 2}],
        "../../conversations-000.json": [{"id": 1}],
        "user.json": [{"id": 3}],
        "export/conversations.json": [{"id": 4}],
        "conversations.json.html": [{"id": 5}],
    }
    path = packed(tmp_path / "a.zip", files)

    assert [found["id"] for found in conversations(path)] == [1, 2, 4]
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    "data",
    [b'[{"id": 1}, {"id": ', b'[{"id": 1}, nonsense', b'[{"id": 1} x {"id": 2}]', b'[{"id": 1}, ' + b"[" * 99999],
)
def test_conversations_before_the_damage_are_read(tmp_path: Path, data: bytes) -> None:
    """Conversations before the damage are read, then the export is reported as damaged."""
    (tmp_path / "a.json").write_bytes(data)
    found = conversations(tmp_path / "a.json")

    assert next(found) == {"id": 1}
    with pytest.raises(SourceUnreadable, match=r"damaged|nested too deeply"):
        list(found)


@pytest.mark.parametrize("cut", [10, 60, 200])
def test_a_damaged_zip_is_unreadable(tmp_path: Path, cut: int) -> None:
    """A zip truncated at any position is unreadable."""
    path = packed(tmp_path / "a.zip", {"conversations.json": [{"id": n} for n in range(99)]})
    path.write_bytes(path.read_bytes()[:cut])

    assert head(path) == b""
    with pytest.raises(SourceUnreadable, match="damaged"):
        list(conversations(path))


@pytest.mark.parametrize(
    ("name", "limit", "data"),
    [
        ("CONVERSATION_LIMIT", 1 << 16, [{"id": "x" * (1 << 18)}]),
        ("EXPORT_LIMIT", 1 << 20, [{"id": "x" * 1000}] * 9999),
    ],
)
def test_sizes_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, data: object
) -> None:
    """Reading stops for a zip of a few kilobytes that decompresses endlessly."""
    monkeypatch.setattr(containers, name, limit)
    monkeypatch.setattr(containers, "_PIECE", 1 << 12)
    path = packed(tmp_path / "bomb.zip", {"conversations.json": data})

    with pytest.raises(SourceUnreadable, match="larger than"):
        list(conversations(path))
