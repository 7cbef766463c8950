"""A lease has one holder at a time, and a later lease invalidates an earlier lease."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.conversation import now
from palaver.core.errors import LeaseHeld, StoreError

HOLDER = """
import sys
import threading
from pathlib import Path
from palaver.archiver.store import Store
from palaver.core.conversation import now
with Store.open(Path(sys.argv[1])) as store, store.leases.hold("archiver") as lease:
    print(lease.epoch, flush=True)
    sys.stdin.read()
"""


def lease_holder(path: Path) -> "subprocess.Popen[str]":
    """Return another process that holds the lease."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "1\n"
    return holder


def test_a_lease_has_one_holder(store: Store, path: Path) -> None:
    """While one process holds the lease, a second process is refused immediately."""
    holder = lease_holder(path)
    with pytest.raises(LeaseHeld, match="archiver") as refused, store.leases.hold("archiver"):
        raise AssertionError
    assert refused.value.hint
    with store.leases.hold("another") as other:
        assert other.epoch == 1

    holder.communicate()
    with store.leases.hold("archiver") as lease:
        assert lease.epoch == 2


def test_a_killed_process_holds_no_lease(store: Store, path: Path) -> None:
    """The lock of a killed holder is released."""
    holder = lease_holder(path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    with store.leases.hold("archiver") as lease:
        assert lease.epoch == 2


def test_a_process_cannot_hold_a_lease_twice(store: Store) -> None:
    """A nested request is refused and does not affect the first holder."""
    with store.leases.hold("archiver") as lease:
        with pytest.raises(LeaseHeld), store.leases.hold("archiver"):
            raise AssertionError
        store.leases.check(lease)


def test_a_later_holder_fences_an_earlier_one(store: Store) -> None:
    """A lease is valid until the next lease is issued, even after its block ended."""
    with store.leases.hold("archiver") as first:
        store.leases.check(first)
    with store.leases.hold("archiver") as second:
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(LeaseHeld, match="acquired the archiver lease"):
            store.leases.check(first)
        store.leases.check(second)


def test_an_error_releases_the_lease(store: Store) -> None:
    """Leaving the block releases the lease, even with an error."""
    with pytest.raises(ZeroDivisionError), store.leases.hold("archiver"):
        raise ZeroDivisionError
    with store.leases.hold("archiver") as lease:
        assert lease.epoch == 2


def test_a_lock_that_cannot_be_opened_is_reported(store: Store, path: Path) -> None:
    """If only the lock file is unwritable, the error contains its path."""
    path.with_name("archiver.lock").mkdir()

    with pytest.raises(StoreError, match=r"archiver\.lock: Is a directory"), store.leases.hold("archiver"):
        raise AssertionError


def test_a_patient_process_waits(store: Store, path: Path) -> None:
    """A process with a waiting time gets the lease on its release, or is refused when the time is over."""
    holder = lease_holder(path)
    with pytest.raises(LeaseHeld), store.leases.hold("archiver", patience=0.2):
        raise AssertionError
    end = threading.Timer(0.3, holder.communicate)
    end.start()

    with store.leases.hold("archiver", patience=20) as lease:
        assert lease.epoch == 2
    end.join()


def test_the_holder_of_a_lease_is_known(store: Store, path: Path) -> None:
    """A lease has a holder only while it is held, and a query for the holder does not acquire it."""
    assert store.leases.holder("archiver") is None
    holder = lease_holder(path)

    found = store.leases.holder("archiver")
    assert found
    assert found.who == f"process {holder.pid}"
    assert abs(found.since - now()) < 60_000
    with pytest.raises(LeaseHeld, match=f"process {holder.pid} has held the archiver lease since "):
        store.leases.hold("archiver").__enter__()

    holder.communicate()
    assert store.leases.holder("archiver") is None
    with store.leases.hold("archiver"):
        assert store.leases.holder("archiver")


def test_the_progress_of_a_holder_is_visible(store: Store, path: Path) -> None:
    """Other processes see the stage and the last steps of a holder, until the lease is released."""
    reported: list[str] = []

    def note(stage: str, _done: int, _total: int) -> None:
        reported.append(stage)

    report = store.leases.reporter("archiver", note)
    report("Too early", 1, 2)
    with Store.open(path) as other, store.leases.hold("archiver"):
        holder = other.leases.holder("archiver")
        assert holder is not None
        assert (holder.stage, holder.done, holder.total) == ("", 0, 0)

        report("Archiving", 1_200, 4_690)
        report("Embedding", 7, 9)
        holder = other.leases.holder("archiver")
        assert holder is not None
        assert (holder.stage, holder.done, holder.total) == ("Embedding", 7, 9)
    assert store.leases.holder("archiver") is None
    with store.leases.hold("archiver"):
        again = store.leases.holder("archiver")
        assert again is not None
        assert again.stage == ""
    assert reported == ["Too early", "Archiving", "Embedding"]
