"""Can the index be made anew from the database, and the database from the copies?"""

# pyright: reportPrivateUsage=false

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.copy_verification import archived_names
from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.reading.exclusion import Exclusion
from palaver.archiver.store import Store
from palaver.core.errors import StoreCorrupt, StoreMissing, UnknownIds
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Mode, Query
from palaver.observe.upkeep import consistency as checking
from palaver.observe.upkeep import rebuilding
from palaver.observe.upkeep.consistency import check_consistency
from palaver.observe.upkeep.rebuilding import rebuild_from_archive, rebuild_index
from palaver.search.archive_search import ArchiveSearch
from palaver.search.model.embedder import PackagedEmbedder

from ... import demo
from ...archiver.history import FORK, ORIGINAL, History, talk
from ...search.fake_embedder import FakeEmbedder

WORDS = ("tide", "seed", "test", "error", "plan")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo, archived."""
    root = tmp_path_factory.mktemp("rebuild")
    demo.archived(root)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


@pytest.fixture
def lexical(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded."""

    for module in (rebuilding, checking):
        monkeypatch.setattr(module, "load", FakeEmbedder().load)


def answers(home: Home, mode: Mode = Mode.BOTH) -> list[tuple[str, str, float]]:
    """What is found: title, day and score."""
    with ArchiveSearch(home) as layers:
        found = [layers.search(Query((word,), mode)) for word in WORDS]
    return [(hit.title, str(hit.at), hit.score) for each in found for hit in each.hits]


def lost(home: Home) -> None:
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def test_an_index_is_made_anew(home: Home) -> None:
    """A new index answers as the one did that grew, and the one before stays until it is there."""
    before = answers(home)
    heard: list[str] = []

    made = rebuild_index(home, report=lambda stage, _done, _total: heard.append(stage))

    assert (made.entries, made.vectors) == tuple(
        check_consistency(home).checked[name] for name in ("entries", "vectors")
    )
    assert set(heard) == {"Rebuilding"}
    assert answers(home) == before
    shutil.rmtree(home.index)
    rebuild_index(home)
    assert answers(home) == before


def test_no_archive(tmp_path: Path) -> None:
    """Where nothing is archived nothing is rebuilt, and nothing is made."""
    home = Home(tmp_path / "nothing")

    with pytest.raises(StoreMissing):
        rebuild_index(home)
    with pytest.raises(StoreMissing):
        rebuild_from_archive(home, [])
    assert not home.root.exists()


def test_reading_again_changes_nothing(home: Home) -> None:
    """Copies that say what they said keep all their keys, what was learned from them and their vectors."""
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("The kettle is brass."), 1)
    rebuild_index(home)
    before = answers(home)

    made = rebuild_from_archive(home, [])

    assert (made.reread, made.recovered, made.problems) == (len(archived_names(home.archive)), 0, [])
    assert answers(home) == before
    with Store.open(home.database) as store:
        assert store.vectors.count_unembedded(PackagedEmbedder().name) == 1
        assert store.memories.load(store.items.all_keys())


@pytest.mark.parametrize("remain", [True, False], ids=["files remain", "copies alone"])
def test_a_lost_database_comes_back(home: Home, pristine: Path, remain: bool) -> None:
    """Without a database the copies give back what was said and what rules learn from it, sealed ones included."""
    before = answers(home, Mode.TEXT)
    Copy(home.archive, min(archived_names(home.archive))).decompress()
    lost(home)
    transcripts = in_paths([pristine / "projects"]) if remain else []

    made = rebuild_from_archive(home, transcripts)

    assert made.recovered == (0 if remain else len(archived_names(home.archive)))
    assert made.problems == []
    assert check_consistency(home).problems == []
    assert sorted(answers(home, Mode.TEXT)) == sorted(before)
    again = rebuild_from_archive(home, transcripts)
    assert (again.reread, again.recovered) == (len(archived_names(home.archive)), 0)
    assert sorted(answers(home, Mode.TEXT)) == sorted(before)


@pytest.mark.usefixtures("lexical")
@pytest.mark.parametrize("without_database", [True, False])
def test_what_has_no_copy_is_not_taken_up(home: Home, tmp_path: Path, without_database: bool) -> None:
    """Copies are read again, and nothing else: what an agent has besides may belong to another home."""
    before = sorted(archived_names(home.archive))
    with History(tmp_path, "elsewhere") as other:
        other.write(talk("secret", session="another"), "another")
    if without_database:
        lost(home)

    rebuild_from_archive(home, in_paths([other.folder]))

    assert sorted(archived_names(home.archive)) == before
    assert check_consistency(home).problems == []


@pytest.mark.usefixtures("lexical")
def test_no_id_ever_means_something_else(home: Home) -> None:
    """What is made anew from the copies has ids that nothing had, so who kept an old one hears that it is no more."""
    with Store.open(home.database) as store:
        old = store.items.all_keys()
    lost(home)
    rebuild_from_archive(home, ())

    with Store.open(home.database) as store:
        assert min(store.items.all_keys()) > max(old)
        assert store.items.issued(old) == set(old)
    with ArchiveSearch(home) as layers, pytest.raises(UnknownIds) as refused:
        layers.get_observations([f"obs-{max(old)}"])
    assert refused.value.gone == (f"obs-{max(old)}",)


