"""Damage of the files that are kept for recovery is noticed, and no memory is lost that a backup still holds."""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from palaver.archiver.ingest.transcripts import Transcript
from palaver.archiver.store import Store
from palaver.archiver.store.backups import Backups, day_of, extracted
from palaver.archiver.store.migration import migrate
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.reports import HealthProblem, Unsearched
from palaver.core.runtime import silent
from palaver.observe.upkeep.consistency import check_consistency
from palaver.observe.upkeep.health_check import HealthContext, diagnose

from ..old_version import downgrade
from .test_corruption_database import PAGE, cut, flip, pages, zero

TRIALS = 40
MEMORIES = 40


def store_memories(home: Home, name: str, count: int) -> None:
    """Store memories, and make a backup."""
    with Store.create(home.database) as store:
        with store.transaction():
            for number in range(count):
                store.memories.insert(Memory(f"{name} {number} listens on port {8_000 + number}. " * 9), 1)
        store.back_up()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a home with two backups: one of yesterday, and one of today with more memories."""
    home = Home(tmp_path_factory.mktemp("recovery") / "palaver")
    home.make()
    store_memories(home, "Service", MEMORIES)
    [first] = Backups(home).all()
    yesterday = first.with_name(first.name.replace(day_of(first), "2020-01-01"))
    for suffix in ("", ".sha256"):
        text = first.with_name(first.name + suffix).read_bytes().replace(first.name.encode(), yesterday.name.encode())
        first.with_name(first.name + suffix).unlink()
        yesterday.with_name(yesterday.name + suffix).write_bytes(text)
    store_memories(home, "Queue", MEMORIES)
    with Store.open(home.database) as store:
        with store.transaction():
            store.memories.insert(Memory("Stored after the backups."), 2)
        store._database.run("PRAGMA wal_checkpoint(TRUNCATE)")  # pyright: ignore[reportPrivateUsage]
    yield home.root
    shutil.rmtree(home.root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    shutil.copytree(pristine, tmp_path / "palaver")
    return Home(tmp_path / "palaver")


def memories(home: Home) -> set[str]:
    with Store.open(home.database) as store:
        return {each.memory.content for each in store.memories.all()}


def remove(path: Path, _at: int, _bit: int) -> None:
    path.unlink()


def no_transcripts(_skipped: Unsearched) -> list[Transcript]:
    return []


def no_model(_config: Config) -> str:
    return "no model"


def deep_problems(home: Home) -> list[HealthProblem]:
    """Return the problems that `palaver doctor --deep` finds."""
    return diagnose(HealthContext(home, "1.2.3", no_transcripts, no_model), silent).problems


def backed_up(home: Home, contents: set[str]) -> set[str]:
    """Return the memories whose text is in an intact part of a backup."""
    with TemporaryDirectory() as folder:
        texts = [extracted(path, Path(folder)).read_bytes() for path in Backups(home).all()]
    return {content for content in contents if any(content.encode() in text for text in texts)}


def uncompress(home: Home) -> list[Path]:
    """Replace the backups by uncompressed ones, as earlier versions made them. Return them, the newest first."""
    for path in Backups(home).all():
        database = extracted(path, path.parent).rename(path.with_suffix(""))
        digest = hashlib.sha256(database.read_bytes()).hexdigest()
        database.with_name(f"{database.name}.sha256").write_text(f"{digest}  {database.name}\n")
        path.with_name(f"{path.name}.sha256").unlink()
        path.unlink()
    return Backups(home).all()


def places(backup: Path, text: bytes, contents: set[str]) -> list[int]:
    """Return the places in an uncompressed backup of the memories in a text."""
    whole = backup.read_bytes()
    return [whole.index(content.encode()) for content in contents if content.encode() in text]


def damage_memories(home: Home, draw: random.Random) -> None:
    """Overwrite pages with memories."""
    for page in draw.sample(pages(home, "memory"), 3):
        zero(home.database, (page - 1) * PAGE)


@pytest.mark.parametrize("seed", range(TRIALS))
def test_damage_of_a_recovery_file_is_noticed_and_costs_no_memory(home: Home, seed: int) -> None:
    """Both checks notice the damage. If the database is damaged too, the repair restores what any backup holds."""
    draw, backups = random.Random(seed), Backups(home).all()
    checksums = [path.with_name(f"{path.name}.sha256") for path in backups]
    path = draw.choice([*backups, *backups, draw.choice(checksums), home.changes, home.numbers])
    ways: list[Callable[[Path, int, int], None]] = [flip, zero, cut] if path in backups else [flip, cut, remove]
    how = draw.choice(ways)
    how(path, draw.randrange(path.stat().st_size - 1), draw.randrange(8))
    contents = memories(home)
    held = backed_up(home, contents)

    assert not check_consistency(home).ok
    assert any(path.name.removesuffix(".sha256") in each.problem for each in deep_problems(home))
    damage_memories(home, draw)
    check_consistency(home, repair=True)
    assert held - memories(home) == set()
    assert check_consistency(home).ok


def test_a_page_that_is_damaged_in_the_newest_backup_too_loses_one_memory_at_most(home: Home) -> None:
    """The other memories of the page are restored, although no older backup has them."""
    [newest, _] = uncompress(home)
    contents, start = memories(home), (pages(home, "memory")[7] - 1) * PAGE
    flip(newest, places(newest, home.database.read_bytes()[start : start + PAGE], contents)[0] + 50, 2)
    zero(home.database, start)

    check_consistency(home, repair=True)
    assert len(contents - memories(home)) <= 1


def test_a_damaged_database_of_an_earlier_version_is_repaired_before_its_conversion(home: Home) -> None:
    """Memories that the database cannot read come from the backups, which have the old schema too."""
    contents = memories(home)
    for path in (home.database, *uncompress(home)):
        downgrade(path)
    damage_memories(home, random.Random(1))
    report = check_consistency(home, repair=True)

    assert "Run `palaver migrate` to convert it" in report.problems[-1].remedy
    assert migrate(home).converted
    assert contents - memories(home) <= {"Stored after the backups."}
    check_consistency(home, repair=True)
    assert check_consistency(home).ok


def test_backups_of_an_earlier_version_repair_a_converted_database(home: Home) -> None:
    """Rows of a damaged page come from a converted copy of the backup, which stays as it is."""
    contents, [newest, oldest] = memories(home), uncompress(home)
    for path in (newest, oldest):
        downgrade(path)
    before = newest.read_bytes()
    damage_memories(home, random.Random(2))
    check_consistency(home, repair=True)

    assert contents - memories(home) <= {"Stored after the backups."}
    assert newest.with_name(f"damaged-{newest.name}").read_bytes() == before  # its SHA-256 is that of the new schema


def test_a_lost_database_is_restored_from_a_backup_of_an_earlier_version(home: Home) -> None:
    """The restored database has the old schema, and the report names the command that converts it."""
    contents = memories(home)
    for path in uncompress(home):
        downgrade(path)
    home.database.unlink()
    report = check_consistency(home, repair=True)

    assert "Run `palaver migrate` to convert it" in report.problems[-1].remedy
    migrate(home)
    assert memories(home) == contents - {"Stored after the backups."}


def test_rows_that_are_unreadable_in_one_backup_come_from_an_older_one(home: Home) -> None:
    """The repair reads every backup, and each memory comes from the newest one in which it is readable."""
    contents, [newest, oldest] = memories(home), uncompress(home)
    start = (pages(home, "memory")[2] - 1) * PAGE
    for place in places(newest, home.database.read_bytes()[start : start + PAGE], contents):
        zero(newest, place)
    zero(home.database, start)
    cut(oldest, oldest.stat().st_size - 3 * PAGE)

    check_consistency(home, repair=True)
    assert memories(home) == contents


def test_an_older_backup_restores_no_row_that_was_deleted_later(home: Home) -> None:
    """A row that a newer backup lacks is not restored from an older one."""
    [newest, oldest] = Backups(home).all()
    gone = f"Service 3 listens on port {8_003}. " * 9
    with Store.open(home.database) as store, store.transaction():
        [key] = [each.key for each in store.memories.all() if each.memory.content == gone]
        store.integrity.remove([key])
    with Store.open(home.database) as store:
        store.replace_backups([newest])
        store._database.run("PRAGMA wal_checkpoint(TRUNCATE)")  # pyright: ignore[reportPrivateUsage]
    assert backed_up(home, {gone}) == {gone}
    assert oldest.exists()
    for page in pages(home, "memory"):
        zero(home.database, (page - 1) * PAGE)

    check_consistency(home, repair=True)
    assert len(memories(home)) > MEMORIES
    assert gone not in memories(home)


def test_a_backup_of_an_older_schema_restores_memories(home: Home) -> None:
    """Columns that an older backup lacks get their default values."""
    contents, [newest, oldest] = memories(home), uncompress(home)
    newest.unlink()
    connection = apsw.Connection(str(oldest), vfs="unix")
    connection.execute("ALTER TABLE memory RENAME TO former; CREATE TABLE memory AS SELECT * FROM former")
    connection.execute("ALTER TABLE memory DROP COLUMN rules; DROP TABLE former")
    connection.close()
    for page in pages(home, "memory")[1:]:
        zero(home.database, (page - 1) * PAGE)

    check_consistency(home, repair=True)
    assert {content for content in contents if content.startswith("Service")} <= memories(home)


def test_a_damaged_watermark_is_reported_after_later_writes(home: Home) -> None:
    """A write does not hide that lost changes cannot be ruled out. The repair accepts it."""
    flip(home.changes, 18)
    with Store.open(home.database) as store, store.transaction():
        store.memories.insert(Memory("Written later."), 3)

    [problem] = check_consistency(home).problems
    assert "cannot be ruled out" in problem.problem
    assert check_consistency(home, repair=True).ok
    assert check_consistency(home).problems == []


def test_a_lost_database_is_restored_from_the_backups(home: Home) -> None:
    """If the database is missing, both checks say so, and the repair restores the memories of every backup."""
    contents = memories(home)
    with Store.open(home.database) as store:
        last = max(store.items.all_keys())
    home.database.unlink()
    [newest, _] = Backups(home).all()
    flip(newest, newest.stat().st_size // 3)
    held = backed_up(home, contents)

    [problem] = check_consistency(home).problems
    assert "is missing, but backups exist" in problem.problem
    assert any(each.problem == problem.problem for each in deep_problems(home))
    check_consistency(home, repair=True)
    assert memories(home) == held
    assert len(held) >= MEMORIES
    assert check_consistency(home).ok
    with Store.open(home.database) as store, store.transaction():
        assert store.memories.insert(Memory("Stored after the restoration."), 3) > last
