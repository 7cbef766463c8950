"""Exchanges are loaded as they were stored, and equal exchanges keep their keys."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.archiver.store import Embedding, Store
from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.results import turn_costs

from .sample_values import decision, exchange, keys, store_session

# Readers guarantee texts without lone surrogates and NUL characters.
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
moment = st.none() | st.integers(0, 2**53)
turn = st.builds(
    Turn,
    line=st.integers(1, 10**9),
    speaker=st.sampled_from(Speaker),
    kind=st.sampled_from(Kind),
    text=text,
    at=moment,
    record=text,
    group=text,
    tool=text,
    call=text,
    failed=st.booleans(),
    reads=st.lists(text, max_size=2).map(tuple),
    writes=st.lists(text, max_size=2).map(tuple),
    active=st.booleans(),
)
span = st.builds(Span, *[st.integers(1, 2**62)] * 4)
spoken = st.builds(
    Exchange,
    ordinal=st.just(0),
    span=span,
    turns=st.lists(turn, max_size=4).map(tuple),
    started=moment,
    ended=moment,
    cwd=text,
    branch=text,
)


def test_a_stored_exchange_is_the_same_exchange(store: Store) -> None:
    """Every field is loaded as it was stored, and each exchange is logged."""
    session, source = store_session(store)

    @given(spoken)
    @settings(max_examples=60)
    def assert_round_trip(original: Exchange) -> None:
        store.exchanges.replace(session, source, 0, [original])
        ((key, stored),) = store.exchanges.load(store.items.all_keys()).items()

        assert stored.exchange == original
        assert (stored.key, stored.session, stored.source) == (key, session, source)

    assert_round_trip()


def test_a_growing_exchange_keeps_its_key(store: Store) -> None:
    """Only exchanges with changed content are logged, observed and embedded again."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a", "b"), exchange(1, "c")])
    before, mark = keys(store), store.changes.last()
    for key in before.values():
        store.observations.replace(key, session, [], "rules-1")
        store.vectors.replace("model", {key: {0: Embedding(b"v")}})
    mark = store.changes.last()
    store.exchanges.replace(session, source, 1, [exchange(1, "c", "d"), exchange(2, "e")])

    assert keys(store) | before == keys(store)
    assert store.changes.since(mark) == [before[1], keys(store)[2]]
    assert [found.key for found in store.exchanges.unobserved("rules-1", 9)] == [before[1], keys(store)[2]]
    assert store.vectors.unembedded("model", 9) == [keys(store)[2], before[1]]


def test_the_costs_of_turns_follow_the_turns(store: Store) -> None:
    """Stored costs equal those of the turns. They are dropped when the turns change, and are no change to index."""
    session, source = store_session(store)
    first, second = exchange(0, "a", "b b b"), exchange(1, "c")
    store.exchanges.replace(session, source, 0, [first, second])
    computed = turn_costs([*first.turns, *second.turns])
    assert store.exchanges.costs_of(store.items.all_keys()) == computed
    mark, uncounted = store.changes.last(), store.exchanges.without_costs(9)
    store.exchanges.store_costs(uncounted)

    assert store.exchanges.costs_of(store.items.all_keys()) == computed
    assert (store.exchanges.without_costs(9), store.changes.since(mark)) == ([], [])
    grown = exchange(1, "c", "d")
    store.exchanges.replace(session, source, 1, [grown])
    store.exchanges.store_costs(uncounted)
    assert [key for key, _ in store.exchanges.without_costs(9)] == [keys(store)[1]]
    assert store.exchanges.costs_of([keys(store)[1]]) == turn_costs(grown.turns)


