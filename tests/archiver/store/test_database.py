"""The connection has safe settings, writes atomically and translates every error of SQLite."""

# pyright: reportPrivateUsage=false

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from palaver.archiver.store import Store, database
from palaver.archiver.store.database import Database, _wal_is_safe
from palaver.core.conversation import Session
from palaver.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreMissing

from ...cases import for_each


def test_opening_never_creates_an_archive(path: Path) -> None:
    """Opening a wrong path raises an error with a remedy and creates no archive."""
    with pytest.raises(StoreMissing, match="No archive at") as missing:
        Store.open(path)

    assert str(path.parent) in str(missing.value)
    assert "palaver up" in missing.value.hint
    assert not path.exists()


def test_creating_twice_keeps_the_content(path: Path) -> None:
    """`create` opens an existing archive."""
    with Store.create(path) as store:
        store.sessions.save(Session("claude-code", "one"))
    with Store.create(path) as store:
        assert store.sessions.count() == 1
    with Store.open(path) as store:
        assert store.sessions.count() == 1


def test_commits_survive_a_power_loss(store: Store) -> None:
    """Every connection uses the write-ahead log, syncs, checks foreign keys and overwrites deleted content."""
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "mmap_size": 0}

    assert {name: store._database.one(f"PRAGMA {name}") for name in wanted} == {
        name: (value,) for name, value in wanted.items()
    }


@for_each(
    "version, safe",
    [
        ("3.7.0", False),
        ("3.40.1", False),
        ("3.44.5", False),
        ("3.44.6", True),
        ("3.45.0", False),
        ("3.50.6", False),
        ("3.50.7", True),
        ("3.51.2", False),
        ("3.51.3", True),
        ("3.52.0", True),
        ("4.0.0", True),
    ],
)
def test_the_write_ahead_log_needs_a_safe_sqlite(version: str, *, safe: bool) -> None:
    """SQLite releases with the WAL-reset race use the rollback journal."""
    assert _wal_is_safe(version) is safe


def test_the_bundled_sqlite_is_safe() -> None:
    """The installed SQLite library does not have the WAL-reset race."""
    assert _wal_is_safe(apsw.sqlite_lib_version())


