"""Is damage of copies found by itself, and mended while it can be?"""

# pyright: reportPrivateUsage=false

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies import sweeping
from palaver.archiver.copies.forms import Copy
from palaver.archiver.copies.sealing import Sealer
from palaver.archiver.copies.sweeping import Sweeper
from palaver.archiver.store import ARCHIVER
from palaver.core.clock import now
from palaver.core.report import Swept

from ..history import FORK, ORIGINAL, History, talk

OTHER = "33333333-0000-4000-8000-000000000003"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Three sessions, of which the agent has deleted one since."""
    with History(tmp_path) as made:
        for number, session in enumerate((ORIGINAL, FORK, OTHER)):
            made.write(talk(f"word{number}", session=session), session, at=number)
        made.ingest()
        made.path(OTHER).unlink()
        yield made


def swept(history: History, budget: float = sweeping.BUDGET) -> Swept:
    return Sweeper(history.store, history.raw).run(budget)


def damage(history: History, session: str) -> Path:
    """Change one byte in the middle of a copy."""
    place = history.home.archive / history.source(session).archived
    data = bytearray(place.read_bytes())
    data[200] ^= 1
    place.write_bytes(data)
    return place


def test_each_copy_is_compared_once_a_week(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compared is left alone for seven days; then it is compared again."""
    assert swept(history) == Swept(compared=3)
    assert swept(history) == Swept()
    assert history.store.sources.inspection()[0] == 3

    monkeypatch.setattr(sweeping, "now", lambda: now() + sweeping.AGAIN + 1)
    assert swept(history) == Swept(compared=3)


def test_a_budget_is_kept_and_gone_on_from(history: History) -> None:
    """A sweep that is broken off goes on with the others the next time."""
    ticks = iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: float(next(ticks)))
        assert swept(history, budget=1.5) == Swept(compared=1, waiting=2)

    assert swept(history) == Swept(compared=2)


def test_what_the_agent_still_has_is_copied_anew(history: History) -> None:
    """A damaged copy is mended from the agent's file, and kept beside."""
    place = damage(history, ORIGINAL)

    assert swept(history) == Swept(compared=3, repaired=1)
    assert place.read_bytes() == history.path(ORIGINAL).read_bytes()
    assert len(Copy(history.home.archive, history.source(ORIGINAL).archived).set_asides()) == 1
    assert history.store.sources.faulty() == []


def test_what_cannot_be_mended_is_told_until_it_is(history: History) -> None:
    """A last copy that is damaged is never touched; it is told of, and looked at each time, till somebody mends it."""
    Sealer(history.store, history.raw).run()
    name = history.source(OTHER).archived
    sealed = Copy(history.home.archive, name).sealed
    whole = sealed.read_bytes()
    sealed.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])

    assert swept(history) == Swept(compared=3, damaged=1)
    assert swept(history) == Swept(compared=1, damaged=1)
    [(told, reason)] = history.store.sources.faulty()
    assert (told, bool(reason)) == (name, True)

    sealed.write_bytes(whole)
    assert swept(history) == Swept(compared=1)
    assert history.store.sources.faulty() == []


def test_nobody_waits_for_it(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process archives, whole copies are compared all the same; what looks damaged waits."""
    damage(history, ORIGINAL)
    monkeypatch.setattr(sweeping, "_PATIENCE", 0.0)
    with history.store.leases.hold(ARCHIVER):
        assert swept(history) == Swept(compared=3)

    assert swept(history) == Swept(compared=1, repaired=1)
