"""Items: whatever can be found, under one numbering."""

from palaver.archiver.store import Store

from .said import begun, exchange, keys, learned


def test_items_of_all_kinds_are_looked_up_alike(store: Store) -> None:
    """Each tells its kind, session, time and the exchange it lies in."""
    session, source = begun(store)
    store.exchanges.replace(session, source, 0, [exchange(1, "a")])
    asking = keys(store)[1]
    store.observations.replace(asking, session, [learned("b", at=7)], "rules-1")
    learning = store.observations.of_exchange(asking)[0].key
    found = store.items.load([learning, asking, 999])

    assert {item.key: (item.kind, item.session, item.at, item.exchange) for item in found.values()} == {
        asking: ("exchange", session, 1000, asking),
        learning: ("observation", session, 7, asking),
    }
    assert store.items.all_keys() == [asking, learning]


def test_a_key_that_was_given_is_known_for_ever(store: Store) -> None:
    """Also when what had it is gone: no key is given twice."""
    assert store.items.issued([1]) == set()
    session, source = begun(store)
    store.exchanges.replace(session, source, 0, [exchange(1, "a")])
    asking = keys(store)[1]
    store.observations.replace(asking, session, [learned("b", at=7)], "rules-1")
    gone = store.observations.of_exchange(asking)[0].key
    store.observations.replace(asking, session, [learned("c", at=8)], "rules-2")
    now = store.observations.of_exchange(asking)[0].key

    assert gone not in store.items.load([gone])
    assert store.items.issued([0, gone, asking, now, now + 1]) == {gone, asking, now}


def test_any_number_of_items_is_looked_up(store: Store) -> None:
    """More keys than one statement may name are no problem, and none is left out."""
    session, source = begun(store)
    with store.transaction():
        store.exchanges.replace(session, source, 0, [exchange(ordinal, "a") for ordinal in range(1100)])
    known = store.items.all_keys()

    assert list(store.items.load([*known, *range(10**6, 10**6 + 500)])) == known
    assert store.items.load([]) == {}
