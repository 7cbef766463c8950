"""Bit flips, zeroed pages and truncations of the database and the index are detected or harmless."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store, database
from palaver.archiver.store.backups import KEPT, Backups, extracted
from palaver.core.errors import StoreCorrupt
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep.consistency import check_consistency
from palaver.search.archive_search import ArchiveSearch
from palaver.search.index.generation import Generations

from .. import demo

MEMORIES = 60
PAGE = 4_096


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return an archive of the sample data with memories, one of them newer than the backup."""
    root = tmp_path_factory.mktemp("corruption")
    home = demo.archived(root)
    with Store.open(home.database) as store, store.transaction():
        for number in range(MEMORIES):
            store.memories.insert(Memory(f"Service {number} listens on port {8_000 + number}. " * 9), 1)
    Backups(home).remove()
    archive(home, root)
    with Store.open(home.database) as store:
        with store.transaction():
            store.memories.insert(Memory("Stored after the backup."), 2)
        store._database.run("PRAGMA wal_checkpoint(TRUNCATE)")  # pyright: ignore[reportPrivateUsage]
    yield root
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


def archive(home: Home, root: Path) -> None:
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([root / "projects"]))


def memories(home: Home) -> set[str]:
    with Store.open(home.database) as store:
        return {each.memory.content for each in store.memories.all()}


def pages(home: Home, table: str) -> list[int]:
    connection = apsw.Connection(str(home.database))
    found = [page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,))]
    connection.close()
    return found


