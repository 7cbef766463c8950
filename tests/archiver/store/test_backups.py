"""One process at a time backs the database up, and a killed one leaves nothing behind."""

from pathlib import Path

from palaver.archiver.store import Store
from palaver.archiver.store.backups import Backups
from palaver.archiver.store.leases import BACKUP
from palaver.core.home import Home


def test_an_unfinished_copy_is_removed(path: Path) -> None:
    """The next backup takes the place of what a killed process left."""
    home = Home(path.parent)
    home.backups.mkdir()
    (home.backups / "unfinished").write_bytes(b"half of a database")
    with Store.create(path) as store:
        store.back_up()

    [today] = Backups(home).all()
    assert list(home.backups.iterdir()) == [today]
    assert today.stat().st_mode & 0o777 == 0o600


def test_a_backup_that_another_process_makes_is_left_to_it(path: Path) -> None:
    """Nobody waits for it, and nothing is reported."""
    with Store.create(path) as store, Store.open(path) as other:
        with store.leases.hold(BACKUP):
            other.back_up()
        assert Backups(store.home).all() == []
        assert [stage.name for stage in store.stages.all()] == []
