"""Deletions remain effective if the database is lost."""

# pyright: reportPrivateUsage=false

import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.copies.verification import archived_names
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.archiver.store.tombstone_table import (
    NEVER_WRITTEN,
    FileHeader,
    KeyLost,
    TombstoneFile,
    Tombstones,
    fingerprint,
)
from palaver.core.deletion import DeletionRequest, DeletionState
from palaver.core.errors import StoreError
from palaver.core.home import TOMBSTONE_FILE, Home
from palaver.observe import pipeline
from palaver.observe.deletion import erasure
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import consistency
from palaver.observe.upkeep import consistency as checking
from palaver.observe.upkeep.consistency import check_consistency, rebuild_from_archive
from palaver.search import archive_search

from ...archiver.history import FORK, ORIGINAL, History, talk
from ...search.fake_embedder import FakeEmbedder

OTHER = "33333333-0000-4000-8000-000000000003"
KIMI = [
    {"role": "_system_prompt", "content": "You are Kimi."},
    {"role": "user", "content": "kimi asked about herons"},
    {"role": "assistant", "content": "kimi told about herons"},
    {"role": "user", "content": "kimi asked about storks"},
    {"role": "assistant", "content": "kimi told about storks"},
]


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, erasure, consistency, checking, archive_search):
        monkeypatch.setattr(module, "load", FakeEmbedder().load)


def archive(history: History) -> None:
    if history.home.is_lost:
        recreate(history.home)
    with Pipeline(history.home) as pipeline:
        pipeline.run(in_paths([history.folder]))


def forget(home: Home, *targets: str, erase: bool = False, mentions: str = "") -> int:
    wanted = DeletionRequest(targets=targets, erase=erase, mentions=mentions)
    with Deleter(home) as deleter:
        done = deleter.delete(wanted, deleter.preview(wanted).token)
    assert done.number is not None
    return done.number


def recreate(home: Home) -> None:
    """Create the lost database, as `palaver rebuild --from-archive` does before it reads the copies."""
    Store.create_anew(home.database).close()


def delete_database(home: Home) -> None:
    """Delete the database."""
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def rebuilt(history: History, *, remain: bool) -> list[str]:
    """Return the prompts of a database rebuilt from the copies, and from files that the agents still have."""
    transcripts = in_paths([history.folder]) if remain else []
    made = rebuild_from_archive(history.home, transcripts)
    assert made.problems == []
    return prompts(history.home)


def prompts(home: Home) -> list[str]:
    with Store.open(home.database) as store:
        keys = [each.key for each in store.exchanges.outlines()]
        return [each.exchange.prompt for each in store.exchanges.load(keys).values()]


def copies(home: Home) -> bytes:
    """Return the content of all copies."""
    found = b""
    for name in archived_names(home.archive):
        with RawArchive(home.archive).open(name) as file:
            found += file.read()
    return found


