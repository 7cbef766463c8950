"""Tests of embedding, publishing and repairing the index."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.store import Store
from palaver.core.errors import ModelUnavailable
from palaver.core.query import Mode
from palaver.search.index import indexer
from palaver.search.index.generation import Generation, Manifest
from palaver.search.index.indexer import LEASE, Indexer, MakeText
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.text_index import TextIndex

from ..fake_embedder import FakeEmbedder
from ..history import NO_FILTERS, History, Said, keys, learned

WORDS = ["alpha", "beta", "gamma", "delta"]


def test_an_unchanged_index_is_not_published(history: History) -> None:
    """A generation is published once for each change. The first generation can be empty."""
    assert history.publish() is not None
    assert history.publish() is None
    history.say("one", Said("a question"))

    generation = history.publish()

    assert generation is not None
    assert generation.manifest.entries == 1
    assert generation.manifest.watermark == history.store.changes.last()
    assert history.publish() is None


def test_the_lease_prevents_concurrent_publishing(history: History) -> None:
    """While another process holds the lease, publishing returns at once without a result."""
    history.say("one", Said("a question"))

    with Store.open(history.folder / "palaver.db") as other, other.leases.hold(indexer.LEASE):
        assert history.publish() is None
    assert history.publish() is not None


def test_every_item_is_embedded_once(history: History) -> None:
    """Embedding processes new items, reports its progress, and has no work the second time."""
    [key] = history.say("one", Said("a question", "an answer that is long enough to be worth a vector of its own"))
    history.learn(key, learned("what was learned"))
    progress: list[tuple[int, int]] = []

    done = Indexer(history.store, history.generations, history.embedder).embed(
        lambda done, total: progress.append((done, total))
    )

    assert (done, progress) == (2, [(0, 2), (2, 2)])
    assert history.embed() == 0
    vectors = history.store.vectors.all(history.embedder.name)
    assert [(vector.event, vector.part) for vector in vectors] == [(key, 0), (key, 1), (key, 0)]


def test_an_item_that_changes_while_it_is_embedded(history: History) -> None:
    """If another process changes an item while it is embedded, the old vector is discarded and the item is embedded
    again.
    """

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            if texts == ["a question"]:
                history.say("one", Said("quite another question"))
            return super().embed(texts)

    history.embedder = Slow()
    history.say("one", Said("a question"))

    assert history.embed() == 1

    [vector] = history.store.vectors.all(history.embedder.name)
    [row] = FakeEmbedder().embed(["quite another question"]).astype("<f2")
    assert vector.data == row.tobytes()


def test_items_without_text_are_embedded_too(history: History) -> None:
    """An item without text gets no vectors and is not processed again."""
    history.say("one", Said("", "", writes=("a.py",)))

    assert (history.embed(), history.embed()) == (1, 0)
    assert history.store.vectors.all(history.embedder.name) == []


def test_without_a_model_the_text_index_is_published(history: History) -> None:
    """If the model cannot be loaded, the text index is published without vectors."""
    history.embedder = FakeEmbedder(missing=True)
    history.say("one", Said("a question"))

    with pytest.raises(ModelUnavailable):
        history.embed()

    generation = history.publish()
    assert generation is not None
    assert (generation.manifest.entries, generation.manifest.vectors) == (1, 0)


def test_a_damaged_index_is_repaired(history: History) -> None:
    """A damaged generation is replaced, even without new items."""
    [key] = history.say("one", Said("a question"))
    history.embed()
    generation = history.publish()
    assert generation is not None
    for path in generation.folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")

    repaired = history.publish()

    assert repaired is not None
    assert repaired.manifest.vectors == generation.manifest.vectors == 1
    assert keys(history.engine().find("question", Mode.BOTH, NO_FILTERS).events) == [key]


def test_an_index_ahead_of_the_database_is_rebuilt(history: History) -> None:
    """An index that includes more changes than the database, as after a restored backup, is rebuilt."""
    with TemporaryDirectory() as folder:
        other = History(Path(folder))
        for number in range(5):
            other.say(f"s{number}", Said("something else"))
        other.publish()
        (Path(folder) / "index").rename(history.folder / "index")
    [key] = history.say("one", Said("a question"))

    assert keys(history.engine().find("question", Mode.BOTH, NO_FILTERS).events) == [key]
    assert keys(history.engine().find("something", Mode.BOTH, NO_FILTERS).events) == []
    generation = history.publish()
    assert generation is not None
    assert generation.manifest.entries == 1


def test_old_vectors_are_used_until_the_new_model_is_complete(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another model embeds all items, old vectors stay in use. Then the new vectors replace them at once."""
    old, new = FakeEmbedder(), FakeEmbedder("other/1")
    first, second = history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()

    history.embedder = new
    monkeypatch.setattr(indexer, "_BATCH", 1)
    steps: list[tuple[str, int]] = []

    def look(_done: int, _total: int) -> None:
        history.publish()
        view = Snapshot(history.store, history.generations, old)
        [vector] = (old if view.model == old.name else new).embed(["brass kettle"])
        nearest = view.nearest(vector, NO_FILTERS, 2)
        steps.append((view.model, len(nearest)))
        assert nearest.item.tolist() == [first, second]
        assert round(nearest.similarity[0], 2) == 1

    Indexer(history.store, history.generations, new).embed(look)

    assert steps == [("fake/1", 2), ("fake/1", 2), ("other/1", 2)]


