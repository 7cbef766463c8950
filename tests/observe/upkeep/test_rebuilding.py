"""The index is rebuilt from the database, and the database from the raw copies."""

# pyright: reportPrivateUsage=false

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import archived_names
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.reading.parsing import Exclusion
from palaver.archiver.store import Store
from palaver.core.errors import StoreCorrupt, StoreMissing, UnknownIds
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Mode, Query
from palaver.observe.upkeep import consistency
from palaver.observe.upkeep import consistency as checking
from palaver.observe.upkeep.consistency import check_consistency, rebuild_from_archive, rebuild_index
from palaver.search.archive_search import ArchiveSearch
from palaver.search.model.embedder import PackagedEmbedder

from ... import demo
from ...archiver.history import FORK, ORIGINAL, History, talk
from ...search.fake_embedder import FakeEmbedder

QUERIES = ("tide", "seed", "test", "error", "plan")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of the archived demo."""
    root = tmp_path_factory.mktemp("rebuild")
    demo.archived(root)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the embedding model with a fake."""
    for module in (consistency, checking):
        monkeypatch.setattr(module, "load", FakeEmbedder().load)


def answers(home: Home, mode: Mode = Mode.BOTH) -> list[tuple[str, str, float]]:
    """Return the title, day and score of each hit."""
    with ArchiveSearch(home) as layers:
        found = [layers.find(Query((word,), mode)) for word in QUERIES]
    return [(hit.title, str(hit.at), hit.score) for each in found for hit in each.hits]


def delete_database(home: Home) -> None:
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def test_a_rebuilt_index_gives_the_same_answers(home: Home) -> None:
    """A rebuilt index returns the same results, even if the old index was deleted."""
    before = answers(home)
    stages: list[str] = []

    made = rebuild_index(home, report=lambda stage, _done, _total: stages.append(stage))

    assert (made.entries, made.vectors) == tuple(
        check_consistency(home).checked[name] for name in ("entries", "vectors")
    )
    assert set(stages) == {"Rebuilding"}
    assert answers(home) == before
    shutil.rmtree(home.index)
    rebuild_index(home)
    assert answers(home) == before


def test_no_archive(tmp_path: Path) -> None:
    """Without an archive, nothing is rebuilt or created."""
    home = Home(tmp_path / "nothing")

    with pytest.raises(StoreMissing):
        rebuild_index(home)
    with pytest.raises(StoreMissing):
        rebuild_from_archive(home, [])
    assert not home.root.exists()


def test_parsing_again_changes_nothing(home: Home) -> None:
    """Parsing unchanged copies again keeps their keys, observations and vectors."""
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
def test_a_lost_database_is_restored(home: Home, pristine: Path, remain: bool) -> None:
    """Copies in both storage formats restore conversations and the observations extracted by rules."""
    before = answers(home, Mode.TEXT)
    Copy(home.archive, min(archived_names(home.archive))).decompress()
    delete_database(home)
    transcripts = in_paths([pristine / "projects"]) if remain else []

    made = rebuild_from_archive(home, transcripts)

    assert made.recovered == (0 if remain else len(archived_names(home.archive)))
    assert made.problems == []
    assert check_consistency(home).problems == []
    assert sorted(answers(home, Mode.TEXT)) == sorted(before)
    again = rebuild_from_archive(home, transcripts)
    assert (again.reread, again.recovered) == (len(archived_names(home.archive)), 0)
    assert sorted(answers(home, Mode.TEXT)) == sorted(before)


@pytest.mark.usefixtures("fake_model")
@pytest.mark.parametrize("without_database", [True, False])
def test_files_without_a_copy_are_not_ingested(home: Home, tmp_path: Path, without_database: bool) -> None:
    """A rebuild ignores an agent's file without a raw copy, because the file may belong to another home."""
    before = sorted(archived_names(home.archive))
    with History(tmp_path, "elsewhere") as other:
        other.write(talk("secret", session="another"), "another")
    if without_database:
        delete_database(home)

    rebuild_from_archive(home, in_paths([other.folder]))

    assert sorted(archived_names(home.archive)) == before
    assert check_consistency(home).problems == []


