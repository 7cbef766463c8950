"""Does fsck find every fault by content, and mend what can be mended?"""

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
from palaver.core.errors import LeaseHeld, StoreMissing
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import fsck as module
from palaver.observe.upkeep.fsck import fsck
from palaver.observe.upkeep.status import OUTDATED
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ... import demo
from ...upgrade import outdate

QUERIES = ("checkout", "tests fail", "decided to use", "kettle")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo, archived, with one memory in it."""
    root = tmp_path_factory.mktemp("fsck")
    home = demo.archived(root)
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("The kettle is brass.", tags=("kettle",)), 1)
    again(home, root / "projects")
    yield root
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    """A copy of it; the agents' files lie where they lay, so they are only read."""
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


def again(home: Home, projects: Path) -> None:
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([projects]))


def answers(home: Home) -> set[tuple[str, str]]:
    """What is found, memories included."""
    with ArchiveSearch(home) as layers:
        return {(query, hit.title) for query in QUERIES for hit in layers.search(Query((query,))).hits}


def execute(home: Home, *statements: str) -> None:
    """Run statements without a trace in the change log."""
    connection = apsw.Connection(str(home.database))
    connection.execute("PRAGMA foreign_keys=ON")
    [(last,)] = connection.execute("SELECT max(seq) FROM change").fetchall()
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.execute("DELETE FROM change WHERE seq > ?", (last,))
    connection.close()


def a_copy(home: Home) -> Path:
    """A copy in its plain form."""
    copy = Copy(home.archive, min(archived_names(home.archive)))
    copy.decompress()
    return copy.path


def test_what_is_whole_is_left_alone(home: Home) -> None:
    """Of an archive that is whole everything is compared, and nothing is written."""
    found = fsck(home)

    assert found.findings == []
    assert found.sound
    assert all(found.compared[name] > 0 for name in ("sources", "copies", "entries", "vectors"))


def test_an_index_of_another_version_is_no_fault(home: Home) -> None:
    """After an upgrade it is said that the index is made anew by the next pass, and all else is compared; a repair does
    so at once.
    """
    before = answers(home)
    outdate(home.index)
    found = fsck(home)
    shown = Renderer().render("checkup", checkup=found)

    assert found.sound
    assert found.findings == []
    assert (found.compared["entries"], found.compared["copies"] > 0) == (0, True)
    assert f"The index is {OUTDATED}." in shown
    assert "Everything is whole" in shown

    [finding] = fsck(home, repair=True).findings
    assert (finding.part, finding.repaired) == ("index", True)
    found = fsck(home)
    assert found.notes == {}
    assert found.compared["entries"] > 0
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
    "a token that is cut short": "UPDATE token SET signs = x'00' WHERE item = 1 AND part = 0",
    "tokens that the index does not know": "UPDATE token SET signs = zeroblob(length(signs)) WHERE item = 1",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS)
def test_rows_are_mended(home: Home, pristine: Path, statement: str) -> None:
    """Whatever is wrong in a row is found; what is derived is mended, and after a pass everything agrees again."""
    before = answers(home)
    execute(home, statement)

    found = fsck(home)
    assert not found.sound
    assert all(finding.remedy.startswith(module.REPAIR) for finding in found.findings)
    assert fsck(home).findings == found.findings
    repaired = fsck(home, repair=True)
    assert repaired.findings
    assert repaired.sound
    again(home, pristine / "projects")
    assert fsck(home).findings == []
    assert answers(home) == before or "DELETE FROM item" in statement


def test_what_refers_to_nothing_is_told(home: Home) -> None:
    """Rows that SQLite should never have let be are told; nothing is guessed about them."""
    execute(home, "PRAGMA foreign_keys=OFF", "DELETE FROM exchange WHERE item = 1")

    found = fsck(home, repair=True)

    assert not found.sound
    assert "refer to what does not exist" in found.findings[0].problem


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def without_an_end(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 3)


DAMAGES = [truncated, flipped, without_an_end, Path.unlink]


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
def test_copies_are_copied_anew(home: Home, damage: Callable[[Path], None], sealed: bool) -> None:
    """A damaged copy is copied once more from the agent's file, what is left of it is kept beside, and it counts as
    damaged no longer. A compressed one that lost its table alone is made again from its own content.
    """
    path = a_copy(home)
    content = path.read_bytes()
    copy = Copy(home.archive, path.relative_to(home.archive).as_posix())
    if sealed:
        copy.compress()
    damage(copy.compressed_path if sealed else copy.path)

    assert [finding.part for finding in fsck(home).findings] == ["copies"]
    found = fsck(home, repair=True)
    assert [finding.repaired for finding in found.findings] == [True]
    kept = damage is not Path.unlink and not (sealed and damage is without_an_end)
    assert [bool(finding.remedy) for finding in found.findings] == [kept]
    assert path.read_bytes() == content
    with Store.open_read_only(home.database) as store:
        assert store.sources.faulty() == []
    assert len(list(home.archive.rglob("*.damaged"))) == kept
    assert fsck(home).findings == []


@pytest.mark.parametrize("damage", DAMAGES[:2], ids=lambda damage: str(damage.__name__))
def test_a_last_copy_is_never_touched(home: Home, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Where the agent's file is gone the damaged copy stays as it is, and is named with what can be done."""
    execute(home, f"UPDATE source SET path = CAST('{tmp_path}/gone/' || id AS BLOB)")
    path = a_copy(home)
    copy = Copy(home.archive, path.relative_to(home.archive).as_posix())
    copy.compress()
    damage(copy.compressed_path)
    left = copy.compressed_path.read_bytes()

    found = fsck(home, repair=True)

    [finding] = found.findings
    assert not found.sound
    assert str(path) in finding.problem
    assert "backup" in finding.remedy
    assert copy.compressed_path.read_bytes() == left


def test_strange_copies_are_named_and_left(home: Home) -> None:
    """A copy without a row is the last of something, perhaps: it is named and left alone."""
    stray = a_copy(home).with_name("stray.jsonl")
    stray.write_text("{}\n")

    [finding] = fsck(home, repair=True).findings

    assert "rebuild --from-archive" in finding.remedy
    assert stray.exists()


def test_a_lost_database_is_told(home: Home) -> None:
    """Without a database, but with copies, the way back is named; without both there is nothing to check."""
    for path in home.root.glob("palaver.db*"):
        path.unlink()

    [finding] = fsck(home).findings
    assert "rebuild --from-archive" in finding.remedy
    shutil.rmtree(home.archive)
    with pytest.raises(StoreMissing):
        fsck(home)


@pytest.mark.parametrize("place", [0, 5_000])
def test_a_damaged_database_is_salvaged_only_when_asked(home: Home, place: int) -> None:
    """Looking changes not a byte of a damaged database; a repair replaces it and keeps the damaged file."""
    with home.database.open("r+b") as file:
        file.seek(place)
        file.write(b"\xde\xad\xbe\xef" * 5_000)
    before = home.database.read_bytes()

    assert [finding.remedy for finding in fsck(home).findings] == [module.RECOVER]
    assert home.database.read_bytes() == before
    fsck(home, repair=True)
    [kept] = home.backups.glob("damaged-*.db")
    assert kept.read_bytes() == before
    assert [each for each in fsck(home).findings if each.part == "database"] == []


def test_it_waits_for_nobody_for_ever(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process archives nothing is compared, because it would not be what it seems."""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with Store.open(home.database) as store, store.leases.hold(ARCHIVER), pytest.raises(LeaseHeld):
        fsck(home)