def test_the_files_are_private(store: Store, path: Path) -> None:
    """From their creation on, only the owner has permission to read the database and the files beside it."""
    store.sessions.save(Session("claude-code", "one"))
    files = [file for file in path.parent.iterdir() if file.is_file()]

    assert {file.name for file in files} == {"palaver.db", "palaver.db-wal", "palaver.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_transaction_is_atomic(store: Store) -> None:
    """An error in the block undoes all writes, and the store remains usable."""

    def fail() -> None:
        with store.transaction():
            store.sessions.save(Session("claude-code", "one"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.sessions.count() == 0

    with store.transaction():
        store.sessions.save(Session("claude-code", "two"))
    assert store.sessions.count() == 1


def test_other_connections_see_only_committed_changes(store: Store, path: Path) -> None:
    """Another connection sees a transaction after its commit, and can read earlier content without waiting."""
    with Store.open(path) as other:
        with store.transaction():
            store.sessions.save(Session("claude-code", "one"))
            assert other.sessions.count() == 0
        assert other.sessions.count() == 1


def test_a_transaction_that_sqlite_rolled_back_is_over(store: Store) -> None:
    """If SQLite rolls back by itself, for example on a full disk, SQLite's error is raised."""

    def collide() -> None:
        with store.transaction():
            store.sources.report(Path("/a"), "first")
            store._database.run("INSERT OR ROLLBACK INTO problem SELECT * FROM problem")

    with pytest.raises(StoreError, match="UNIQUE"):
        collide()

    assert store.sources.problems() == []
    with store.transaction():
        store.sources.report(Path("/b"), "second")


def test_a_full_disk_loses_nothing(store: Store) -> None:
    """A write to a full disk fails and keeps stored content. Writes succeed again when space is free."""
    store.sessions.save(Session("claude-code", "one"))
    pages = store._database.number("PRAGMA page_count")
    store._database.run(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with store.transaction():
            for number in range(1000):
                store.sessions.save(Session("claude-code", f"more-{number}", title="x" * 1000))

    with pytest.raises(StoreError, match="full"):
        fill()
    assert store.sessions.count() == 1

    store._database.run("PRAGMA max_page_count = 1000000")
    with store.transaction():
        store.sessions.save(Session("claude-code", "two"))
    assert store.sessions.count() == 2


def test_a_permanent_lock_raises_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that stays locked is reported as busy, and the error contains the time that was waited."""
    monkeypatch.setattr(database, "BUSY_MS", 20)
    with Store.create(path) as one, Store.open(path) as two:
        with one.transaction(), pytest.raises(StoreBusy, match="stayed locked"), two.transaction():
            raise AssertionError
        with two.transaction():
            two.sessions.save(Session("claude-code", "one"))

    assert one._database.path == path


def test_writers_wait_for_a_short_lock(store: Store, path: Path) -> None:
    """A short lock delays other writers without an error."""
    program = (
        "import sys; from pathlib import Path; from palaver.archiver.store import Store; "
        "from palaver.core.conversation import Session\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    for n in range(50):\n"
        "        with store.transaction(): store.sessions.save(Session('a', f'{sys.argv[2]}-{n}'))"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(writer)], stderr=subprocess.PIPE)
        for writer in range(3)
    ]
    errors = [writer.communicate()[1] for writer in writers]

    assert errors == [b"", b"", b""]
    assert store.sessions.count() == 150


def test_processes_can_create_an_archive_at_once(path: Path) -> None:
    """Processes that start at once in a new home create one archive without errors."""
    program = (
        "import sys; from pathlib import Path; from palaver.archiver.store import Store; "
        "Store.create(Path(sys.argv[1]))"
    )
    makers = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(path)], stderr=subprocess.PIPE)
        for _ in range(4)
    ]

    assert [maker.communicate()[1] for maker in makers] == [b""] * 4
    with Store.open(path) as store:
        assert store._database.one("PRAGMA integrity_check") == ("ok",)


def test_a_damaged_file_is_not_changed(path: Path) -> None:
    """A file that is not a database is reported as corrupt and not changed."""
    path.write_bytes(b"this is no database, but it may be all there is" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as damaged:
        Store.open(path)

    assert "fsck --repair" in damaged.value.hint
    assert path.read_bytes() == before


def test_a_damaged_page_is_reported_as_corrupt(path: Path) -> None:
    """Damage that is found only while reading is also reported as corrupt."""
    with Store.create(path) as store:
        for number in range(200):
            store.sessions.save(Session("claude-code", f"s{number}", title="x" * 200))
    data = bytearray(path.read_bytes())
    data[8192:] = bytes(len(data) - 8192)
    path.write_bytes(data)

    with pytest.raises(StoreCorrupt), Store.open(path) as store:
        store.items.all_keys()


def test_an_unusable_path_is_an_error(tmp_path: Path) -> None:
    """A missing folder, or a folder at the path of the file, raises `StoreError`."""
    with pytest.raises(StoreError):
        Store.create(tmp_path / "missing" / "palaver.db")
    with pytest.raises(StoreError):
        Store.create(tmp_path)
    with pytest.raises(StoreMissing):
        Store.open(tmp_path)


def test_a_wrong_statement_is_a_store_error(store: Store) -> None:
    """Errors of the database library are translated before they reach a caller."""
    with pytest.raises(StoreError, match="no such table"):
        store._database.rows("SELECT * FROM nowhere")


def test_closing_twice_is_allowed(path: Path) -> None:
    """A second close has no effect."""
    made = Database.create(path)
    made.close()
    made.close()


def deny(*_: object) -> bool:
    """Deny every permission. Real permissions would not restrict a test run by an administrator."""
    return False


def test_a_database_in_an_unwritable_folder_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading creates no file beside the database. Writing fails with a remedy. An older schema is refused."""
    with Store.create(path) as made, made.transaction():
        made.sessions.save(Session("codex", "one"))
    before = sorted(path.parent.iterdir())
    monkeypatch.setattr(os, "access", deny)

    with Store.create(path) as store:
        assert (store.is_read_only, store.sessions.count()) == (True, 1)
        assert sorted(path.parent.iterdir()) == before
        with pytest.raises(StoreError, match="is read-only") as refused, store.transaction():
            store.sessions.save(Session("codex", "two"))
        assert "chmod -R u+w" in refused.value.hint

    monkeypatch.setattr(database, "CHANGES", (*database.CHANGES, path))
    with pytest.raises(StoreError, match="database has an older schema"):
        Store.open(path)


def test_a_write_ahead_log_is_always_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database with a write-ahead log is opened with the log, because the file alone is incomplete."""
    with Store.create(path) as store:
        monkeypatch.setattr(os, "access", deny)
        with store.transaction():
            store.sessions.save(Session("codex", "one"))
        with Store.open(path) as other:
            assert (other.is_read_only, other.sessions.count()) == (False, 1)