def flip(path: Path, at: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def zero(path: Path, at: int, _bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(at // PAGE * PAGE)
        file.write(bytes(PAGE))


def cut(path: Path, at: int, _bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.truncate(max(1, at))


def search(home: Home) -> int:
    """Return the number of hits. Accept no error except a report of damage."""
    try:
        with ArchiveSearch(home) as layers:
            return len(layers.find(Query(("service port",))).hits)
    except StoreCorrupt:
        return -1


@pytest.mark.parametrize("seed", range(24))
def test_damage_of_the_database_is_detected_and_repaired(home: Home, seed: int) -> None:
    """`fsck` detects any damage, and its repair keeps every memory of the file or its backup."""
    draw = random.Random(seed)
    originals, size = memories(home), home.database.stat().st_size
    how: Callable[[Path, int, int], None] = draw.choice([flip, flip, zero, cut])
    how(home.database, draw.randrange(size), draw.randrange(8))

    search(home)
    assert not check_consistency(home).ok
    lost = {
        each.problem
        for each in check_consistency(home, repair=True).problems
        if not each.repaired and each.part == "memories"
    }
    assert len(originals - memories(home)) <= len(lost) <= 1
    assert check_consistency(home).ok
    assert search(home) > 0


@pytest.mark.parametrize("how", [flip, zero])
@pytest.mark.parametrize("table", ["memory", "item", "sqlite_schema"])
def test_memories_survive_damage_of_their_own_pages(home: Home, table: str, how: Callable[[Path, int], None]) -> None:
    """If a page with memories is damaged, they are restored from other pages, the backup or the damaged page."""
    contents = memories(home)
    for page in pages(home, table)[:3]:
        how(home.database, (page - 1) * PAGE + 1_000)
    check_consistency(home, repair=True)

    assert len(contents - memories(home)) <= 1
    if how is flip:
        assert memories(home) == contents


@pytest.mark.parametrize("place", [1, -1])
def test_a_zeroed_overflow_page_is_damage(home: Home, place: int) -> None:
    """A zeroed overflow page has a valid checksum, so the SHA-256 of the memory reveals the damage."""
    with Store.open(home.database) as store:
        with store.transaction():
            key = store.memories.insert(Memory("A long memory. " * 2_000, tags=("kiln",)), 3)
        store._database.run("PRAGMA wal_checkpoint(TRUNCATE)")  # pyright: ignore[reportPrivateUsage]
    contents, text = memories(home), home.database.read_bytes()
    pages_with_text = [
        start for start in range(0, len(text), PAGE) if text[start : start + PAGE].count(b"A long memory.") > 200
    ]
    zero(home.database, pages_with_text[place])

    assert not check_consistency(home).ok
    named = [each.problem for each in check_consistency(home, repair=True).problems if each.part == "memories"]
    assert f"mem_{key}" in named[0]
    assert contents - memories(home) == {"A long memory. " * 2_000}
    assert check_consistency(home).ok


def test_without_a_backup_all_other_pages_are_saved(home: Home) -> None:
    """Without a backup, one zeroed page loses only its own memories, and the repair lists them."""
    Backups(home).remove()
    contents = memories(home)
    leaf = pages(home, "memory")[-1]
    zero(home.database, (leaf - 1) * PAGE)
    [named] = [each.problem for each in check_consistency(home, repair=True).problems if each.part == "memories"]

    gone = contents - memories(home)
    assert 0 < len(gone) == named.count("mem_") < MEMORIES / 2


def last_memory(home: Home, text: bytes) -> int:
    """Return the offset of a text on the page with the newest memory."""
    start = (pages(home, "memory")[-1] - 1) * PAGE
    return start + home.database.read_bytes()[start : start + PAGE].index(text)


@pytest.mark.parametrize("column", [b"assistant", b"[]", b"{}", b"active", b"global"])
def test_a_memory_with_one_damaged_column_can_be_read(home: Home, column: bytes) -> None:
    """A memory on a damaged page is read, and a column that cannot be decoded gets its default value."""
    contents = memories(home)
    flip(home.database, last_memory(home, column), 2)
    check_consistency(home, repair=True)

    assert memories(home) == contents
    assert check_consistency(home).ok


@pytest.mark.parametrize("left", [1, 2_000, PAGE - 1])
def test_an_incomplete_last_page_is_damage(home: Home, left: int) -> None:
    """A file with an incomplete last page is opened only by the repair, since a write would hide the damage."""
    contents = memories(home)
    cut(home.database, home.database.stat().st_size - PAGE + left)

    for opened in (Store.open, Store.open_read_only):
        with pytest.raises(StoreCorrupt, match="last page is incomplete"):
            opened(home.database)
    assert "last page is incomplete" in check_consistency(home).problems[0].problem
    check_consistency(home, repair=True)
    assert check_consistency(home).ok
    assert memories(home) == contents


def logged(home: Home, tmp_path: Path) -> tuple[Home, set[str]]:
    """Return a home with three memories in its write-ahead log, and the content of all its memories."""
    copied = Home(tmp_path / "logged")
    with Store.open(home.database) as store:
        for number in range(3):
            with store.transaction():
                store.memories.insert(Memory(f"Memory {number} is in the log. " * (1 + 200 * (number == 2))), 3)
        shutil.copytree(home.root, copied.root)
    return copied, memories(home)


@pytest.mark.parametrize("place", [8, 40, 5_000, 30_000])
def test_memories_behind_damage_in_the_log_are_stored_again(home: Home, tmp_path: Path, place: int) -> None:
    """Memories after the damage in a write-ahead log are reported and restored once by the repair."""
    damaged, contents = logged(home, tmp_path)
    log = damaged.database.with_name("palaver.db-wal")
    flip(log, place)

    with Pipeline(damaged) as pipeline:
        [problem] = pipeline.run(()).ingested.problems
    assert "missing from the database" in problem.reason
    assert "fsck --repair" in problem.hint
    found = check_consistency(damaged, repair=True).problems
    assert any("write-ahead log" in each.problem for each in found)
    assert memories(damaged) == contents
    assert check_consistency(damaged).ok
    check_consistency(damaged, repair=True)
    with Store.open(damaged.database) as store:
        assert len(store.memories.all()) == len(contents)


def test_one_damaged_row_fails_no_search(home: Home) -> None:
    """A search skips memories on a damaged page and finds the others."""
    before = search(home)
    flip(home.database, (pages(home, "memory")[-1] - 1) * PAGE + 2_000)

    assert search(home) > 0
    assert before > 0


@pytest.mark.parametrize("seed", range(8))
def test_damage_of_the_index_is_harmless(home: Home, seed: int) -> None:
    """`fsck` rebuilds a damaged index, and until then searches use the database."""
    draw = random.Random(seed)
    generation = Generations(home.index).current()
    assert generation is not None
    files = sorted(name for name, (size, _) in generation.manifest.files.items() if size)
    path = generation.folder / draw.choice(files)
    how: Callable[[Path, int, int], None] = draw.choice([flip, cut])
    how(path, draw.randrange(path.stat().st_size), draw.randrange(8))

    assert search(home) > 0
    assert not check_consistency(home).ok
    assert check_consistency(home, repair=True).ok
    assert check_consistency(home).ok


def test_a_damaged_database_is_not_backed_up(home: Home) -> None:
    """A damaged database does not replace the previous backup, and the failed attempt is recorded."""
    [before] = Backups(home).all()
    older = before.rename(before.with_name("palaver-2020-01-01.db"))
    flip(home.database, (pages(home, "memory")[-1] - 1) * PAGE + 2_000)
    with Store.open(home.database) as store:
        store.back_up()
        problems = {stage.name: stage.problem for stage in store.stages.all()}

    assert Backups(home).all() == [older]
    assert "checksum" in problems["backup"]


def test_three_backups_are_kept(home: Home, tmp_path: Path) -> None:
    """At most three backups are kept and at most one is made per day. The oldest is deleted first."""
    backups = Backups(home)
    [today] = backups.all()
    for day in range(1, 12):
        shutil.copy(today, today.with_name(f"palaver-2020-01-{day:02}.db"))
    today.unlink()
    with Store.open(home.database) as store:
        store.back_up()

    assert len(backups.all()) == KEPT
    assert backups.all()[0] == today
    assert not backups.is_due
    assert database.Database.problems(extracted(today, tmp_path)) == []


def test_a_deleted_log_is_reported(home: Home) -> None:
    """`fsck` reports writes lost with a deleted write-ahead log until they are accepted."""
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("Written to the log only."), 3)
        kept = (home.database.read_bytes(), home.changes)
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("Acknowledged, then lost with the log."), 4)
    home.database.write_bytes(kept[0])

    assert any("missing from the database" in each.problem for each in check_consistency(home).problems)
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("Another one, stored later."), 5)
    assert any("missing from the database" in each.problem for each in check_consistency(home).problems)
    check_consistency(home, repair=True)
    assert not any("missing from the database" in each.problem for each in check_consistency(home).problems)
