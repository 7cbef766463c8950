"""The connection: safe settings, all-or-nothing writes, and every error of SQLite as one of ours."""

# pyright: reportPrivateUsage=false

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from palaver.archiver.store import Store, database
from palaver.archiver.store.database import Database
from palaver.archiver.store.sqlite import _wal_is_safe
from palaver.core.conversation import Session
from palaver.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreMissing


def test_opening_never_makes_an_archive(path: Path) -> None:
    """A wrong path is an error that says what to do, not an empty archive."""
    with pytest.raises(StoreMissing, match="no archive at") as missing:
        Store.open(path)

    assert missing.value.path == path.parent
    assert "palaver up" in missing.value.hint
    assert not path.exists()


def test_creating_twice_keeps_what_is_there(path: Path) -> None:
    """`create` opens an archive that exists."""
    with Store.create(path) as store:
        store.sessions.save(Session("claude-code", "one"))
    with Store.create(path) as store:
        assert store.sessions.count() == 1
    with Store.open(path) as store:
        assert store.sessions.count() == 1


def test_commits_survive_a_power_loss(store: Store) -> None:
    """Every connection writes ahead, waits for the disk, checks references and erases what it deletes."""
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "mmap_size": 0}

    assert {name: store._database.one(f"PRAGMA {name}") for name in wanted} == {
        name: (value,) for name, value in wanted.items()
    }


@pytest.mark.parametrize(
    ("version", "safe"),
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
def test_writing_ahead_needs_a_sound_sqlite(version: str, *, safe: bool) -> None:
    """Releases with the WAL-reset race keep the rollback journal."""
    assert _wal_is_safe(version) is safe


def test_the_bundled_sqlite_is_sound() -> None:
    """The library that the package installs has no WAL-reset race."""
    assert _wal_is_safe(apsw.sqlite_lib_version())


def test_the_files_are_closed_to_others(store: Store, path: Path) -> None:
    """The database and the files beside it belong to their owner alone, from their first moment."""
    store.sessions.save(Session("claude-code", "one"))
    files = list(path.parent.iterdir())

    assert {file.name for file in files} == {"palaver.db", "palaver.db-wal", "palaver.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_transaction_happens_whole_or_not_at_all(store: Store) -> None:
    """An error inside undoes everything, and the store goes on working."""

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


def test_others_see_nothing_unfinished(store: Store, path: Path) -> None:
    """Another connection sees a transaction when it is done, and is not kept waiting meanwhile."""
    with Store.open(path) as other:
        with store.transaction():
            store.sessions.save(Session("claude-code", "one"))
            assert other.sessions.count() == 0
        assert other.sessions.count() == 1


def test_a_transaction_that_sqlite_gave_up_is_over(store: Store) -> None:
    """Where SQLite itself undid everything, as on a full disk, the error that tells so is the one that is raised."""

    def collide() -> None:
        with store.transaction():
            store.sources.report(Path("/a"), "first")
            store._database.run("INSERT OR ROLLBACK INTO problem SELECT * FROM problem")

    with pytest.raises(StoreError, match="UNIQUE"):
        collide()

    assert store.sources.problems() == []
    with store.transaction():
        store.sources.report(Path("/b"), "second")


def test_a_full_disk_loses_nothing_that_was_stored(store: Store) -> None:
    """A write without room is an error of that write; what was there stays, and with room it goes on."""
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


def test_waiting_for_another_writer_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that stays locked is busy, never corrupt, and the error says for how long it was waited."""
    monkeypatch.setattr(database, "BUSY_MS", 20)
    with Store.create(path) as one, Store.open(path) as two:
        with one.transaction(), pytest.raises(StoreBusy, match="stayed locked"), two.transaction():
            raise AssertionError
        with two.transaction():
            two.sessions.save(Session("claude-code", "one"))

    assert one._database.path == path


def test_a_short_lock_is_waited_for(store: Store, path: Path) -> None:
    """A writer that holds the database for a moment delays others and does not fail them."""
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


def test_many_may_create_at_once(path: Path) -> None:
    """Processes that start together on a new home end with one archive and no error."""
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


def test_a_damaged_file_is_left_as_it_is(path: Path) -> None:
    """Something that is no database is reported as corrupt, and not one byte of it is changed."""
    path.write_bytes(b"this is no database, but it may be all there is" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as damaged:
        Store.open(path)

    assert "fsck --repair" in damaged.value.hint
    assert path.read_bytes() == before


def test_a_damaged_page_is_corruption(path: Path) -> None:
    """Damage that shows only while reading is reported as corrupt too."""
    with Store.create(path) as store:
        for number in range(200):
            store.sessions.save(Session("claude-code", f"s{number}", title="x" * 200))
    data = bytearray(path.read_bytes())
    data[8192:] = bytes(len(data) - 8192)
    path.write_bytes(data)

    with pytest.raises(StoreCorrupt), Store.open(path) as store:
        store.items.all_keys()


def test_a_place_where_nothing_can_be_made_is_an_error(tmp_path: Path) -> None:
    """A folder that does not exist, or a folder in place of the file, is a store error."""
    with pytest.raises(StoreError):
        Store.create(tmp_path / "missing" / "palaver.db")
    with pytest.raises(StoreError):
        Store.create(tmp_path)
    with pytest.raises(StoreMissing):
        Store.open(tmp_path)


def test_a_wrong_statement_is_an_error_of_ours(store: Store) -> None:
    """No error of the database library gets out."""
    with pytest.raises(StoreError, match="no such table"):
        store._database.rows("SELECT * FROM nowhere")


def test_closing_twice_is_fine(path: Path) -> None:
    """Whoever closes last need not know."""
    made = Database.create(path)
    made.close()
    made.close()


def may_not(*_: object) -> bool:
    """No right at all; real rights would not stop a test run by an administrator."""
    return False


def test_a_file_beside_which_nothing_can_be_made_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read without any file beside it, whoever writes hears what to do, and one of an older schema is refused."""
    with Store.create(path) as made, made.transaction():
        made.sessions.save(Session("codex", "one"))
    before = sorted(path.parent.iterdir())
    monkeypatch.setattr(os, "access", may_not)

    with Store.create(path) as store:
        assert (store.is_read_only, store.sessions.count()) == (True, 1)
        assert sorted(path.parent.iterdir()) == before
        with pytest.raises(StoreError, match="is read-only") as refused, store.transaction():
            store.sessions.save(Session("codex", "two"))
        assert "chmod -R u+w" in refused.value.hint

    older = apsw.Connection(str(path))
    older.execute("PRAGMA user_version = 3")
    older.close()
    with pytest.raises(StoreError, match="schema of the database is older"):
        Store.open(path)


def test_what_a_log_holds_is_never_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is a log the file alone is not all, so it is opened with it."""
    with Store.create(path) as store:
        monkeypatch.setattr(os, "access", may_not)
        with store.transaction():
            store.sessions.save(Session("codex", "one"))
        with Store.open(path) as other:
            assert (other.is_read_only, other.sessions.count()) == (False, 1)