def lines_of(data: bytes) -> list[bytes]:
    """Return all lines that are not blank, sorted."""
    return sorted(line for line in data.splitlines() if line.strip())


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return an archive of two sessions, a fork of the first, and a session with lines that have no IDs or times."""
    made = History(tmp_path)
    made.store.close()
    made.write(talk("one", "secret", "three"))
    made.write([*talk("one", "secret", session=FORK), *talk("branched", session=FORK)], FORK, at=2)
    made.write(talk("whole", session=OTHER), OTHER, at=3)
    return made


@pytest.mark.parametrize("remain", [True, False], ids=["files remain", "copies alone"])
@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_a_lost_database_restores_nothing_deleted(history: History, erase: bool, remain: bool) -> None:
    """A rebuild from the copies restores everything except deleted content, and does not change the copies."""
    archive(history)
    forget(history.home, mentions="secret", erase=erase)
    forget(history.home, OTHER, erase=erase)
    before = copies(history.home)
    delete_database(history.home)

    assert sorted(rebuilt(history, remain=remain)) == ["branched?", "one?", "three?"]

    assert (b"secret" in copies(history.home)) is not erase
    assert lines_of(copies(history.home)) == lines_of(before)
    assert check_consistency(history.home).problems == []
    with Deleter(history.home) as deleter:
        assert [each.until is None for each in deleter.history()] == [erase, erase]


def test_undo_works_after_the_loss_of_the_database(history: History) -> None:
    """A deletion can be undone after the database was lost and rebuilt."""
    archive(history)
    number = forget(history.home, mentions="secret")
    delete_database(history.home)
    rebuilt(history, remain=True)

    with Deleter(history.home) as deleter:
        deleter.undo(number)

    assert "secret?" in prompts(history.home)
    delete_database(history.home)
    assert "secret?" in rebuilt(history, remain=True)


def test_an_ingest_into_a_new_database_suppresses_deleted_content(history: History) -> None:
    """After the database is lost, a plain ingest run does not restore deleted content either."""
    archive(history)
    forget(history.home, mentions="secret", erase=True)
    delete_database(history.home)
    archive(history)

    assert "secret?" not in prompts(history.home)
    assert b"secret" not in copies(history.home)


@pytest.mark.parametrize("remain", [True, False], ids=["files remain", "copies alone"])
@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_lines_without_ids(history: History, erase: bool, remain: bool) -> None:
    """Deleted lines without IDs are recognised in the copy by their position, even if the agent's file is gone."""
    folder = history.folder / "sessions" / "0123456789abcdef0123456789abcdef" / OTHER
    folder.mkdir(parents=True)
    path = folder / "context.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in KIMI))
    archive(history)
    assert "kimi asked about storks" in prompts(history.home)
    forget(history.home, mentions="storks", erase=erase)
    delete_database(history.home)

    found = rebuilt(history, remain=remain)

    assert "kimi asked about herons" in found
    assert "kimi asked about storks" not in found
    assert (b"storks" in copies(history.home)) is not erase


