"""The consistency check compares stored contents, reports faults, and repairs them where possible."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import archived_names
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import ARCHIVER, Store
from palaver.archiver.store.salvage import salvage
from palaver.core.errors import LeaseHeld, StoreMissing
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import consistency as module
from palaver.observe.upkeep.archive_status import OUTDATED
from palaver.observe.upkeep.consistency import check_consistency
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ... import demo
from ...old_version import outdate

QUERIES = ("checkout", "tests fail", "sqlite", "kettle")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the archived demo with one memory."""
    root = tmp_path_factory.mktemp("fsck")
    home = demo.archived(root)
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("The kettle is brass.", tags=("kettle",)), 1)
    ingest_again(home, root / "projects")
    yield root
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    """Return a copy of the home. All tests share the agents' files, so they only read them."""
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


def ingest_again(home: Home, projects: Path) -> None:
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([projects]))


def answers(home: Home) -> set[tuple[str, str]]:
    """Return search results, including memories."""
    with ArchiveSearch(home) as layers:
        return {(query, hit.title) for query in QUERIES for hit in layers.find(Query((query,))).hits}


def execute(home: Home, *statements: str) -> None:
    """Run SQL statements and remove their rows from the change log."""
    connection = apsw.Connection(str(home.database))
    connection.execute("PRAGMA foreign_keys=ON")
    [(last,)] = connection.execute("SELECT max(seq) FROM change").fetchall()
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.execute("DELETE FROM change WHERE seq > ?", (last,))
    connection.close()


def uncompressed_copy(home: Home) -> Path:
    """Decompress a raw copy and return its path."""
    copy = Copy(home.archive, min(archived_names(home.archive)))
    copy.decompress()
    return copy.path


def test_an_intact_archive_has_no_problem(home: Home) -> None:
    """An intact archive has no problem, and every kind of data is checked."""
    found = check_consistency(home)

    assert found.problems == []
    assert found.ok
    assert all(found.checked[name] > 0 for name in ("sources", "copies", "entries", "vectors"))


def test_an_index_of_another_version_is_no_problem(home: Home) -> None:
    """After an upgrade, a note says that the next ingest run rebuilds the index. A repair rebuilds it at once."""
    before = answers(home)
    outdate(home.index)
    found = check_consistency(home)
    shown = Renderer().render("consistency", result=found)

    assert found.ok
    assert found.problems == []
    assert (found.checked["entries"], found.checked["copies"] > 0) == (0, True)
    assert f"Note: the index is {OUTDATED}." in shown
    assert "No problems found." in shown

    [problem] = check_consistency(home, repair=True).problems
    assert (problem.part, problem.repaired) == ("index", True)
    found = check_consistency(home)
    assert found.notes == {}
    assert found.checked["entries"] > 0
    assert answers(home) == before


ROWS = {
    "a sum of lines": "UPDATE source SET lines = lines + 1 WHERE id = 1",
    "an unreadable exchange": "UPDATE exchange SET turns = CAST('[[' AS BLOB) WHERE item = 1",
    "an unreadable account": "UPDATE source SET coverage = '{' WHERE id = 1",
    "an exchange on lines that are not there": "UPDATE exchange SET end_line = 99999 WHERE item = 1",
    "a record on a line that is not there": "UPDATE record SET line = 99999 WHERE source = 1",
    "evidence on lines that are not there": "UPDATE observation SET evidence = '[[99999, 99999, \"x\"]]'",
    "an unreadable observation": "UPDATE observation SET facts = '['",
    "a vector of another size": "UPDATE vector SET data = x'0000' WHERE item = 1 AND part = 0",
    "a vector that is gone": "DELETE FROM vector WHERE item = 1",
    "an empty item": "INSERT INTO item (kind) VALUES ('exchange')",
    "a tag of no memory's": "INSERT INTO memory_tag SELECT 'copper', item FROM memory",
    "a memory's tag that is gone": "DELETE FROM memory_tag",
    "text that the index does not know": "UPDATE item SET at = at + 1 WHERE kind = 'exchange'",
    "an item that the index does not know of": "DELETE FROM item WHERE kind = 'observation'",
    "numbers that the index does not know": "UPDATE vector SET data = (SELECT data FROM vector WHERE item = 2) "
    "WHERE item = 1 AND part = 0",
    "a token that is cut short": "UPDATE token SET bits = x'00' WHERE item = 1 AND part = 0",
    "tokens that the index does not know": "UPDATE token SET bits = zeroblob(length(bits)) WHERE item = 1",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS)
def test_wrong_rows_are_repaired(home: Home, pristine: Path, statement: str) -> None:
    """A wrong row is found and repaired. After an ingest run everything is consistent again."""
    before = answers(home)
    execute(home, statement)

    found = check_consistency(home)
    assert not found.ok
    assert all(problem.remedy.startswith(module.REPAIR) for problem in found.problems)
    assert check_consistency(home).problems == found.problems
    repaired = check_consistency(home, repair=True)
    assert repaired.problems
    assert repaired.ok
    ingest_again(home, pristine / "projects")
    assert check_consistency(home).problems == []
    assert answers(home) == before or "DELETE FROM item" in statement


