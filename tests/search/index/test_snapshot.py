"""Tests of snapshots: they combine the published index with changes that are not published."""

import gc
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from palaver.archiver.store import Store
from palaver.core.query import Filters, Mode, Role
from palaver.search.index import generation, snapshot
from palaver.search.index.generation import Generation, Generations
from palaver.search.index.matches import Integers, TextMatches, VectorMatches
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.text_index import TextIndex
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.engine import Engine

from ..history import NO_FILTERS, History, Said, keys
from .test_generation import truncate


def found(engine: Engine, words: str, mode: Mode = Mode.BOTH, filters: Filters = NO_FILTERS) -> list[int]:
    return keys(engine.find(words, mode, filters).events)


def similarity(engine: Engine, words: str, key: int) -> float:
    [event] = [event for event in engine.find(words, Mode.VECTOR, NO_FILTERS).events if event.key == key]
    assert event.similarity is not None
    return event.similarity


def scores(engine: Engine, words: str) -> dict[int, float]:
    return {event.key: event.score for event in engine.find(words, Mode.BOTH, NO_FILTERS).events}


@pytest.fixture
def published(history: History) -> History:
    """Archive with two exchanges, embedded and published."""
    history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()
    return history


@pytest.mark.parametrize(("listed", "of_all"), [(3, 1_000), (1, 2)])
def test_a_narrow_filter_is_evaluated_once(
    published: History, monkeypatch: pytest.MonkeyPatch, listed: int, of_all: int
) -> None:
    """If few entries satisfy the filters, counting them also returns their keys."""
    published.say("two", Said("copper pan"), Said("copper kettle"))
    published.embed()
    published.publish()
    engine, filters = published.engine(), Filters(projects=("two",))
    expected = found(published.engine(), "kettle", Mode.BOTH, filters)
    monkeypatch.setattr(snapshot, "_LISTED", listed)
    monkeypatch.setattr(snapshot, "_OF_ALL", of_all)
    listing, indexes = TextIndex.keys, list[int]()

    def keys(self: TextIndex, filters: Filters) -> Integers:
        indexes.append(len(self))
        return listing(self, filters)

    monkeypatch.setattr(TextIndex, "keys", keys)

    assert isinstance(engine.snapshot, Snapshot)
    assert engine.snapshot.share(filters) == 0.5
    vector_matches = engine.snapshot.nearest(published.embedder.embed(["kettle"])[0, :], filters, 10)
    assert sorted(vector_matches.item.tolist()) == sorted(expected)
    assert indexes == [0]  # unpublished entries only


def test_changes_of_another_connection_are_found(published: History) -> None:
    """An open engine finds an exchange of another connection by its words, and by its vector once it is embedded."""
    engine = published.engine()
    with Store.open(published.folder / "palaver.db") as other:
        writer = History.__new__(History)
        writer.__dict__.update(published.__dict__, store=other)
        [key] = writer.say("two", Said("copper pan"))

        assert found(engine, "copper", Mode.TEXT) == [key]
        assert engine.snapshot.lag == 1
        writer.embed()
        assert found(engine, "copper pan", Mode.VECTOR)[0] == key


def test_changes_of_another_process_are_found(published: History) -> None:
    """An open engine finds an exchange that another process stored."""
    engine = published.engine()
    program = (
        "import sys; from pathlib import Path; from tests.search.history import History, Said\n"
        "print(History(Path(sys.argv[1])).say('two', Said('copper pan'))[0])"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program, str(published.folder)], cwd=root, capture_output=True, text=True, check=True
    )

    assert found(engine, "copper", Mode.TEXT) == [int(ran.stdout)]


def test_changes_replace_published_entries(published: History) -> None:
    """A changed exchange is found by its new words only, and by its old vector until it is embedded again."""
    engine = published.engine()
    first, _ = published.say("one", Said("iron pot"), Said("silver spoon"))

    assert found(engine, "kettle", Mode.TEXT) == []
    assert found(engine, "iron", Mode.TEXT)[0] == first
    assert similarity(engine, "brass kettle", first) == pytest.approx(1, abs=1e-3)
    published.embed()
    assert similarity(engine, "brass kettle", first) < 0.9
    assert similarity(engine, "iron pot", first) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("roles", [(), (Role.HUMAN,)])
