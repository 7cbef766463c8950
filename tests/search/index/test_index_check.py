"""Tests of comparing the index with the database."""

import shutil

import pytest

from palaver.archiver.store import Embedding, Store
from palaver.core.query import Mode
from palaver.search.index import index_check
from palaver.search.index.index_check import IndexCheck
from palaver.search.index.indexer import Indexer
from palaver.search.index.text_index import TextEntry, TextIndex

from ..fake_embedder import FakeEmbedder
from ..history import NO_FILTERS, History, Said, keys, learned


def test_an_updated_index_is_equal(history: History) -> None:
    """Any sequence of updates gives an index equal to the database. Later changes are not reported as differences."""
    [key] = history.say("one", Said("brass kettle", "an answer that is long enough to be worth a vector of its own"))
    comparison = IndexCheck(history.store, history.generations)
    assert comparison.run().differences == []
    for step in range(4):
        history.embed()
        history.publish()
        assert comparison.run().differences == []
        history.learn(key, learned(f"lesson {step}"))
        history.say(f"s{step}", Said(f"silver spoon {step}"))
        assert comparison.run().differences == []
    history.say("s0")
    history.publish()
    found = comparison.run()
    assert (found.differences, found.mismatched_vectors) == ([], [])
    assert found.entries > 3


def test_only_an_index_that_is_needed_can_be_missing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive needs no index. A deleted index is missing, and so is the index of a large archive."""
    history.say("one", Said("brass kettle"))
    check = IndexCheck(history.store, history.generations)
    assert check.run().differences == []
    monkeypatch.setattr(index_check, "UNINDEXED_MAX", 0)
    assert check.run().differences == ["the index is missing, and 1 change is not indexed"]
    monkeypatch.undo()

    history.publish()
    shutil.rmtree(history.generations.root)
    assert check.run().differences == ["the index is missing, and 1 change is not indexed"]


def test_another_model_is_not_a_difference(history: History) -> None:
    """While another model embeds all items, the old vectors in the index are not a difference."""
    history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()
    history.embedder = FakeEmbedder("other/1")
    with history.store.transaction():
        [row] = history.embedder.embed(["brass kettle"]).astype("<f2")
        history.store.vectors.replace("other/1", {1: {0: Embedding(row.tobytes())}})
    history.publish()

    assert IndexCheck(history.store, history.generations).run().differences == []


def test_an_index_of_another_database_state_is_not_updated(history: History) -> None:
    """After a backup is restored, the index is not updated, even if the number of changes is the same again."""
    history.say("one", Said("brass kettle"))
    database = history.folder / "palaver.db"
    history.store.close()
    backup = database.read_bytes()
    history.store = Store.open(database)
    history.say("two", Said("silver spoon"))
    history.publish()
    history.store.close()
    database.write_bytes(backup)
    history.store = Store.open(database)
    [key] = history.say("three", Said("copper teapot"))

    assert keys(history.engine().find("teapot", Mode.TEXT, NO_FILTERS).events) == [key]
    assert keys(history.engine().find("spoon", Mode.TEXT, NO_FILTERS).events) == []
    [difference] = IndexCheck(history.store, history.generations).run().differences
    assert "does not belong" in difference
    assert history.publish() is not None
    assert IndexCheck(history.store, history.generations).run().differences == []


def test_the_digest_covers_every_field() -> None:
    """Entries that differ in any searchable or filterable field have different digests."""
    first = TextEntry(1, 1, 1, 0, 0, 1, 2, "brass kettle")
    others = [
        TextEntry(1, 1, 1, 0, 0, 1, 2, "brass kettles"),
        TextEntry(1, 1, 1, 0, 5, 1, 2, "brass kettle"),
        TextEntry(1, 1, 1, 0, 0, 1, 3, "brass kettle"),
        TextEntry(1, 1, 1, 0, 0, 1, 2, "brass kettle", values={"kind": ("observation",)}),
        TextEntry(1, 1, 1, 0, 0, 1, 2, "brass kettle", values={"concept": ("metal",)}),
        TextEntry(1, 1, 1, 0, 0, 1, 2, "brass kettle", values={"file": ("metal",)}),
    ]
    index = TextIndex.make()
    index.apply([], [first, *others])

    assert set(index.contents()) == {(1, entry.digest) for entry in (first, *others)}
    assert index.contents().total() == 1 + len(others)


def test_a_rebuilt_index_is_equal(history: History) -> None:
    """Rebuilding the index needs no model and gives equal contents."""
    history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()
    before = IndexCheck(history.store, history.generations).run()

    Indexer(history.store, history.generations, FakeEmbedder(missing=True)).rebuild()

    assert IndexCheck(history.store, history.generations).run() == before