def test_more_lines_without_text_are_not_a_change(store: Store) -> None:
    """Bookkeeping lines after an exchange move its end without logging a change."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a", "b")])
    mark = store.changes.last()
    store.exchanges.replace(session, source, 0, [exchange(0, "a", "b", end=99)])

    assert store.exchanges.load([*keys(store).values()])[keys(store)[0]].exchange.span.end_line == 99
    assert store.changes.since(mark) == []


def test_deleting_exchanges_deletes_their_observations(store: Store) -> None:
    """Observations and vectors of deleted exchanges are deleted and logged, so that indexes remove them."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a"), exchange(1, "b")])
    kept, gone = keys(store).values()
    store.observations.replace(gone, session, [decision("b")], "rules-1")
    (observation,) = store.observations.of_exchange(gone)
    store.vectors.replace(
        "model", {gone: {0: Embedding(b"v")}, observation.key: {0: Embedding(b"v")}, kept: {0: Embedding(b"v")}}
    )
    mark = store.changes.last()
    store.exchanges.replace(session, source, 0, [exchange(0, "a")])

    assert store.items.all_keys() == [kept]
    assert [vector.item for vector in store.vectors.all("model")] == [kept]
    assert store.observations.load([observation.key]) == {}
    assert store.changes.since(mark) == sorted([gone, observation.key])


def test_sources_are_separate(store: Store) -> None:
    """Replacing the exchanges of one source changes no other source."""
    session, one = store_session(store)
    _, two = store_session(store, "two")
    store.exchanges.replace(session, one, 0, [exchange(0, "a")])
    store.exchanges.replace(session, two, 0, [exchange(0, "b"), exchange(1, "c")])
    store.exchanges.replace(session, one, 0, [])

    prompts = [found.exchange.prompt for found in store.exchanges.load(store.items.all_keys()).values()]
    assert prompts == ["b", "c"]


def test_keys_are_never_reused(store: Store) -> None:
    """The ID of a deleted item is never issued to another item."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a"), exchange(1, "b")])
    before = set(store.items.all_keys())
    store.exchanges.replace(session, source, 0, [])
    store.exchanges.replace(session, source, 0, [exchange(0, "a"), exchange(1, "b")])

    assert before.isdisjoint(store.items.all_keys())


@pytest.mark.parametrize(
    ("line", "found"), [(1, (0, 1, 0)), (10, (0, 1, 0)), (11, (1, 11, 100)), (20, (1, 11, 100)), (999, (1, 11, 100))]
)
def test_the_exchange_of_a_line_is_found(store: Store, line: int, found: tuple[int, int, int]) -> None:
    """Reading can begin at the exchange that contains a line."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a"), exchange(1, "b")])

    assert store.exchanges.start_before(source, line) == found


def test_a_line_before_all_exchanges_maps_to_the_start_of_the_file(store: Store) -> None:
    """Reading starts at the start of the file if no exchange begins before the line."""
    session, source = store_session(store)
    assert store.exchanges.start_before(source, 5) == (0, 1, 0)

    store.exchanges.replace(session, source, 0, [exchange(1, "b")])
    assert store.exchanges.start_before(source, 10) == (0, 1, 0)


def test_unknown_keys_are_omitted(store: Store) -> None:
    """Loading unknown keys, or no keys, raises no error."""
    assert store.exchanges.load([]) == {}
    assert store.exchanges.load([1, 2**62]) == {}


def test_exchanges_wait_until_rules_observe_them(store: Store) -> None:
    """With new rules every exchange waits again, and the oldest exchange comes first."""
    session, source = store_session(store)
    store.exchanges.replace(session, source, 0, [exchange(0, "a"), exchange(1, "b"), exchange(2, "c")])
    first, second, third = keys(store).values()
    store.observations.replace(second, session, [], "rules-1")

    assert [found.key for found in store.exchanges.unobserved("rules-1", 9)] == [first, third]
    assert [found.key for found in store.exchanges.unobserved("rules-1", 1)] == [first]
    assert store.exchanges.count_unobserved("rules-1") == 2
    assert store.exchanges.count_unobserved("rules-2") == store.exchanges.count() == 3


def test_a_rewound_turn_is_a_change(store: Store) -> None:
    """Rewinding changes the content of an exchange."""
    session, source = store_session(store)
    original = exchange(0, "a", "b")
    store.exchanges.replace(session, source, 0, [original])
    mark = store.changes.last()
    store.exchanges.replace(
        session, source, 0, [replace(original, turns=(original.turns[0], original.turns[1]._replace(active=False)))]
    )

    assert store.changes.since(mark) == [keys(store)[0]]