def test_cached_filters_give_the_same_matches(history: History, roles: tuple[Role, ...]) -> None:
    """A text search among some items gives the same matches, whether the keys of the filters are cached or not."""
    history.say("one", Said("brass kettle", at=5), Said("a spoon", "The answer is a kettle.", at=6), Said("kettle"))
    history.embed()
    history.publish()
    history.say("later", Said("kettle again", "An answer without it.", at=7))
    filters, keys = Filters(after=1, roles=roles), sorted(history.store.items.all_keys())
    asked, known = history.engine().snapshot, history.engine().snapshot
    [vector] = history.embedder.embed(["kettle"])
    known.nearest(vector, filters, 50)

    [first, second] = [view.text(AnalyzedQuery("kettle answer"), filters, 50, among=keys) for view in (asked, known)]

    assert first.key.tolist() == second.key.tolist()
    assert len(set(first.key.tolist())) == (2 if roles else 3)
    assert first.fraction.tolist() == second.fraction.tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="memory maps are only listed on Linux")
def test_a_released_snapshot_unmaps_its_files(history: History) -> None:
    """Files are unmapped without a garbage collection, so that erased data leaves the disk."""
    history.say("one", Said("brass kettle", at=5))
    history.embed()
    history.publish()
    engine, filters = history.engine(), Filters(after=1)
    [vector] = history.embedder.embed(["kettle"])
    assert (
        len(engine.snapshot.nearest(vector, filters, 5)) == len(engine.find("kettle", Mode.BOTH, filters).events) == 1
    )

    def mapped() -> bool:
        return str(history.generations.root) in Path("/proc/self/maps").read_text()

    gc.disable()
    try:
        assert mapped()
        del engine
        deadline = time.monotonic() + 30  # a thread that Tantivy starts with an index may still be reading it
        while mapped() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not mapped()
    finally:
        gc.enable()


def test_a_deleted_item_is_not_found(published: History) -> None:
    """A deleted item is not found by words, vectors or filters."""
    engine = published.engine()
    [first] = published.say("one", Said("brass kettle"))

    assert found(engine, "silver spoon") == [first]
    assert found(engine, "spoon", Mode.TEXT) == []
    assert found(engine, "spoon", Mode.TEXT, Filters(projects=("one",))) == []
    assert engine.snapshot.allowed(Filters(projects=("one",)), [first, first + 1]) == {first}


def test_a_new_generation_is_opened(published: History) -> None:
    """An open engine uses a newly published generation, finds the same events, and has a lag of 0."""
    engine = published.engine()
    [key] = published.say("two", Said("copper pan"))
    before = engine.find("copper", Mode.TEXT, NO_FILTERS).events
    assert engine.snapshot.lag == 1

    published.publish()

    assert keys(engine.find("copper", Mode.TEXT, NO_FILTERS).events) == keys(before) == [key]
    assert engine.snapshot.lag == 0


