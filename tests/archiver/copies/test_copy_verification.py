"""Damage of copies is detected in the background, and repaired while the agent's file exists."""

# pyright: reportPrivateUsage=false

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies import raw_copy, verification
from palaver.archiver.copies.raw_copy import Copy, remove_leftovers
from palaver.archiver.copies.verification import CopyCompressor, CopyVerifier
from palaver.archiver.store import ARCHIVER
from palaver.archiver.store.source_table import SourceTable
from palaver.core.conversation import now
from palaver.core.errors import CopyDamaged
from palaver.core.reports import VerifiedCopies

from ..history import FORK, ORIGINAL, History, talk

OTHER = "33333333-0000-4000-8000-000000000003"
NEW = "44444444-0000-4000-8000-000000000004"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Return three sessions. The agent has deleted the file of one session."""
    with History(tmp_path) as made:
        for number, session in enumerate((ORIGINAL, FORK, OTHER)):
            made.write(talk(f"word{number}", session=session), session, at=number)
        made.ingest()
        made.path(OTHER).unlink()
        yield made


def verify(history: History, budget: float = verification.VERIFY_SECONDS) -> VerifiedCopies:
    return CopyVerifier(history.store, history.raw).run(budget)


def damage(history: History, session: str) -> Path:
    """Change one byte in the middle of a copy."""
    place = history.home.archive / history.source(session).archived
    data = bytearray(place.read_bytes())
    data[200] ^= 1
    place.write_bytes(data)
    return place


def test_each_copy_is_verified_once_a_week(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verified copy is not verified again for seven days."""
    assert verify(history) == VerifiedCopies(checked=3)
    assert verify(history) == VerifiedCopies()
    assert history.store.sources.verification_state()[0] == 3

    monkeypatch.setattr(verification, "now", lambda: now() + verification.RECHECK + 1)
    assert verify(history) == VerifiedCopies(checked=3)


def test_the_next_run_continues_after_the_time_limit(history: History) -> None:
    """A run that reaches its time limit leaves the other copies to the next run."""
    ticks = iter(range(100))
    assert CopyVerifier(history.store, history.raw).run(1.5, lambda: float(next(ticks))) == VerifiedCopies(checked=1)

    assert verify(history) == VerifiedCopies(checked=2)


def test_a_damaged_copy_is_copied_again(history: History) -> None:
    """The agent's file replaces a damaged copy. The damaged copy is kept under another name."""
    place = damage(history, ORIGINAL)

    assert verify(history) == VerifiedCopies(checked=3, repaired=1)
    assert place.read_bytes() == history.path(ORIGINAL).read_bytes()
    assert len(Copy(history.home.archive, history.source(ORIGINAL).archived).damaged_files()) == 1
    assert history.store.sources.damaged() == []


def test_a_full_disk_loses_no_byte(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged copy stays unchanged if the disk has no space for a new copy."""
    place = damage(history, ORIGINAL)
    before = history.archive_files()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(raw_copy, "sync", full)

    assert verify(history) == VerifiedCopies(checked=3, damaged=1)
    assert place.exists()
    assert history.archive_files() == before


def test_a_changed_file_does_not_replace_a_copy(history: History) -> None:
    """A file that no longer matches the checksums does not replace a damaged copy."""
    history.write(talk(*(f"long{number}" * 50 for number in range(20))), at=9)
    history.ingest()
    place = damage(history, ORIGINAL)
    theirs = bytearray(history.path(ORIGINAL).read_bytes())
    theirs[len(theirs) // 2] = ord("\n")
    history.write(bytes(theirs), at=9)
    before = history.archive_files()

    assert verify(history).repaired == 0
    assert place.exists()
    assert history.archive_files() == before


def test_the_last_damaged_file_is_not_deleted(history: History) -> None:
    """A damaged file is deleted only if another file of the same copy exists."""
    copy = Copy(history.home.archive, history.source(OTHER).archived)
    CopyCompressor(history.store, history.raw).run()
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")

    with pytest.raises(CopyDamaged, match="other files of this copy"):
        remove_leftovers(copy)
    assert len(copy.damaged_files()) == 1

    shutil.copy(copy.damaged_files()[0], copy.compressed_path)
    remove_leftovers(copy)
    assert copy.damaged_files() == []


def test_a_source_deleted_during_a_run_is_skipped(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run continues if a listed source is deleted, and records no result for the source."""
    waiting = [source.id for source in history.store.sources.all()] + [999]

    def listed(*_: object, **__: object) -> list[int | None]:
        return waiting

    monkeypatch.setattr(SourceTable, "due_for_verification", listed)

    assert verify(history) == VerifiedCopies(checked=4)
    assert history.store.sources.verification_state()[0] == 3


def test_a_damaged_copy_waits_for_copies_verified_earlier(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies with an earlier or no verification are verified before a damaged copy."""
    damage(history, ORIGINAL)
    history.path(ORIGINAL).unlink()
    assert verify(history) == VerifiedCopies(checked=3, damaged=1)
    history.write(talk("new", session=NEW), NEW)
    history.ingest()
    monkeypatch.setattr(verification, "now", lambda: now() + verification.RECHECK_DAMAGED + 1)

    ticks = iter(range(100))
    assert CopyVerifier(history.store, history.raw).run(1.5, lambda: float(next(ticks))) == VerifiedCopies(checked=1)
    assert verify(history) == VerifiedCopies(checked=1, damaged=1)


def test_a_damaged_copy_is_reported_until_it_is_restored(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last copy is never changed, and it is verified every day until it is restored."""
    CopyCompressor(history.store, history.raw).run()
    name = history.source(OTHER).archived
    compressed = Copy(history.home.archive, name).compressed_path
    whole = compressed.read_bytes()
    compressed.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])

    assert verify(history) == VerifiedCopies(checked=3, damaged=1)
    assert verify(history) == VerifiedCopies()
    monkeypatch.setattr(verification, "now", lambda: now() + verification.RECHECK_DAMAGED + 1)
    assert verify(history) == VerifiedCopies(checked=1, damaged=1)
    [(damaged_name, reason)] = history.store.sources.damaged()
    assert (damaged_name, bool(reason)) == (name, True)

    compressed.write_bytes(whole)
    monkeypatch.setattr(verification, "now", lambda: now() + 2 * verification.RECHECK_DAMAGED + 2)
    assert verify(history) == VerifiedCopies(checked=1)
    assert history.store.sources.damaged() == []


def test_a_running_ingest_delays_only_damaged_copies(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process archives, intact copies are verified and damaged copies wait."""
    damage(history, ORIGINAL)
    monkeypatch.setattr(verification, "_PATIENCE", 0.0)
    with history.store.leases.hold(ARCHIVER):
        assert verify(history) == VerifiedCopies(checked=3)

    assert verify(history) == VerifiedCopies(checked=1, repaired=1)
