"""Is what was written found at once, whatever the published index is like?"""

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
from palaver.search.index.matches import Numbers, TextMatches, VectorMatches
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.text_index import TextIndex
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
    """Two exchanges, embedded and published."""
    history.say("one", Said("brass kettle"), Said("silver spoon"))
    history.embed()
    history.publish()
    return history


@pytest.mark.parametrize(("listed", "of_all"), [(3, 1_000), (1, 2)])
def test_what_few_satisfy_is_asked_for_once(
    published: History, monkeypatch: pytest.MonkeyPatch, listed: int, of_all: int
) -> None:
    """Where few entries satisfy the filters, or a small share of many, counting them tells which they are."""
    published.say("two", Said("copper pan"), Said("copper kettle"))
    published.embed()
    published.publish()
    engine, filters = published.engine(), Filters(projects=("two",))
    expected = found(published.engine(), "kettle", Mode.BOTH, filters)
    monkeypatch.setattr(snapshot, "_LISTED", listed)
    monkeypatch.setattr(snapshot, "_OF_ALL", of_all)
    listing, indexes = TextIndex.keys, list[int]()

    def keys(self: TextIndex, filters: Filters) -> Numbers:
        indexes.append(len(self))
        return listing(self, filters)

    monkeypatch.setattr(TextIndex, "keys", keys)

    assert engine.snapshot.share(filters) == 0.5
    nears = engine.snapshot.nearest(published.embedder.embed(["kettle"])[0, :], filters, 10)
    assert sorted(nears.item.tolist()) == sorted(expected)
    assert indexes == [0]  # of what is not published yet


def test_what_another_connection_writes_is_found(published: History) -> None:
    """A reader that is open finds what another connection stored since, by words and once embedded by meaning."""
    engine = published.engine()
    with Store.open(published.folder / "palaver.db") as other:
        writer = History.__new__(History)
        writer.__dict__.update(published.__dict__, store=other)
        [key] = writer.say("two", Said("copper pan"))

        assert found(engine, "copper", Mode.TEXT) == [key]
        assert engine.lag == 1
        writer.embed()
        assert found(engine, "copper pan", Mode.VECTOR)[0] == key


def test_what_another_process_writes_is_found(published: History) -> None:
    """A reader that is open finds what another process stored since."""
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


def test_changes_replace_what_was_published(published: History) -> None:
    """What was changed is found by its new words only, and by its old meaning until it is embedded anew."""
    engine = published.engine()
    first, _ = published.say("one", Said("iron pot"), Said("silver spoon"))

    assert found(engine, "kettle", Mode.TEXT) == []
    assert found(engine, "iron", Mode.TEXT)[0] == first
    assert similarity(engine, "brass kettle", first) == pytest.approx(1, abs=1e-3)
    published.embed()
    assert similarity(engine, "brass kettle", first) < 0.9
    assert similarity(engine, "iron pot", first) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("roles", [(), (Role.HUMAN,)])
def test_known_filters_answer_as_the_index_does(history: History, roles: tuple[Role, ...]) -> None:
    """Words looked for among some items find the same, whether what satisfies the filters is known already or not."""
    history.say("one", Said("brass kettle", at=5), Said("a spoon", "The answer is a kettle.", at=6), Said("kettle"))
    history.embed()
    history.publish()
    history.say("later", Said("kettle again", "An answer without it.", at=7))
    filters, keys = Filters(after=1, roles=roles), sorted(history.store.items.all_keys())
    asked, known = history.engine().snapshot, history.engine().snapshot
    [vector] = history.embedder.embed(["kettle"])
    known.nearest(vector, filters, 50)

    [first, second] = [view.text("kettle answer", filters, 50, among=keys) for view in (asked, known)]

    assert first.key.tolist() == second.key.tolist()
    assert len(set(first.key.tolist())) == (2 if roles else 3)
    assert first.fraction.tolist() == second.fraction.tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="only there it can be seen what a process has mapped")
def test_a_snapshot_that_is_let_go_maps_nothing(history: History) -> None:
    """Its files are let go with it, not when garbage happens to be collected: what is erased must leave the disk."""
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
        deadline = time.monotonic() + 30  # Tantivy looks again once by itself, and holds them while it does
        while mapped() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not mapped()
    finally:
        gc.enable()


def test_what_was_deleted_is_gone(published: History) -> None:
    """What was deleted is found no more, neither by words nor by meaning nor by filter."""
    engine = published.engine()
    [first] = published.say("one", Said("brass kettle"))

    assert found(engine, "silver spoon") == [first]
    assert found(engine, "spoon", Mode.TEXT) == []
    assert found(engine, "spoon", Mode.TEXT, Filters(projects=("one",))) == []
    assert engine.allowed(Filters(projects=("one",)), [first, first + 1]) == {first}


def test_a_new_generation_is_taken_up(published: History) -> None:
    """A reader that is open goes on with a newly published generation, finds the same, and is no longer behind."""
    engine = published.engine()
    [key] = published.say("two", Said("copper pan"))
    before = engine.find("copper", Mode.TEXT, NO_FILTERS).events
    assert engine.lag == 1

    published.publish()

    assert keys(engine.find("copper", Mode.TEXT, NO_FILTERS).events) == keys(before) == [key]
    assert engine.lag == 0


