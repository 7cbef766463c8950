"""Only one process at a time makes a backup, and the next backup removes files of a killed process."""

import random
from pathlib import Path

import pytest

# pyright: reportPrivateUsage=false
from palaver.archiver.store import Store, backups, lease_table
from palaver.archiver.store.backups import KEPT, Backups, day_of, extracted
from palaver.archiver.store.change_log import TOKEN_BYTES, Embedding
from palaver.archiver.store.lease_table import BACKUP
from palaver.core.conversation import show_day
from palaver.core.home import Home
from palaver.core.memory import Memory


def test_an_unfinished_copy_is_removed(path: Path) -> None:
    """The next backup replaces the unfinished copy of a killed process."""
    home = Home(path.parent)
    home.backups.mkdir()
    for name in ("unfinished", "unfinished.zst"):
        (home.backups / name).write_bytes(b"half of a database")
    with Store.create(path) as store:
        store.back_up()

    [today] = Backups(home).all()
    assert {path.name for path in home.backups.iterdir()} == {today.name, f"{today.name}.sha256"}
    assert today.stat().st_mode & 0o777 == 0o600


def test_a_backup_in_another_process_is_not_repeated(path: Path) -> None:
    """If another process is making a backup, the store continues without waiting or reporting a problem."""
    with Store.create(path) as store, Store.open(path) as other:
        with store.leases.hold(BACKUP):
            other.back_up()
        assert Backups(store.home).all() == []
        assert [stage.name for stage in store.stages.all()] == []


def test_a_new_database_has_page_checksums(path: Path) -> None:
    """It has them from its first page on, and so has its backup."""
    with Store.create(path) as store:
        store.back_up()
    [backup] = Backups(store.home).all()
    for file in (path, extracted(backup, path.parent)):
        with Store.open_read_only(file) as opened:
            assert opened._database.one("PRAGMA checksum_verification") == ("1",)


DAY = 24 * 3600 * 1000


def days(home: Home) -> list[str]:
    return [day_of(path) for path in Backups(home).all()]


def test_a_wrong_clock_deletes_no_newer_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a week in the future, new backups are made every day, and the newest made is never deleted."""
    clock = [1_772_000_000_000]
    for module in (backups, lease_table):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    with Store.create(path) as store:
        for day in (*range(400, 400 + KEPT), 0, 1, 2):
            clock[0] = 1_772_000_000_000 + day * DAY
            store.back_up()
            assert days(store.home)[0] == show_day(clock[0]), day
            assert len(days(store.home)) <= KEPT

        assert days(store.home) == ["2026-02-27", "2026-02-26", "2026-02-25"]
        assert not any(stage.fails for stage in store.stages.all())


def test_backups_of_earlier_versions_are_the_oldest(path: Path) -> None:
    """A backup without a number in its name is older than one with a number, whatever its day is."""
    with Store.create(path) as store:
        store.back_up()
        [newest] = Backups(store.home).all()
        for year in (2020, 2030):
            extracted(newest, path.parent).rename(newest.with_name(f"palaver-{year}-01-01.db"))
        (newest.parent / "palaver-notes.db").touch()

        assert [path.name for path in Backups(store.home).all()] == [
            newest.name,
            "palaver-2030-01-01.db",
            "palaver-2020-01-01.db",
        ]
        assert list(Backups(store.home).damaged()) == []


def test_earlier_backups_are_verified_with_each_new_one(path: Path) -> None:
    """The stage `verify-backups` names a damaged backup until it was set aside."""
    with Store.create(path) as store:
        store.back_up()
        [first] = Backups(store.home).all()
        old = first.rename(first.with_name("palaver-000001-2020-01-01.db.zst"))
        store.back_up()
        [problem] = [stage.problem for stage in store.stages.all() if stage.fails]
        assert problem == f"{old}: its SHA-256 is missing"

        store.replace_backups([old])
        assert not any(stage.fails for stage in store.stages.all())
        assert old.with_name(f"damaged-{old.name}").exists()
        assert [day for day in days(store.home) if day == "2020-01-01"] == []


def test_a_backup_has_everything_but_vectors(path: Path, tmp_path: Path) -> None:
    """`zstd -d` restores a database in which all items wait for their embedding, and nothing else differs."""
    with Store.create(path) as store:
        with store.transaction():
            key = store.memories.insert(Memory("Deploys run at noon."), 1)
            store.vectors.replace("model/1", {key: {0: Embedding(b"12", bytes(TOKEN_BYTES))}})
        changes = store.changes.last()
        store.back_up()
        assert store.vectors.count_unembedded("model/1") == 0
    [backup] = Backups(store.home).all()

    with Store.open_read_only(extracted(backup, tmp_path)) as restored:
        assert [each.memory.content for each in restored.memories.all()] == ["Deploys run at noon."]
        assert restored.vectors.unembedded("model/1", 9) == [key]
        assert restored.changes.last() == changes
        assert restored._database.one("SELECT count(*) FROM vector JOIN token USING (item)") == (0,)


def test_damaged_frames_of_a_backup_are_zeros(path: Path, tmp_path: Path) -> None:
    """The other parts keep their places, so that their pages can be read."""
    with Store.create(path) as store:
        with store.transaction():
            for number in range(300):
                store.memories.insert(Memory(f"Memory {number} " + random.Random(number).randbytes(400).hex()), 1)
        store.back_up()
    [backup] = Backups(store.home).all()
    whole = extracted(backup, tmp_path).read_bytes()
    damaged = bytearray(backup.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    backup.write_bytes(damaged)

    remains = extracted(backup, tmp_path).read_bytes()
    assert len(remains) == len(whole)
    assert [a == b or not any(b) for a, b in zip(blocks(whole), blocks(remains), strict=True)].count(False) == 0
    assert [a == b for a, b in zip(blocks(whole), blocks(remains), strict=True)].count(False) == 1


def blocks(data: bytes) -> list[bytes]:
    return [data[start : start + 65_536] for start in range(0, len(data), 65_536)]