def test_an_erasure_is_finished_after_the_loss_of_the_database(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted erasure is completed in the copies, even if the database is lost in between."""
    archive(history)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            forget(history.home, mentions="secret", erase=True)
    assert b"secret" in copies(history.home)
    delete_database(history.home)
    for path in history.folder.rglob("*.jsonl"):
        path.unlink()

    assert "secret?" not in rebuilt(history, remain=False)
    assert b"secret" not in copies(history.home)


@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_a_restored_backup_restores_nothing_deleted(history: History, erase: bool) -> None:
    """A database backup from before a deletion takes over the deletion from the tombstone file."""
    archive(history)
    backup = history.home.root.with_name("backup.db")
    shutil.copy(history.home.database, backup)
    forget(history.home, mentions="secret", erase=erase)
    forget(history.home, OTHER, erase=erase)
    delete_database(history.home)
    shutil.copy(backup, history.home.database)

    archive(history)

    assert sorted(prompts(history.home)) == ["branched?", "one?", "three?"]
    if erase:
        assert b"secret" not in copies(history.home)
        assert b"whole" not in copies(history.home)
        with Store.open(history.home.database) as store:
            assert store.sessions.find("claude-code", OTHER) is None
            assert {each.state for each in store.tombstones.all()} == {DeletionState.ERASED}


def test_a_lost_file_is_written_again(history: History) -> None:
    """The next process that opens the database writes a lost tombstone file again."""
    archive(history)
    forget(history.home, mentions="secret")
    file = history.home.tombstone_file
    before = TombstoneFile(file).read().deletions
    file.unlink()
    Store.open(history.home.database).close()

    assert TombstoneFile(file).read().deletions == before
    assert before


def test_the_file_contains_no_content(history: History) -> None:
    """The tombstone file contains no deleted text, and only its owner can read it."""
    archive(history)
    forget(history.home, mentions="secret")
    file = history.home.tombstone_file

    data = file.read_bytes()
    assert not any(word in data for word in (b"secret", b"one", ORIGINAL[:8].encode(), b"claude", b"shop"))
    assert file.stat().st_mode & 0o077 == 0


def test_a_damaged_line_costs_one_deletion(tmp_path: Path) -> None:
    """A damaged line is counted, and all other deletions in the file are read."""
    file = TombstoneFile(tmp_path / "archive" / TOMBSTONE_FILE)
    head = FileHeader(7, 2, fingerprint(Home(tmp_path).key()))
    file.write(head, [Tombstones(1, 5, "kept", (1, -2)), Tombstones(2, 6, "erased", (2**63 - 1, -(2**63)))])
    path = tmp_path / "archive" / TOMBSTONE_FILE
    assert file.header() == head
    data = bytearray(path.read_bytes())
    data[data.index(b" 1 5 kept") + 1] ^= 2
    path.write_bytes(data)

    found = file.read()

    assert found.damaged == 1
    assert found.deletions == (Tombstones(2, 6, "erased", (2**63 - 1, -(2**63))),)
    with Store.create(tmp_path / "palaver.db") as store:
        assert [each.id for each in store.tombstones.all()] == [2]
        assert store.tombstones.lost == 1


def test_a_deletion_fails_if_the_file_cannot_be_written(history: History) -> None:
    """If the tombstone file cannot be written, a deletion fails with an error and deletes nothing."""
    archive(history)
    (history.home.archive / f"{TOMBSTONE_FILE}.new").mkdir()

    with pytest.raises(StoreError, match="cannot write"):
        forget(history.home, mentions="secret")

    assert "secret?" in prompts(history.home)


@pytest.mark.parametrize("damage", ["gone", "short", "other"])
def test_a_lost_key_stops_ingest_and_deletion(history: History, damage: str) -> None:
    """If the key is missing, too short or different, ingest and deletion fail until it is restored."""
    archive(history)
    forget(history.home, mentions="secret", erase=True)
    key = history.home.key_file.read_bytes()
    if damage == "gone":
        history.home.key_file.unlink()
    else:
        history.home.key_file.write_bytes(b"short" if damage == "short" else bytes(32))
    history.touch(history.path(ORIGINAL), 50)

    for lost in (False, True):
        if lost:
            delete_database(history.home)
        with pytest.raises(KeyLost, match=r"redaction\.key") as raised:
            archive(history)
        assert "backup" in raised.value.hint
        with pytest.raises(KeyLost):
            forget(history.home, OTHER)
    assert "deletions" in {finding.part for finding in check_consistency(history.home).problems}

    history.home.key_file.write_bytes(key)
    archive(history)
    assert sorted(prompts(history.home)) == ["branched?", "one?", "three?", "whole?"]
    assert check_consistency(history.home).problems == []


def test_deleting_the_file_recovers_from_a_lost_key(history: History) -> None:
    """If the user deletes the tombstone file, deleted content returns and can be deleted again."""
    archive(history)
    forget(history.home, mentions="secret")
    history.home.key_file.unlink()
    file = history.home.tombstone_file
    with pytest.raises(KeyLost) as raised:
        archive(history)
    assert str(file) in raised.value.hint

    file.unlink()
    history.write(talk("one", "secret", "three", "four"), at=60)
    archive(history)
    assert "four?" in prompts(history.home)
    forget(history.home, mentions="secret")
    assert "secret?" not in prompts(history.home)


def test_an_unreadable_file_is_an_error(history: History) -> None:
    """If the tombstone file is unreadable, opening the database fails, so that no deleted content returns."""
    archive(history)
    forget(history.home, mentions="secret")
    file = history.home.tombstone_file
    data = file.read_bytes()
    file.unlink()
    file.mkdir()

    for lost in (False, True):
        if lost:
            delete_database(history.home)
        with pytest.raises(StoreError, match="cannot read") as raised:
            archive(history)
        assert raised.value.hint

    file.rmdir()
    file.write_bytes(data)
    archive(history)
    assert "secret?" not in prompts(history.home)


@pytest.mark.parametrize("header", [b"", b"palaver-forgotten-1 1", b"\xff" * 40], ids=["empty", "cut", "other"])
def test_a_file_with_a_damaged_header_is_merged(history: History, header: bytes) -> None:
    """A restored database takes over the deletions from a tombstone file with a damaged header."""
    archive(history)
    forget(history.home, OTHER)
    with Store.open(history.home.database) as store, store.transaction():
        store.tombstones.rewrite_file()  # the header of the backup then counts several writes
    backup = history.home.root.with_name("backup.db")
    shutil.copy(history.home.database, backup)
    forget(history.home, mentions="secret")
    file = history.home.tombstone_file
    file.write_bytes(header + b"\n" + file.read_bytes().partition(b"\n")[2])
    assert TombstoneFile(file).header() is None
    delete_database(history.home)
    shutil.copy(backup, history.home.database)

    archive(history)

    assert sorted(prompts(history.home)) == ["branched?", "one?", "three?"]
    assert TombstoneFile(file).header() not in {None, NEVER_WRITTEN}
    [restored] = check_consistency(history.home).problems
    assert "missing from the database" in restored.problem


@pytest.mark.parametrize("kept", [0, 1], ids=["in a line", "between lines"])
def test_a_truncated_file_is_detected(tmp_path: Path, kept: int) -> None:
    """The header contains the number of lines, so a truncated file is detected."""
    path = tmp_path / "archive" / TOMBSTONE_FILE
    entries = [Tombstones(number, 5, "kept", (number,)) for number in (1, 2, 3)]
    TombstoneFile(path).write(FileHeader(7, 3, fingerprint(Home(tmp_path).key())), entries)
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[:3]) if kept else b"".join(rows)[:-9])

    found = TombstoneFile(path).read()

    assert (found.deletions, found.damaged) == (tuple(entries[:2]), 1)


def test_an_empty_file_counts_as_damaged(tmp_path: Path) -> None:
    """An empty tombstone file is damaged, because the file is written only if there is a deletion."""
    path = tmp_path / "archive" / TOMBSTONE_FILE
    path.parent.mkdir()
    path.touch()

    with Store.create(tmp_path / "palaver.db") as store:
        assert store.tombstones.lost == 1


def test_a_damaged_line_is_reported_until_it_is_acknowledged(history: History) -> None:
    """A rebuild and `fsck` report a deletion lost with a damaged line until `fsck --repair` acknowledges it."""
    archive(history)
    forget(history.home, mentions="secret")
    forget(history.home, OTHER)
    file = history.home.tombstone_file
    data = bytearray(file.read_bytes())
    data[data.index(b" 1 ", data.index(b"\n")) + 1] ^= 2
    file.write_bytes(data)
    delete_database(history.home)

    [problem] = rebuild_from_archive(history.home, in_paths([history.folder])).problems
    assert problem.problem == "1 deletion was lost, so deleted items are searchable again"
    assert "whole?" not in prompts(history.home)
    for repair in (False, True):
        [finding] = check_consistency(history.home, repair=repair).problems
        assert (finding.part, finding.repaired) == ("deletions", repair)
        assert "Delete it again" in finding.problem
    assert check_consistency(history.home).problems == []


def test_a_damaged_file_is_repaired_from_the_database(history: History) -> None:
    """`fsck --repair` restores every deletion of a damaged tombstone file."""
    archive(history)
    forget(history.home, mentions="secret")
    file = history.home.tombstone_file
    before = TombstoneFile(file).read()
    file.write_bytes(file.read_bytes()[:-9])

    [finding] = check_consistency(history.home).problems
    assert finding.part == "deletions"
    assert "--repair" in finding.remedy
    check_consistency(history.home, repair=True)

    assert TombstoneFile(file).read() == before
    assert check_consistency(history.home).problems == []


KILLED = """
import os, sys; from pathlib import Path
from palaver.archiver.store import database
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.archiver.store.tombstone_table import TombstoneTable
from palaver.observe.deletion.deleter import Deleter
write_file = TombstoneTable.write_file
def killed(tombstones):
    write_file(tombstones)
    os._exit(9)
TombstoneTable.write_file = killed
with Deleter(Home(Path(sys.argv[1]))) as deleter:
    wanted = DeletionRequest(mentions="secret")
    deleter.delete(wanted, deleter.preview(wanted).token)
"""


def test_a_crash_before_the_commit_keeps_the_deletion(history: History) -> None:
    """If a process crashes after writing the tombstone file, the next run takes over the deletion from the file."""
    archive(history)
    ran = subprocess.run([sys.executable, "-c", KILLED, str(history.home.root)], check=False)
    assert ran.returncode == 9
    assert len(TombstoneFile(history.home.tombstone_file).read().deletions) == 1

    archive(history)

    assert "secret?" not in prompts(history.home)
    assert check_consistency(history.home).problems == []
    with Store.open(history.home.database) as store:
        assert [each.state for each in store.tombstones.all()] == [DeletionState.KEPT]
