"""The change log: the only way an index learns anything, so it forgets nothing and never repeats a number."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store
from palaver.core.errors import StoreError


def test_the_log_gives_each_changed_item_once(store: Store) -> None:
    """Whoever asks since a number gets the items with later entries, in key order, of the kinds wanted."""
    assert (store.changes.last(), store.changes.since(0)) == (0, [])
    store.changes.log(Entity.ITEM, [5, 3])
    mark = store.changes.last()
    store.changes.log(Entity.VECTOR, [3, 4])
    store.changes.log(Entity.ITEM, [3])

    assert store.changes.since(0) == [3, 4, 5]
    assert store.changes.since(mark) == [3, 4]
    assert store.changes.since(mark, [Entity.ITEM]) == [3]
    assert store.changes.since(store.changes.last()) == []


def test_numbers_are_never_used_twice(path: Path) -> None:
    """Even after the newest entries were removed and the archive opened again, numbers go on rising."""
    with Store.create(path) as store:
        store.changes.log(Entity.ITEM, [1, 2, 3])
        last = store.changes.last()
        store._database.run("DELETE FROM change")
    with Store.open(path) as store:
        store.changes.log(Entity.ITEM, [4])

        assert store.changes.last() == last + 1


def test_what_was_undone_is_not_in_the_log(store: Store) -> None:
    """An entry belongs to the transaction of the change it tells of."""

    def fail() -> None:
        with store.transaction():
            store.changes.log(Entity.ITEM, [1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert store.changes.since(0) == []


def test_only_known_kinds_of_change_are_logged(store: Store) -> None:
    """The database itself refuses any other."""
    with pytest.raises(StoreError):
        store._database.run("INSERT INTO change (entity, id) VALUES ('other', 1)")
