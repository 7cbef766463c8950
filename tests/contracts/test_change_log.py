"""Contract of `ChangeLog`, run on every kind of store with a change log."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import ChangeLog, Entity, Store
from palaver.core.conversation import Session
from palaver.core.memory import Memory

from ..archiver.store.sample_values import exchange, store_session

OPENERS: dict[str, Callable[[Path], Store]] = {"sqlite": Store.create}
"""Functions that create or reopen a store in a folder."""


@pytest.fixture(params=OPENERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Return a function that reopens the store."""
    return lambda: OPENERS[request.param](tmp_path / "palaver.db")


@pytest.fixture
def store(opened: Callable[[], Store]) -> Iterator[Store]:
    """Return an empty store."""
    with opened() as made:
        yield made


@pytest.fixture
def log(store: Store) -> ChangeLog:
    """Return the change log of the store."""
    return store.changes


def test_empty_log_has_no_entries(log: ChangeLog) -> None:
    """An empty log has no entries, and its last number is 0."""
    assert (log.last(), log.since(0)) == (0, [])


def test_numbers_rise_with_every_entry(log: ChangeLog) -> None:
    """Each entry has a higher number than all entries before it."""
    numbers: list[int] = []
    for item in (7, 3, 7):
        log.log(Entity.ITEM, [item])
        numbers.append(log.last())

    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0


def test_reader_gets_each_later_item_once_in_key_order(log: ChangeLog) -> None:
    """A reader gets each item with entries after a given number once, in the order of keys."""
    log.log(Entity.ITEM, [5, 3])
    watermark = log.last()
    log.log(Entity.VECTOR, [3, 4])
    log.log(Entity.ITEM, [3])

    assert log.since(0) == [3, 4, 5]
    assert log.since(watermark) == [3, 4]
    assert log.since(log.last()) == []


def test_reader_can_request_one_kind_of_change(log: ChangeLog) -> None:
    """A reader can request changes of vectors separately from changes of items."""
    log.log(Entity.ITEM, [1, 2])
    log.log(Entity.VECTOR, [2, 3])

    assert log.since(0, [Entity.ITEM]) == [1, 2]
    assert log.since(0, [Entity.VECTOR]) == [2, 3]


def test_entry_is_part_of_the_transaction(store: Store, log: ChangeLog) -> None:
    """A transaction that fails leaves neither its changes nor their entries."""

    def fail() -> None:
        with store.transaction():
            store.memories.insert(Memory("Never stored."), 1)
            log.log(Entity.VECTOR, [1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert (log.since(0), store.items.all_keys()) == ([], [])


def test_every_write_of_an_indexed_item_appends_an_entry(store: Store, log: ChangeLog) -> None:
    """Inserts, updates and deletes of items append entries without a call of `log`."""
    with store.transaction():
        key = store.memories.insert(Memory("Heat the kiln."), 1)
    assert log.since(0, [Entity.ITEM]) == [key]

    watermark = log.last()
    with store.transaction():
        store.memories.delete([key])
    assert log.since(watermark, [Entity.ITEM]) == [key]


def test_change_of_a_session_appends_entries_for_its_items(store: Store, log: ChangeLog) -> None:
    """A session change logs its exchanges, because their index entries contain columns of the session."""
    with store.transaction():
        session, source = store_session(store)
        store.exchanges.replace(session, source, 0, [exchange(0, "Why?"), exchange(1, "How?")])
    keys, watermark = store.items.all_keys(), log.last()
    with store.transaction():
        store.sessions.save(Session("claude-code", "one", project="shop"))

    assert log.since(watermark, [Entity.ITEM]) == keys


def test_write_of_an_equal_value_appends_no_entry(store: Store, log: ChangeLog) -> None:
    """A write that changes no value appends no entry."""
    with store.transaction():
        session, source = store_session(store)
        store.exchanges.replace(session, source, 0, [exchange(0, "Why?")])
    watermark = log.last()
    with store.transaction():
        store.exchanges.replace(session, source, 0, [exchange(0, "Why?")])

    assert log.since(watermark) == []


def test_numbers_and_entries_survive_reopening(opened: Callable[[], Store]) -> None:
    """A watermark stays valid in another process."""
    with opened() as store:
        store.changes.log(Entity.ITEM, [1, 2])
        watermark = store.changes.last()
    with opened() as store:
        store.changes.log(Entity.ITEM, [3])
        log = store.changes

        assert log.last() > watermark
        assert log.since(watermark) == [3]
