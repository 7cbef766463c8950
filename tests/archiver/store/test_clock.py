"""The store works correctly if the clock is wrong or jumps."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store, lease_table
from palaver.core.conversation import now, parse_instant
from palaver.core.errors import LeaseHeld

YEARS = 10 * 365 * 24 * 3600 * 1000
TAKE = """
import sys
from pathlib import Path
from palaver.archiver.store import Store
from palaver.core.errors import LeaseHeld
with Store.open(Path(sys.argv[1])) as store:
    try:
        with store.leases.hold("index") as lease:
            print(lease.epoch)
    except LeaseHeld:
        print("held")
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "palaver.db") as made:
        yield made


def taken_elsewhere(folder: Path) -> str:
    """Return the reply to another process that requests the lease."""
    command = [sys.executable, "-c", TAKE, str(folder / "palaver.db")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("jump", [-YEARS, YEARS, -1], ids=["back ten years", "on ten years", "back a moment"])
def test_a_lease_has_one_holder_with_any_clock(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    """With any clock time, no other process gets a lease before it is released."""
    with store.leases.hold("index") as lease:
        monkeypatch.setattr(lease_table, "now", lambda: now() + jump)
        assert taken_elsewhere(tmp_path) == "held"
        with pytest.raises(LeaseHeld), store.leases.hold("index"):
            pass
        store.leases.check(lease)

    assert int(taken_elsewhere(tmp_path)) == lease.epoch + 1
    with pytest.raises(LeaseHeld):
        store.leases.check(lease)
    with store.leases.hold("index") as later:
        assert later.epoch == lease.epoch + 2


def test_changes_are_ordered_by_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are ordered by number, regardless of the clock time."""
    for number, jump in enumerate((0, -YEARS, YEARS, 0), 1):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: (1_770_000_000_000 + jump) * 1_000_000)
        with store.transaction():
            store.changes.log(Entity.ITEM, [number])
        assert store.changes.last() == number
        assert store.changes.since(number - 1) == [number]


def test_instants_do_not_depend_on_the_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed times do not depend on the local time zone, even in hours that the zone repeats or skips."""
    texts = ("2026-03-29T02:30:00", "2026-10-25T02:30:00", "2026-10-25T02:30:00+02:00")
    before = [parse_instant(text) for text in texts]
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert [parse_instant(text) for text in texts] == before
        assert abs(now() - time.time() * 1000) < 60_000
    finally:
        monkeypatch.delenv("TZ")
        os.environ.pop("TZ", None)
        time.tzset()
