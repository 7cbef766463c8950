"""Is damage of copies found by itself, and mended while it can be?"""

# pyright: reportPrivateUsage=false

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies import copy_verification, raw
from palaver.archiver.copies.compressor import CopyCompressor
from palaver.archiver.copies.copy_verification import CopyVerifier
from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.rewriting import remove_leftovers
from palaver.archiver.store import ARCHIVER
from palaver.archiver.store.source_table import SourceTable
from palaver.core.clock import now
from palaver.core.errors import CopyDamaged
from palaver.core.report import VerifiedCopies

from ..history import FORK, ORIGINAL, History, talk

OTHER = "33333333-0000-4000-8000-000000000003"
NEW = "44444444-0000-4000-8000-000000000004"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Three sessions, of which the agent has deleted one since."""
    with History(tmp_path) as made:
        for number, session in enumerate((ORIGINAL, FORK, OTHER)):
            made.write(talk(f"word{number}", session=session), session, at=number)
        made.ingest()
        made.path(OTHER).unlink()
        yield made


def swept(history: History, budget: float = copy_verification.BUDGET) -> VerifiedCopies:
    return CopyVerifier(history.store, history.raw).run(budget)


def damage(history: History, session: str) -> Path:
    """Change one byte in the middle of a copy."""
    place = history.home.archive / history.source(session).archived
    data = bytearray(place.read_bytes())
    data[200] ^= 1
    place.write_bytes(data)
    return place


def test_each_copy_is_compared_once_a_week(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compared is left alone for seven days; then it is compared again."""
    assert swept(history) == VerifiedCopies(checked=3)
    assert swept(history) == VerifiedCopies()
    assert history.store.sources.inspection()[0] == 3

    monkeypatch.setattr(copy_verification, "now", lambda: now() + copy_verification.RECHECK + 1)
    assert swept(history) == VerifiedCopies(checked=3)


def test_a_budget_is_kept_and_gone_on_from(history: History) -> None:
    """A sweep that is broken off goes on with the others the next time."""
    ticks = iter(range(100))
    assert CopyVerifier(history.store, history.raw).run(1.5, lambda: float(next(ticks))) == VerifiedCopies(checked=1)

    assert swept(history) == VerifiedCopies(checked=2)


def test_what_the_agent_still_has_is_copied_anew(history: History) -> None:
    """A damaged copy is mended from the agent's file, and kept beside."""
    place = damage(history, ORIGINAL)

    assert swept(history) == VerifiedCopies(checked=3, repaired=1)
    assert place.read_bytes() == history.path(ORIGINAL).read_bytes()
    assert len(Copy(history.home.archive, history.source(ORIGINAL).archived).damaged_files()) == 1
    assert history.store.sources.faulty() == []


def test_a_full_disk_costs_no_byte(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged copy stays in its place, and can be read as far as it could, where there is no room for a new one."""
    place = damage(history, ORIGINAL)
    before = history.archive_files()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(raw, "sync", full)

    assert swept(history) == VerifiedCopies(checked=3, damaged=1)
    assert place.exists()
    assert history.archive_files() == before


def test_a_new_copy_that_is_not_what_was_archived_takes_no_place(history: History) -> None:
    """A file that changed where no digest tells replaces no damaged copy."""
    history.write(talk(*(f"long{number}" * 50 for number in range(20))), at=9)
    history.ingest()
    place = damage(history, ORIGINAL)
    theirs = bytearray(history.path(ORIGINAL).read_bytes())
    theirs[len(theirs) // 2] = ord("\n")
    history.write(bytes(theirs), at=9)
    before = history.archive_files()

    assert swept(history).repaired == 0
    assert place.exists()
    assert history.archive_files() == before


def test_what_is_left_of_a_copy_is_not_cleared_away(history: History) -> None:
    """A damaged form that was set aside is no leftover while there is no other: an erasure says so, and waits."""
    copy = Copy(history.home.archive, history.source(OTHER).archived)
    CopyCompressor(history.store, history.raw).run()
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")

    with pytest.raises(CopyDamaged, match="all that is left"):
        remove_leftovers(copy)
    assert len(copy.damaged_files()) == 1

    shutil.copy(copy.damaged_files()[0], copy.compressed_path)
    remove_leftovers(copy)
    assert copy.damaged_files() == []


def test_a_source_that_goes_meanwhile(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep goes on where a source was erased between its list and its turn, and writes nothing down for it."""
    waiting = [source.id for source in history.store.sources.all()] + [999]

    def listed(*_: object, **__: object) -> list[int | None]:
        return waiting

    monkeypatch.setattr(SourceTable, "to_inspect", listed)

    assert swept(history) == VerifiedCopies(checked=4)
    assert history.store.sources.inspection()[0] == 3


def test_what_cannot_be_mended_waits_for_the_others(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large a damaged copy is, those that were compared longer ago come before it."""
    damage(history, ORIGINAL)
    history.path(ORIGINAL).unlink()
    assert swept(history) == VerifiedCopies(checked=3, damaged=1)
    history.write(talk("new", session=NEW), NEW)
    history.ingest()
    monkeypatch.setattr(copy_verification, "now", lambda: now() + copy_verification.RECHECK_DAMAGED + 1)

    ticks = iter(range(100))
    assert CopyVerifier(history.store, history.raw).run(1.5, lambda: float(next(ticks))) == VerifiedCopies(checked=1)
    assert swept(history) == VerifiedCopies(checked=1, damaged=1)


def test_what_cannot_be_mended_is_told_until_it_is(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last copy that is damaged is never touched; it is told of, and looked at each day, till somebody mends it."""
    CopyCompressor(history.store, history.raw).run()
    name = history.source(OTHER).archived
    sealed = Copy(history.home.archive, name).compressed_path
    whole = sealed.read_bytes()
    sealed.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])

    assert swept(history) == VerifiedCopies(checked=3, damaged=1)
    assert swept(history) == VerifiedCopies()
    monkeypatch.setattr(copy_verification, "now", lambda: now() + copy_verification.RECHECK_DAMAGED + 1)
    assert swept(history) == VerifiedCopies(checked=1, damaged=1)
    [(told, reason)] = history.store.sources.faulty()
    assert (told, bool(reason)) == (name, True)

    sealed.write_bytes(whole)
    monkeypatch.setattr(copy_verification, "now", lambda: now() + 2 * copy_verification.RECHECK_DAMAGED + 2)
    assert swept(history) == VerifiedCopies(checked=1)
    assert history.store.sources.faulty() == []


def test_nobody_waits_for_it(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process archives, whole copies are compared all the same; what looks damaged waits."""
    damage(history, ORIGINAL)
    monkeypatch.setattr(copy_verification, "_PATIENCE", 0.0)
    with history.store.leases.hold(ARCHIVER):
        assert swept(history) == VerifiedCopies(checked=3)

    assert swept(history) == VerifiedCopies(checked=1, repaired=1)