def scores(history: History) -> list[tuple[int, float]]:
    return [(event.key, event.score) for event in history.engine().find("kettle spoon", Mode.TEXT, NO_FILTERS).events]


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[int, list[str], list[str], bool]]:
    """Generate steps: session, new exchanges, observations of its first exchange, and whether to publish."""
    texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=0, max_size=3)
    step = st.tuples(st.integers(0, 2), texts, st.lists(st.sampled_from(WORDS), max_size=2, unique=True), st.booleans())
    return draw(st.lists(step, min_size=1, max_size=5))


def seen(history: History) -> list[tuple[str, int, float | None]]:
    """Return every item that can be found, with its similarity."""
    engine = history.engine()
    return sorted(
        (word, event.key, event.similarity)
        for word in WORDS
        for event in engine.find(word, Mode.BOTH, NO_FILTERS).events
    )


def test_deleted_entries_soon_stop_counting_in_idf(history: History) -> None:
    """After many deletions, scores are the same as in a rebuilt index."""
    history.say("one", *(Said(f"kettle {n}") for n in range(20)))
    history.publish()
    history.say("one", *(Said(f"spoon {n}" if n else "kettle 0") for n in range(20)))
    history.publish()
    grown = scores(history)
    (history.folder / "index").rename(history.folder / "gone")

    assert grown == scores(history)


def test_deleted_entries_do_not_accumulate(history: History) -> None:
    """After any number of small changes, at most a quarter of the entries are deleted entries."""
    stale: list[float] = []
    for number in range(12):
        history.say("one", *(Said(f"kettle {n} {number if n == number else ''}") for n in range(60)))
        generation = history.publish()
        assert generation is not None
        stale.append(TextIndex.open(generation.text).stale)

    assert 0 < max(stale) < 0.35
    assert stale.count(0) > 1


@pytest.mark.parametrize("stale", [indexer._STALE, 9])  # pyright: ignore[reportPrivateUsage]
@given(story=stories())
@settings(max_examples=10)
def test_an_updated_index_equals_a_rebuilt_index(
    stale: float, story: list[tuple[int, list[str], list[str], bool]]
) -> None:
    """After any changes, the unpublished, the updated and the rebuilt index give the same results."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexer, "_STALE", stale)
        history = History(Path(folder))
        for session, prompts, titles, publish in story:
            exchanges = history.say(f"s{session}", *map(Said, prompts))
            if exchanges:
                history.learn(exchanges[0], *map(learned, titles))
            if publish:
                history.embed()
                history.publish()
        history.embed()
        with_tail = seen(history)
        history.publish()
        grown = seen(history)
        (Path(folder) / "index").rename(Path(folder) / "gone")
        tail_alone = seen(history)
        history.publish()

        assert with_tail == grown == tail_alone == seen(history)


def test_a_process_without_the_lease_does_not_publish(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that lost its lease while it was suspended does not replace the index of another process."""
    history.say("one", Said("kettle"))
    first = history.publish()
    history.say("two", Said("teapot"))
    build = Indexer._build  # pyright: ignore[reportPrivateUsage]

    def lose_lease(self: Indexer, folder: Path, previous: Generation | None, token: str, text: MakeText) -> Manifest:
        # Without working file locks, another process can start meanwhile.
        (history.folder / "index.lock").unlink()
        with history.store.leases.hold(LEASE):
            return build(self, folder, previous, token, text)

    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "_build", lose_lease)
        assert history.publish() is None

    assert history.generations.current() == first
    assert history.publish() is not None