@pytest.mark.usefixtures("lexical")
def test_ids_are_reserved_ahead_and_a_damaged_file_stops_nobody(home: Home) -> None:
    """Many ids cost one write; where the number cannot be read, or is none, ids begin as in a new archive."""
    reserved = home.numbers.read_bytes()
    with Store.open(home.database) as store:
        last = max(store.items.all_keys())
        assert last < int(reserved.split()[1]) <= last + 1_000
        with store.transaction():
            store.stages.note("publish")
    assert home.numbers.read_bytes() == reserved

    home.numbers.write_bytes(b"many\n")
    lost(home)
    rebuild_from_archive(home, ())
    with Store.open(home.database) as store:
        assert min(store.items.all_keys()) == 1
    assert int(home.numbers.read_bytes().split()[1]) > 1_000


def test_what_cannot_be_read_is_named(home: Home) -> None:
    """A file in the archive that no known agent wrote is named and left; all others are taken up."""
    lost(home)
    strange = home.archive / "somebody" / "else.jsonl"
    strange.parent.mkdir()
    strange.write_text("{}\n")

    made = rebuild_from_archive(home, [])

    [problem] = made.problems
    assert str(strange) in problem.problem
    assert strange.read_text() == "{}\n"
    assert made.recovered == len(archived_names(home.archive)) - 1


def test_a_damaged_database_is_not_replaced(home: Home) -> None:
    """A damaged database is told with the way back and left as it is: it may hold what nothing else holds."""
    with home.database.open("r+b") as file:
        file.seek(5_000)
        file.write(b"\xde\xad\xbe\xef" * 5_000)
    before = home.database.read_bytes()

    with pytest.raises(StoreCorrupt) as raised:
        rebuild_from_archive(home, [])

    assert "fsck --repair" in raised.value.hint
    assert home.database.read_bytes() == before


@pytest.mark.usefixtures("lexical")
def test_what_is_excluded_stays_so(tmp_path: Path) -> None:
    """Neither a rebuild nor a repair takes up what the settings exclude, in a file of its own or amid others."""
    with History(tmp_path) as history:
        hidden = talk("hidden", project="/home/demo/secret-client")
        history.write([*talk("one"), *hidden])
        history.write(talk("apart", session=FORK, project="/home/demo/secret-client"), FORK, project="secret-client")
        transcripts = list(in_paths([history.folder]))
        Ingest(history.store, history.raw, Exclusion(["secret-*"])).run(transcripts)
        copies = set(history.archive_files())

        rebuild_from_archive(history.home, transcripts, exclude=["secret-*"])

        assert set(history.archive_files()) == copies
        assert history.prompts() == ["one?"]
        with history.store.transaction():
            history.store._database.run("UPDATE source SET lines = lines + 1")
        assert check_consistency(history.home, exclude=["secret-*"], repair=True).problems
        assert history.prompts() == ["one?"]


@pytest.mark.usefixtures("lexical")
def test_a_copy_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """However often it is tried, and all else is read."""
    with History(tmp_path) as history:
        original = history.write(talk("one"), at=1)
        history.write(talk("two", session=FORK), FORK, at=2)
        history.ingest()
        original.unlink()
        copy = history.home.archive / history.source().archived
        copy.unlink()
        history.store.close()

        [problem] = rebuild_from_archive(history.home, in_paths([history.folder])).problems

        assert str(copy) in problem.problem
        history.store = Store.open(history.home.database)
        assert history.prompts(FORK) == ["two?"]


@pytest.mark.usefixtures("lexical")
def test_what_only_copies_tell_was_said_before_their_forks(tmp_path: Path) -> None:
    """Of a lost database comes back whose each line is, also where the agent has nothing but the fork any more."""
    named = {"forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}}
    with History(tmp_path) as history:
        original = history.write(talk("one", "two"), at=1)
        fork = [*({**line, **named} for line in talk("one", session=FORK)), *talk("apart", session=FORK)]
        history.write(fork, FORK, at=2)
        history.ingest()
        before = history.prompts(), history.prompts(FORK)
        original.unlink()
        history.store.close()
        lost(history.home)

        made = rebuild_from_archive(history.home, in_paths([history.folder]))

        assert (made.recovered, made.problems) == (1, [])
        history.store = Store.open(history.home.database)
        assert (history.prompts(), history.prompts(FORK)) == before == (["one?", "two?"], ["apart?"])
        with ArchiveSearch(history.home) as layers:
            [hit] = (each for each in layers.search(Query(("one",), Mode.TEXT)).hits if each.title == "one?")
        assert (hit.session_id, hit.also_in) == (ORIGINAL, (FORK,))