@pytest.mark.usefixtures("fake_model")
def test_ids_are_never_reused(home: Home) -> None:
    """A rebuilt database has new IDs, so that an old ID is reported as deleted."""
    with Store.open(home.database) as store:
        old = store.items.all_keys()
    delete_database(home)
    rebuild_from_archive(home, ())

    with Store.open(home.database) as store:
        assert min(store.items.all_keys()) > max(old)
        assert store.items.issued(old) == set(old)
    with ArchiveSearch(home) as layers, pytest.raises(UnknownIds) as refused:
        layers.details([f"obs-{max(old)}"])
    assert refused.value.gone == (f"obs-{max(old)}",)


@pytest.mark.usefixtures("fake_model")
def test_ids_are_reserved_in_blocks(home: Home) -> None:
    """IDs are reserved in blocks to save writes. If the file of reserved IDs is damaged, IDs start at 1."""
    reserved = home.numbers.read_bytes()
    with Store.open(home.database) as store:
        last = max(store.items.all_keys())
        assert last < int(reserved.split()[1]) <= last + 1_000
        with store.transaction():
            store.stages.note("publish")
    assert home.numbers.read_bytes() == reserved

    home.numbers.write_bytes(b"many\n")
    delete_database(home)
    rebuild_from_archive(home, ())
    with Store.open(home.database) as store:
        assert min(store.items.all_keys()) == 1
    assert int(home.numbers.read_bytes().split()[1]) > 1_000


def test_an_unknown_file_is_reported(home: Home) -> None:
    """A file from an unknown agent is reported and ignored. All other files are read."""
    delete_database(home)
    unknown = home.archive / "somebody" / "else.jsonl"
    unknown.parent.mkdir()
    unknown.write_text("{}\n")

    made = rebuild_from_archive(home, [])

    [problem] = made.problems
    assert str(unknown) in problem.problem
    assert unknown.read_text() == "{}\n"
    assert made.recovered == len(archived_names(home.archive)) - 1


def test_a_damaged_database_is_not_replaced(home: Home) -> None:
    """A damaged database is reported with a remedy, and not changed."""
    with home.database.open("r+b") as file:
        file.seek(5_000)
        file.write(b"\xde\xad\xbe\xef" * 5_000)
    before = home.database.read_bytes()

    with pytest.raises(StoreCorrupt) as raised:
        rebuild_from_archive(home, [])

    assert "fsck --repair" in raised.value.hint
    assert home.database.read_bytes() == before


@pytest.mark.usefixtures("fake_model")
def test_excluded_folders_stay_excluded(tmp_path: Path) -> None:
    """Rebuilds and repairs do not ingest excluded folders."""
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


@pytest.mark.usefixtures("fake_model")
def test_a_missing_copy_is_reported_once(tmp_path: Path) -> None:
    """A missing copy is reported once, and all other copies are read."""
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


@pytest.mark.usefixtures("fake_model")
def test_recovered_sessions_precede_their_forks(tmp_path: Path) -> None:
    """After a rebuild, shared lines belong to the original session, even if only the fork's file still exists."""
    named = {"forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}}
    with History(tmp_path) as history:
        original = history.write(talk("one", "two"), at=1)
        fork = [*({**line, **named} for line in talk("one", session=FORK)), *talk("apart", session=FORK)]
        history.write(fork, FORK, at=2)
        history.ingest()
        before = history.prompts(), history.prompts(FORK)
        original.unlink()
        history.store.close()
        delete_database(history.home)

        made = rebuild_from_archive(history.home, in_paths([history.folder]))

        assert (made.recovered, made.problems) == (1, [])
        history.store = Store.open(history.home.database)
        assert (history.prompts(), history.prompts(FORK)) == before == (["one?", "two?"], ["apart?"])
        with ArchiveSearch(history.home) as layers:
            [hit] = (each for each in layers.find(Query(("one",), Mode.TEXT)).hits if each.title == "one?")
        assert (hit.session_id, hit.also_in) == (ORIGINAL, (FORK,))
