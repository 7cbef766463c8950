"""Items of all kinds share one sequence of IDs."""

from palaver.archiver.store import Store

from .sample_values import decision, exchange, keys, store_session


def test_items_of_all_kinds_are_loaded_alike(store: Store) -> None:
    """An item of any kind is loaded with its kind, session, time and exchange."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(1, "a")])
    asking = keys(store)[1]
    store.observations.replace(asking, session, [decision("b", at=7)], "rules-1")
    learning = store.observations.of_exchange(asking)[0].key
    found = store.items.load([learning, asking, 999])

    assert {item.key: (item.kind, item.session, item.at, item.exchange) for item in found.values()} == {
        asking: ("exchange", session, 1000, asking),
        learning: ("observation", session, 7, asking),
    }
    assert store.items.all_keys() == [asking, learning]


def test_an_issued_key_stays_issued(store: Store) -> None:
    """A key remains issued after its item was deleted, so it is never issued again."""
    assert store.items.issued([1]) == set()
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(1, "a")])
    asking = keys(store)[1]
    store.observations.replace(asking, session, [decision("b", at=7)], "rules-1")
    gone = store.observations.of_exchange(asking)[0].key
    store.observations.replace(asking, session, [decision("c", at=8)], "rules-2")
    now = store.observations.of_exchange(asking)[0].key

    assert gone not in store.items.load([gone])
    assert store.items.issued([0, gone, asking, now, now + 1]) == {gone, asking, now}


def test_any_number_of_items_is_loaded(store: Store) -> None:
    """More keys than SQLite's limit of parameters are loaded completely."""
    session, source = store_session(store)
    with store.transaction():
        store.exchanges.replace(session, source, 0, [exchange(ordinal, "a") for ordinal in range(1100)])
    known = store.items.all_keys()

    assert list(store.items.load([*known, *range(10**6, 10**6 + 500)])) == known
    assert store.items.load([]) == {}
