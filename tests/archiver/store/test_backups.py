"""Only one process at a time makes a backup, and the next backup removes files of a killed process."""

from contextlib import closing
from pathlib import Path

import apsw

from palaver.archiver.store import Store
from palaver.archiver.store.backups import Backups
from palaver.archiver.store.database import Database
from palaver.archiver.store.lease_table import BACKUP
from palaver.archiver.store.migrations import MIGRATIONS
from palaver.core.home import Home


def test_an_unfinished_copy_is_removed(path: Path) -> None:
    """The next backup replaces the unfinished copy of a killed process."""
    home = Home(path.parent)
    home.backups.mkdir()
    (home.backups / "unfinished").write_bytes(b"half of a database")
    with Store.create(path) as store:
        store.back_up()

    [today] = Backups(home).all()
    assert list(home.backups.iterdir()) == [today]
    assert today.stat().st_mode & 0o777 == 0o600


def test_a_backup_in_another_process_is_not_repeated(path: Path) -> None:
    """If another process is making a backup, the store continues without waiting or reporting a problem."""
    with Store.create(path) as store, Store.open(path) as other:
        with store.leases.hold(BACKUP):
            other.back_up()
        assert Backups(store.home).all() == []
        assert [stage.name for stage in store.stages.all()] == []


def has_checksums(path: Path) -> bool:
    with closing(Database.open_read_only(path)) as looked:
        return looked.has_checksums


def test_only_a_database_without_page_checksums_is_rewritten(path: Path) -> None:
    """The first backup after an upgrade adds page checksums. A new database has them from its first page on."""
    plain = apsw.Connection(str(path), vfs="unix")
    for step in MIGRATIONS:
        plain.execute(step)
    plain.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
    plain.close()
    assert not has_checksums(path)
    with Store.open(path) as store:
        store.back_up()
    assert has_checksums(path)

    Store.create(path.with_name("new.db")).close()
    assert has_checksums(path.with_name("new.db"))
