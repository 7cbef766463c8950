"""Vectors are stored by item, part and model, and deleted with their item."""

from palaver.archiver.store import Embedding, Entity, Store, StoredVector

from .sample_values import decision, exchange, keys, store_session


def asked(store: Store, count: int = 3) -> tuple[int, list[int]]:
    """Store a session with exchanges, and return their IDs."""
    session, source = store_session(store)
    with store.transaction():
        store.exchanges.replace(session, source, 0, [exchange(ordinal, "a") for ordinal in range(count)])
    return session, list(keys(store).values())


def test_vectors_are_loaded_by_item_and_part(store: Store) -> None:
    """Vectors of an observation include its exchange. Vectors of another model are omitted."""
    session, (one, two, _) = asked(store)
    store.observations.replace(two, session, [decision("b")], "rules-1")
    learning = store.observations.of_exchange(two)[0].key
    store.vectors.replace("model", {two: {1: Embedding(b"2b"), 0: Embedding(b"2a")}, learning: {0: Embedding(b"o")}})
    store.vectors.replace("other", {one: {0: Embedding(b"1")}})

    assert store.vectors.all("model") == [
        StoredVector(two, two, 0, b"2a"),
        StoredVector(two, two, 1, b"2b"),
        StoredVector(learning, two, 0, b"o"),
    ]
    assert store.vectors.of_items("model", [one, learning]) == [StoredVector(learning, two, 0, b"o")]
    assert store.vectors.all("other") == [StoredVector(one, one, 0, b"1")]


def test_token_embeddings_are_stored_with_the_vector(store: Store) -> None:
    """Token embeddings are loaded with their vector, and are empty for a model without token embeddings."""
    _, (one, *_) = asked(store)
    store.vectors.replace("model", {one: {0: Embedding(b"a", b"s" * 32), 1: Embedding(b"b")}})

    assert [vector.token_bits for vector in store.vectors.all("model")] == [b"s" * 32, b""]


def test_new_vectors_replace_all_old_ones(store: Store) -> None:
    """An item has only the vectors of its last embedding, and the change is logged."""
    _, (one, *_) = asked(store)
    store.vectors.replace("model", {one: {0: Embedding(b"a"), 1: Embedding(b"b")}})
    mark = store.changes.last()
    store.vectors.replace("other", {one: {0: Embedding(b"c")}})

    assert store.vectors.all("model") == []
    assert [vector.data for vector in store.vectors.all("other")] == [b"c"]
    assert store.changes.since(mark, [Entity.VECTOR]) == [one]
    assert store.changes.since(mark, [Entity.ITEM]) == []


def test_a_deleted_item_is_skipped(store: Store) -> None:
    """Vectors of an item that was deleted during embedding are ignored."""
    _, (one, *_) = asked(store)
    store.vectors.replace("model", {999: {0: Embedding(b"x")}, one: {0: Embedding(b"a")}})

    assert [vector.item for vector in store.vectors.all("model")] == [one]


def test_items_wait_for_the_current_model(store: Store) -> None:
    """Items without vectors of the current model wait, newest first."""
    _, (one, two, three) = asked(store)
    store.vectors.replace("model", {two: {0: Embedding(b"a")}})

    assert store.vectors.unembedded("model", 9) == [three, one]
    assert store.vectors.unembedded("model", 1) == [three]
    assert store.vectors.waiting("model", [three, two, one]) == [one, three]
    assert store.vectors.waiting("model", [two]) == store.vectors.waiting("model", []) == []
    assert (store.vectors.count_unembedded("model"), store.vectors.count_unembedded("other")) == (2, 3)


def test_any_number_of_items_can_be_queried(store: Store) -> None:
    """More keys than a statement's limit of parameters are accepted."""
    _, known = asked(store, 1100)
    with store.transaction():
        store.vectors.replace("model", {key: {0: Embedding(b"v")} for key in known})

    assert [vector.item for vector in store.vectors.of_items("model", known)] == known
