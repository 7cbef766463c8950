"""Does the index grow into what a new one would be?"""

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


def test_nothing_new_is_not_published(history: History) -> None:
    """A generation is published once for each change, the first one even of nothing."""
    assert history.publish() is not None
    assert history.publish() is None
    history.say("one", Said("a question"))

    generation = history.publish()

    assert generation is not None
    assert generation.manifest.entries == 1
    assert generation.manifest.watermark == history.store.changes.last()
    assert history.publish() is None


def test_one_publishes_at_a_time(history: History) -> None:
    """While another process holds the lease nothing is published, and nobody waits."""
    history.say("one", Said("a question"))

    with Store.open(history.folder / "palaver.db") as other, other.leases.hold(indexer.LEASE):
        assert history.publish() is None
    assert history.publish() is not None


def test_every_item_is_embedded_once(history: History) -> None:
    """Embedding takes up what is new, reports how far it is, and finds nothing to do the second time."""
    [key] = history.say("one", Said("a question", "an answer that is long enough to be worth a vector of its own"))
    history.learn(key, learned("what was learned"))
    heard: list[tuple[int, int]] = []

    done = Indexer(history.store, history.generations, history.embedder).embed(
        lambda done, total: heard.append((done, total))
    )

    assert (done, heard) == (2, [(0, 2), (2, 2)])
    assert history.embed() == 0
    vectors = history.store.vectors.all(history.embedder.name)
    assert [(vector.event, vector.part) for vector in vectors] == [(key, 0), (key, 1), (key, 0)]


def test_what_changes_meanwhile_is_embedded_once_more(history: History) -> None:
    """An item that another process changes while it is embedded keeps no vector of what it said before."""

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
    """An item that says nothing gets no vectors and is not asked about again."""
    history.say("one", Said("", "", writes=("a.py",)))

    assert (history.embed(), history.embed()) == (1, 0)
    assert history.store.vectors.all(history.embedder.name) == []


def test_without_a_model_words_are_published(history: History) -> None:
    """A model that cannot be loaded stops the vectors, not the words."""
    history.embedder = FakeEmbedder(missing=True)
    history.say("one", Said("a question"))

    with pytest.raises(ModelUnavailable):
        history.embed()

    generation = history.publish()
    assert generation is not None
    assert (generation.manifest.entries, generation.manifest.vectors) == (1, 0)


def test_damage_is_repaired(history: History) -> None:
    """A damaged generation is replaced by a whole one although nothing new was said."""
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


def test_an_index_from_the_future_is_made_anew(history: History) -> None:
    """An index that has seen more changes than the store, as after a restored backup, is not built upon."""
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


def test_old_vectors_answer_until_the_new_ones_are_made(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another model embeds everything anew the old vectors stay in use; then the new ones take over at once."""
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
        assert (nearest[0].item, round(nearest[0].similarity, 2)) == (first, 1)
        assert nearest[1].item == second

    Indexer(history.store, history.generations, new).embed(look)

    assert steps == [("fake/1", 2), ("fake/1", 2), ("other/1", 2)]


def scores(history: History) -> list[tuple[int, float]]:
    return [(event.key, event.score) for event in history.engine().find("kettle spoon", Mode.TEXT, NO_FILTERS).events]


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[int, list[str], list[str], bool]]:
    """Steps: which session, what is said in it now, what is learned from its first exchange, and whether to publish."""
    said = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=0, max_size=3)
    step = st.tuples(st.integers(0, 2), said, st.lists(st.sampled_from(WORDS), max_size=2, unique=True), st.booleans())
    return draw(st.lists(step, min_size=1, max_size=5))


def seen(history: History) -> list[tuple[str, int, float | None]]:
    """Everything that can be found, with its similarity."""
    engine = history.engine()
    return sorted(
        (word, event.key, event.similarity)
        for word in WORDS
        for event in engine.find(word, Mode.BOTH, NO_FILTERS).events
    )


def test_what_was_deleted_does_not_weigh_for_long(history: History) -> None:
    """Where much has changed the words of the past no longer count: scores are those of an index made anew."""
    history.say("one", *(Said(f"kettle {n}") for n in range(20)))
    history.publish()
    history.say("one", *(Said(f"spoon {n}" if n else "kettle 0") for n in range(20)))
    history.publish()
    grown = scores(history)
    (history.folder / "index").rename(history.folder / "gone")

    assert grown == scores(history)


def test_deleted_entries_do_not_pile_up(history: History) -> None:
    """However many small changes there were, at most a quarter of the entries is left over from the past."""
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
def test_growing_equals_starting_anew(stale: float, story: list[tuple[int, list[str], list[str], bool]]) -> None:
    """After any history of changes the tail, the grown index and a rebuilt one find the same."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexer, "_STALE", stale)
        history = History(Path(folder))
        for session, said, titles, publish in story:
            exchanges = history.say(f"s{session}", *map(Said, said))
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


def test_who_lost_the_lease_publishes_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that slept while another took the index over must not replace what that one published."""
    history.say("one", Said("kettle"))
    first = history.publish()
    history.say("two", Said("teapot"))
    build = Indexer._build  # pyright: ignore[reportPrivateUsage]

    def overtaken(self: Indexer, folder: Path, previous: Generation | None, token: str, text: MakeText) -> Manifest:
        # Where file locks do not work, another process can begin in the middle.
        (history.folder / "index.lock").unlink()
        with history.store.leases.hold(LEASE):
            return build(self, folder, previous, token, text)

    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "_build", overtaken)
        assert history.publish() is None

    assert history.generations.current() == first
    assert history.publish() is not None
