"""Properties of the SQLite change log beyond the contract in `tests/contracts`."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store
from palaver.core.errors import StoreError


def test_numbers_are_never_reused(path: Path) -> None:
    """Numbers continue to rise after the newest entries were deleted and the store was reopened."""
    with Store.create(path) as store:
        store.changes.log(Entity.ITEM, [1, 2, 3])
        last = store.changes.last()
        store._database.run("DELETE FROM change")
    with Store.open(path) as store:
        store.changes.log(Entity.ITEM, [4])

        assert store.changes.last() == last + 1


def test_only_known_kinds_of_change_are_logged(store: Store) -> None:
    """The schema rejects unknown kinds of change."""
    with pytest.raises(StoreError):
        store._database.run("INSERT INTO change (entity, id) VALUES ('other', 1)")
