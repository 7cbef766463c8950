"""Tests of a store in read-only mode, which changes no byte although the folder is writable."""

from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.errors import StoreMissing, StoreReadOnly
from palaver.core.home import Home
from palaver.core.memory import Memory


def stored(home: Home, content: str) -> Store:
    """Return an open store in which a memory was stored."""
    store = Store.create(home.database)
    with store.transaction():
        store.memories.insert(Memory(content), 1)
    return store


def contents(home: Home) -> dict[str, bytes]:
    """Return the bytes of each file of the home."""
    return {path.name: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("open_writer", [False, True])
def test_reading_changes_no_byte(home: Home, open_writer: bool) -> None:
    """Rows are read with and without a write-ahead log, and all files stay as they are."""
    writer = stored(home, "SQLite")
    if not open_writer:
        writer.close()
    before = contents(home)
    with Store.create(home.database, read_only=True) as store:
        assert [each.memory.content for each in store.memories.all()] == ["SQLite"]
        assert store.is_read_only
    assert contents(home) == before
    assert ("palaver.db-wal" in before) is open_writer
    writer.close()


def test_later_changes_are_read(home: Home) -> None:
    """A store that was opened before a write reads its rows, before and after a checkpoint."""
    stored(home, "one").close()
    with Store.open(home.database, read_only=True) as store:
        assert len(store.memories.all()) == 1
        writer = stored(home, "two")
        assert len(store.memories.all()) == 2
        writer.close()
        stored(home, "three").close()
        assert len(store.memories.all()) == 3


def test_writes_are_refused(home: Home) -> None:
    """A transaction is refused before any file changes."""
    stored(home, "SQLite").close()
    before = contents(home)
    with Store.open(home.database, read_only=True) as store:
        with pytest.raises(StoreReadOnly, match="is read-only"), store.transaction():
            pass
        with pytest.raises(StoreReadOnly, match="is read-only"):
            store.projects.claim(home.root)
    assert contents(home) == before


def test_a_log_without_shared_memory_is_refused(home: Home) -> None:
    """A write-ahead log that SQLite would have to recover is reported, because recovery writes a file."""
    writer = stored(home, "SQLite")
    (home.root / "copy").mkdir()
    for name in ("palaver.db", "palaver.db-wal"):
        (home.root / "copy" / name).write_bytes((home.root / name).read_bytes())
    writer.close()

    with pytest.raises(StoreReadOnly, match="write-ahead log must be recovered first"):
        Store.open(home.root / "copy" / "palaver.db", read_only=True)


def test_a_missing_database_is_not_created(home: Home) -> None:
    """A missing database is an error, and stays missing. A missing key is replaced by a temporary one."""
    with pytest.raises(StoreMissing):
        Store.create(home.database, read_only=True)
    key = Home(home.root, read_only=True).key()

    assert len(key) == 32
    assert list(home.root.iterdir()) == []