def test_a_dangling_reference_is_reported(home: Home) -> None:
    """A reference to a row that does not exist is reported, not repaired."""
    execute(home, "PRAGMA foreign_keys=OFF", "DELETE FROM exchange WHERE item = 1")

    found = check_consistency(home, repair=True)

    assert not found.ok
    assert "refer to rows that do not exist" in found.problems[0].problem


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def without_last_bytes(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


DAMAGES = [truncate, flip, without_last_bytes, Path.unlink]


@pytest.mark.parametrize("compressed", [False, True], ids=["uncompressed", "compressed"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
def test_damaged_copies_are_copied_again(home: Home, damage: Callable[[Path], None], compressed: bool) -> None:
    """A repair replaces a damaged copy with a new copy of the agent's file, and keeps the damaged one under another
    name.

    A compressed copy that lost only its seek table is restored from its own content.
    """
    path = uncompressed_copy(home)
    content = path.read_bytes()
    copy = Copy(home.archive, path.relative_to(home.archive).as_posix())
    if compressed:
        copy.compress()
    damage(copy.compressed_path if compressed else copy.path)

    assert [problem.part for problem in check_consistency(home).problems] == ["copies"]
    found = check_consistency(home, repair=True)
    assert [problem.repaired for problem in found.problems] == [True]
    kept = damage is not Path.unlink and not (compressed and damage is without_last_bytes)
    assert [bool(problem.remedy) for problem in found.problems] == [kept]
    assert path.read_bytes() == content
    with Store.open_read_only(home.database) as store:
        assert store.sources.damaged() == []
    assert len(list(home.archive.rglob("*.damaged"))) == kept
    assert check_consistency(home).problems == []


@pytest.mark.parametrize("damage", DAMAGES[:2], ids=lambda damage: str(damage.__name__))
def test_the_last_copy_is_never_changed(home: Home, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """If the agent's file is gone, a repair leaves the damaged copy unchanged and recommends a backup."""
    execute(home, f"UPDATE source SET path = CAST('{tmp_path}/gone/' || id AS BLOB)")
    path = uncompressed_copy(home)
    copy = Copy(home.archive, path.relative_to(home.archive).as_posix())
    copy.compress()
    damage(copy.compressed_path)
    left = copy.compressed_path.read_bytes()

    found = check_consistency(home, repair=True)

    [problem] = found.problems
    assert not found.ok
    assert str(path) in problem.problem
    assert "backup" in problem.remedy
    assert copy.compressed_path.read_bytes() == left


def test_copies_without_a_row_are_reported(home: Home) -> None:
    """A repair reports a copy that has no database row and leaves it unchanged, since it may be the last copy."""
    stray = uncompressed_copy(home).with_name("stray.jsonl")
    stray.write_text("{}\n")

    [problem] = check_consistency(home, repair=True).problems

    assert "rebuild --from-archive" in problem.remedy
    assert stray.exists()


def test_a_lost_database_is_reported(home: Home) -> None:
    """A lost database is restored from backups or else from raw copies. Without both, the check raises an error."""
    for path in home.root.glob("palaver.db*"):
        path.unlink()

    [problem] = check_consistency(home).problems
    assert "fsck --repair" in problem.remedy
    shutil.rmtree(home.backups)
    [problem] = check_consistency(home).problems
    assert "rebuild --from-archive" in problem.remedy
    assert [each.problem for each in check_consistency(home, repair=True).problems] == [problem.problem]
    shutil.rmtree(home.archive)
    with pytest.raises(StoreMissing):
        check_consistency(home)


@pytest.mark.parametrize("offset", [0, 5_000])
def test_only_a_repair_salvages_a_damaged_database(home: Home, offset: int) -> None:
    """A check changes no byte of a damaged database. A repair replaces it and keeps the damaged file."""
    with home.database.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xde\xad\xbe\xef" * 5_000)
    before = home.database.read_bytes()

    assert [problem.remedy for problem in check_consistency(home).problems] == [module.RECOVER_DATABASE]
    assert home.database.read_bytes() == before
    check_consistency(home, repair=True)
    [kept] = home.backups.glob("damaged-*.db")
    assert kept.read_bytes() == before
    assert [each for each in check_consistency(home).problems if each.part == "database"] == []


def test_exchanges_whose_item_is_lost_are_read_again(pristine: Path, home: Home) -> None:
    """If the items of exchanges are lost, salvage deletes the exchanges, and the next run reads them again."""
    connection = apsw.Connection(str(home.database))
    connection.execute("DELETE FROM item WHERE kind = 'exchange'").fetchall()
    connection.close()
    shutil.rmtree(home.backups)
    with Store.open(home.database) as store:
        count = store.exchanges.count()

    salvage(home)
    ingest_again(home, pristine / "projects")
    check_consistency(home, repair=True)

    with Store.open(home.database) as store:
        assert store.exchanges.count() == count
    assert check_consistency(home).problems == []


def test_a_running_ingest_stops_the_check(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process archives, the check raises an error instead of comparing data that changes."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with Store.open(home.database) as store, store.leases.hold(ARCHIVER), pytest.raises(LeaseHeld):
        check_consistency(home)
