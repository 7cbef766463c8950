"""Observations belong to an exchange, are replaced together, and keep their keys while they are equal."""

from palaver.archiver.store import Store
from palaver.core.observation import Evidence, Observation, ObservationType

from .sample_values import decision, exchange, keys, store_session

FULL = Observation(
    type=ObservationType.BUG_FIX,
    title="Prices are cents",
    subtitle="no more rounding",
    narrative="Ünïcode, 日本語, 🎉",
    facts=("one", "two"),
    concepts=("money",),
    files_read=("/a",),
    files_modified=("/b", "/c"),
    evidence=(Evidence(1, 2, "use cents"), Evidence(7, 7, "")),
    at=123,
    origin="human",
    extractor="rules-1",
)


def asked(store: Store) -> tuple[int, int]:
    """Store a session with one exchange, and return their IDs."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a")])
    return session, keys(store)[0]


def test_a_stored_observation_is_the_same_observation(store: Store) -> None:
    """Every field is loaded as it was stored, by exchange and by key."""
    session, asking = asked(store)
    store.observations.replace(asking, session, [FULL], "rules-1")
    (stored,) = store.observations.of_exchange(asking)

    assert stored.observation == FULL
    assert (stored.exchange, stored.session) == (asking, session)
    assert store.observations.load([stored.key, 999]) == {stored.key: stored}


def test_an_equal_observation_keeps_its_key(store: Store) -> None:
    """Replacing logs new and deleted observations and their exchange."""
    session, asking = asked(store)
    store.observations.replace(asking, session, [decision("stays"), decision("goes")], "rules-1")
    stays, goes = (stored.key for stored in store.observations.of_exchange(asking))
    mark = store.changes.last()
    store.observations.replace(asking, session, [decision("comes"), decision("stays")], "rules-2")
    titles = {stored.observation.title: stored.key for stored in store.observations.of_exchange(asking)}

    assert titles["stays"] == stays
    assert set(titles) == {"stays", "comes"}
    assert store.changes.since(mark) == sorted([asking, goes, titles["comes"]])


def test_equal_observations_change_nothing(store: Store) -> None:
    """Replacing equal observations logs no change, but marks the exchange as observed by the new rules."""
    session, asking = asked(store)
    store.observations.replace(asking, session, [FULL], "rules-1")
    mark = store.changes.last()
    store.observations.replace(asking, session, [FULL], "rules-2")

    assert store.changes.since(mark) == []
    assert store.exchanges.count_unobserved("rules-2") == 0


def test_duplicate_observations_are_stored_once(store: Store) -> None:
    """Equal observations of an exchange are stored once, also after a replacement."""
    session, asking = asked(store)
    for _ in range(2):
        store.observations.replace(asking, session, [FULL, FULL], "rules-1")

    assert [stored.observation for stored in store.observations.of_exchange(asking)] == [FULL]


def test_an_exchange_without_observations_does_not_wait_again(store: Store) -> None:
    """An exchange without observations counts as observed."""
    session, asking = asked(store)
    store.observations.replace(asking, session, [], "rules-1")

    assert store.observations.of_exchange(asking) == []
    assert store.exchanges.count_unobserved("rules-1") == 0


def test_observations_are_counted_by_type(store: Store) -> None:
    """Types are counted with the most frequent type first."""
    session, asking = asked(store)
    store.observations.replace(asking, session, [FULL, decision("a"), decision("b")], "rules-1")

    assert list(store.observations.count_by_type().items()) == [("decision", 2), ("bug-fix", 1)]
    assert store.observations.of_exchanges([]) == {}
