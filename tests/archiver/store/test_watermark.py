"""The watermark counts changes missing from a database."""

from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.memory import Memory


def stored(path: Path, content: str) -> int:
    """Store a memory and return the number of missing changes."""
    with Store.open(path) as store:
        with store.transaction():
            store.memories.insert(Memory(content), 1)
        return store.watermark.missing


@pytest.fixture
def home(path: Path) -> Home:
    """Return a home with two memories, whose database has lost the second memory."""
    made = Home(path.parent)
    made.archive.mkdir()
    Store.create(path).close()
    assert stored(path, "Heat the kiln.") == 0
    before = path.read_bytes()
    assert stored(path, "Let it cool.") == 0
    path.write_bytes(before)
    return made


def test_a_loss_is_counted_until_it_is_accepted(home: Home) -> None:
    """A loss remains recorded after later writes until it is accepted."""
    with Store.open(home.database) as store:
        missing = store.watermark.missing
    assert missing > 0
    assert stored(home.database, "Open it.") == missing
    with Store.open(home.database) as store:
        store.watermark.accept()
        assert store.watermark.missing == 0


def test_a_new_database_has_no_missing_changes(home: Home) -> None:
    """The watermark and recorded loss of an earlier database do not apply to a new database."""
    assert stored(home.database, "Open it.") > 0
    home.database.unlink()
    Store.create(home.database).close()

    assert stored(home.database, "Close it.") == 0


def test_a_damaged_file_never_exaggerates_the_loss(home: Home) -> None:
    """With any bit flipped, the reported loss is at most the real loss, and no error is raised."""
    whole = home.changes.read_bytes()
    with Store.open(home.database) as store:
        counted = store.watermark.missing
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            home.changes.write_bytes(damaged)
            assert store.watermark.missing in {0, counted}, bit


def test_a_damaged_record_of_a_loss_is_still_a_loss(home: Home) -> None:
    """An unreadable record counts as one missing change, so that doctor and fsck continue."""
    assert stored(home.database, "Open it.") > 0
    home.changes.with_name(f"{home.changes.name}.lost").write_bytes(b"\xff\x00")
    with Store.open(home.database) as store:
        assert store.watermark.missing == 1