def test_readers_keep_a_removed_generation(published: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open engine searches its generation even after that generation was removed."""
    monkeypatch.setattr(generation, "_GRACE", 0)
    view = Snapshot(published.store, published.generations, published.embedder)
    for number in range(3):
        published.say(f"s{number}", Said("copper pan"))
        published.publish()
    [vector] = published.embedder.embed(["brass kettle"])

    assert not (published.folder / "index" / "gen-1").exists()
    assert set(view.text("kettle", NO_FILTERS, 5).key) == {1, 2}
    assert view.nearest(vector, NO_FILTERS, 1).similarity[0] == pytest.approx(1, abs=1e-3)


def test_an_unpublished_archive_has_the_same_scores(published: History) -> None:
    """Before the first publication, searches give the same events and scores as afterwards."""
    with_index = scores(published.engine(), "brass spoon")
    shutil.rmtree(published.folder / "index")

    assert scores(published.engine(), "brass spoon") == pytest.approx(with_index)


FILES = [
    "manifest.json",
    "text/meta.json",
    "text/.managed.json",
    *(f"text/*.{kind}" for kind in ("idx", "term", "pos", "fast", "store", "fieldnorm")),
    "vectors/0/rows.npy",
    "vectors/0/vectors.npy",
    "vectors/0/signs.npy",
    "vectors/0/tokens.npy",
]


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
@pytest.mark.parametrize("pattern", FILES)
def test_search_survives_damaged_index_files(published: History, pattern: str, damage: Callable[[Path], None]) -> None:
    """If an index file is truncated or missing, search uses the database. The next publication repairs the index."""
    [path] = (published.folder / "index" / "gen-1").glob(pattern)
    path.write_bytes(path.read_bytes())  # damage the file of this generation only
    damage(path)

    view = Snapshot(published.store, published.generations, published.embedder)
    assert view.lag == published.store.changes.last()
    assert found(published.engine(), "brass kettle") == [1, 2]
    assert published.publish() is not None
    view.refresh()
    assert (view.lag, found(published.engine(), "brass kettle")) == (0, [1, 2])


def test_the_list_of_index_files_is_complete(published: History) -> None:
    """The damage tests cover every file of an index."""
    folder = published.folder / "index" / "gen-1"
    known = {path for pattern in FILES for path in folder.glob(pattern)}

    assert {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"} == known


def test_search_survives_the_removal_of_the_index(published: History) -> None:
    """An open engine finds the same events after the index folder is removed."""
    engine = published.engine()
    shutil.rmtree(published.folder / "index")

    assert found(engine, "brass kettle") == [1, 2]


def test_search_survives_the_removal_of_a_generation_while_opening(
    published: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generation that is removed after its verification is treated as damaged."""
    opened = TextIndex.open

    def open_late(folder: Path, *, read_only: bool) -> TextIndex:
        shutil.rmtree(folder)
        return opened(folder, read_only=read_only)

    with monkeypatch.context() as patch:
        patch.setattr(TextIndex, "open", open_late)
        engine = published.engine()

    assert found(engine, "brass kettle") == [1, 2]


def test_an_unchanged_archive_is_not_read_again(published: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh without changes reads neither the index nor the database."""
    view = Snapshot(published.store, published.generations, published.embedder)

    def refuse(_self: Generations) -> Generation | None:
        raise AssertionError

    monkeypatch.setattr(Generations, "current", refuse)
    monkeypatch.setattr(published.store.exchanges, "load", refuse)

    view.refresh()


def test_idf_counts_published_and_unpublished_entries(published: History) -> None:
    """The IDF of a word decreases with the number of its entries, in any inflection. Punctuation has an IDF of 0."""
    view = Snapshot(published.store, published.generations, published.embedder)
    before = view.idf("kettles")
    published.say("two", Said("copper kettle"), Said("kettle brush"))
    view.refresh()

    assert 0 < view.idf("kettles") < before
    assert view.idf("kettle") < view.idf("copper") == view.idf("spoon") < view.idf("zinc")
    assert view.idf("copperKettle") < view.idf("zinc")
    assert view.idf("?") == 0


def test_adjacent_terms_of_published_and_unpublished_items(published: History) -> None:
    """Adjacent terms are scored by the current text of an item. Without the pair, or without pairs, the score is 0."""
    view = Snapshot(published.store, published.generations, published.embedder)
    [old, *_] = found(published.engine(), "brass kettle", Mode.TEXT)
    [new] = published.say("two", Said("a kettle of brass, the brass kettles"))
    [apart] = published.say("three", Said("a kettle of brass"))
    view.refresh()
    items = np.array([old, new, apart])

    assert view.adjacent_terms({("brass", "kettl"): 1.0}, items).tolist() == [1.0, 1.0, 0.0]
    assert view.adjacent_terms({}, items).tolist() == [0.0, 0.0, 0.0]


def test_items_without_text_are_not_waiting(published: History) -> None:
    """Only items that have text but no vectors yet count as waiting to be embedded."""
    view = Snapshot(published.store, published.generations, published.embedder)
    [silent] = published.say("two", Said("", "a kettle"))
    published.embed()
    [fresh] = published.say("three", Said("one more kettle"))
    view.refresh()
    matches = view.text("kettle", NO_FILTERS, 10)
    vector_matches = view.nearest(published.embedder.embed(["kettle"])[0], NO_FILTERS, 10)

    assert {silent, fresh} < {*matches.event.tolist()}
    assert silent not in vector_matches.event
    assert view.waiting(matches, vector_matches).tolist() == [fresh]
    assert view.waiting(matches, VectorMatches.none()).tolist() == [fresh]
    assert view.waiting(TextMatches.none(), vector_matches).tolist() == []