def test_publishing_takes_nothing_from_readers(published: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that has a generation open answers from it although it was removed meanwhile."""
    monkeypatch.setattr(generation, "_GRACE", 0)
    view = Snapshot(published.store, published.generations, published.embedder)
    for number in range(3):
        published.say(f"s{number}", Said("copper pan"))
        published.publish()
    [vector] = published.embedder.embed(["brass kettle"])

    assert not (published.folder / "index" / "gen-1").exists()
    assert set(view.text("kettle", NO_FILTERS, 5).key) == {1, 2}
    assert view.nearest(vector, NO_FILTERS, 1)[0].similarity == pytest.approx(1, abs=1e-3)


def test_the_tail_alone_answers_like_the_index(published: History) -> None:
    """Before anything is published the same is found, with the same scores."""
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
def test_damage_costs_no_answers(published: History, pattern: str, damage: Callable[[Path], None]) -> None:
    """With any index file truncated or missing, search answers from the store; the next publication repairs it."""
    [path] = (published.folder / "index" / "gen-1").glob(pattern)
    path.write_bytes(path.read_bytes())  # the file of this generation alone, should others share it
    damage(path)

    view = Snapshot(published.store, published.generations, published.embedder)
    assert view.lag == published.store.changes.last()
    assert found(published.engine(), "brass kettle") == [1, 2]
    assert published.publish() is not None
    view.refresh()
    assert (view.lag, found(published.engine(), "brass kettle")) == (0, [1, 2])


def test_every_file_is_checked(published: History) -> None:
    """The tests of damage know every file of an index."""
    folder = published.folder / "index" / "gen-1"
    known = {path for pattern in FILES for path in folder.glob(pattern)}

    assert {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"} == known


def test_a_removed_index_costs_no_answers(published: History) -> None:
    """A reader that is open survives the removal of the whole index."""
    engine = published.engine()
    shutil.rmtree(published.folder / "index")

    assert found(engine, "brass kettle") == [1, 2]


def test_a_generation_that_vanishes_while_it_is_opened(published: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that is removed after it was verified is a damage like any other."""
    opened = TextIndex.open

    def open_late(folder: Path) -> TextIndex:
        shutil.rmtree(folder)
        return opened(folder)

    with monkeypatch.context() as patch:
        patch.setattr(TextIndex, "open", open_late)
        engine = published.engine()

    assert found(engine, "brass kettle") == [1, 2]


def test_looking_again_costs_nothing(published: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing changes neither the index nor the store is read again."""
    view = Snapshot(published.store, published.generations, published.embedder)

    def refuse(_self: Generations) -> Generation | None:
        raise AssertionError

    monkeypatch.setattr(Generations, "current", refuse)
    monkeypatch.setattr(published.store.exchanges, "load", refuse)

    view.refresh()


def test_a_word_is_as_rare_as_the_entries_that_have_it_are_few(published: History) -> None:
    """Whether these are published or not, and whatever form it has; what is no word tells nothing."""
    view = Snapshot(published.store, published.generations, published.embedder)
    before = view.idf("kettles")
    published.say("two", Said("copper kettle"), Said("kettle brush"))
    view.refresh()

    assert 0 < view.idf("kettles") < before
    assert view.idf("kettle") < view.idf("copper") == view.idf("spoon") < view.idf("zinc")
    assert view.idf("copperKettle") < view.idf("zinc")
    assert view.idf("?") == 0


def test_what_stands_together_is_told_of_what_was_published_and_what_was_not(published: History) -> None:
    """Of each item by what it says now; an item without any pair has nothing, nor has a query of one word."""
    view = Snapshot(published.store, published.generations, published.embedder)
    [old, *_] = found(published.engine(), "brass kettle", Mode.TEXT)
    [new] = published.say("two", Said("a kettle of brass, the brass kettles"))
    [apart] = published.say("three", Said("a kettle of brass"))
    view.refresh()
    items = np.array([old, new, apart])

    assert view.adjacent_terms({("brass", "kettl"): 1.0}, items).tolist() == [1.0, 1.0, 0.0]
    assert view.adjacent_terms({}, items).tolist() == [0.0, 0.0, 0.0]


def test_what_has_nothing_to_embed_waits_for_nothing(published: History) -> None:
    """Only what no vectors were made of yet is waiting, be anything compared or not."""
    view = Snapshot(published.store, published.generations, published.embedder)
    [silent] = published.say("two", Said("", "a kettle"))
    published.embed()
    [fresh] = published.say("three", Said("one more kettle"))
    view.refresh()
    matches = view.text("kettle", NO_FILTERS, 10)
    nears = view.nearest(published.embedder.embed(["kettle"])[0], NO_FILTERS, 10)

    assert {silent, fresh} < {*matches.event.tolist()}
    assert silent not in nears.event
    assert view.waiting(matches, nears).tolist() == [fresh]
    assert view.waiting(matches, VectorMatches.none()).tolist() == [fresh]
    assert view.waiting(TextMatches.none(), nears).tolist() == []
