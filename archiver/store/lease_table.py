"""Leases: which process may take up, learn or watch right now, fenced by an epoch that only rises."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.clock import now, show_minute
from ...core.errors import LeaseHeld, StoreError
from ...core.home import Home
from ...core.report import Holder
from .database import Database

ARCHIVER: Final = "archiver"
"""Lease for ingesting transcripts and for changing copies."""
LEARNER: Final = "learner"
"""The lease under which what was taken up is observed and embedded."""
WATCHER: Final = "watch"
"""The lease that the background archiver has for as long as it runs."""
BACKUP: Final = "backup"
"""The lease under which the database is copied."""
_AGAIN: Final = 0.05
"""Seconds between two attempts to get a lease that another process has."""


class Lease(Struct, frozen=True):
    """The right to write, as long as no later epoch was given out."""

    name: str
    epoch: int


class LeaseTable:
    """Gives out leases. The file lock tells the living from the dead; the row's epoch fences the sleeping."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @contextmanager
    def hold(self, name: str, patience: float = 0.0) -> Generator[Lease]:
        """Hold the lease while the block runs.

        Raises `LeaseHeld` when another process has it and does not give it back within `patience` seconds,
        `StoreReadOnly` where nothing may be written, and `StoreError` where its lock cannot be opened.
        """
        deadline = time.monotonic() + patience
        descriptor = self._open(name)
        try:
            while not _locked(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    raise self._held(name)
                time.sleep(_AGAIN)
            yield self._begin(name)
        finally:
            os.close(descriptor)

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease at this moment; None when nobody does."""
        try:
            descriptor = os.open(self._lock(name), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return None if _locked(descriptor, fcntl.LOCK_SH) else self._last(name)
        finally:
            os.close(descriptor)

    def check(self, lease: Lease) -> None:
        """Raises `LeaseHeld` when somebody took the lease after us, as can happen where file locks do not work."""
        if self._db.number("SELECT epoch FROM lease WHERE name = ?", (lease.name,)) != lease.epoch:
            raise LeaseHeld(f"another Palaver took the {lease.name} lease", hint="Wait until it is done.")

    def _open(self, name: str) -> int:
        try:
            return os.open(self._lock(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            Home(self._db.path.parent).check_writable()
            hint = "Check free space and permissions, then try again."
            raise StoreError(f"{self._lock(name)}: {error.strerror}", hint=hint) from error

    def _lock(self, name: str) -> Path:
        return self._db.path.with_name(f"{name}.lock")

    def _last(self, name: str) -> Holder:
        row = self._db.one("SELECT holder, at FROM lease WHERE name = ?", (name,))
        return Holder(str(row[0]), int(str(row[1]))) if row else Holder("another process", now())

    def _held(self, name: str) -> LeaseHeld:
        holder = self._last(name)
        since = show_minute(holder.since)
        return LeaseHeld(f"{holder.who} holds the {name} lease since {since} UTC", hint="Wait until it is done.")

    def _begin(self, name: str) -> Lease:
        with self._db.transaction():
            self._db.run(
                """INSERT INTO lease (name, holder, epoch, at) VALUES (?, ?, 1, ?)
                   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = epoch + 1, at = excluded.at""",
                (name, f"process {os.getpid()}", now()),
            )
            return Lease(name, self._db.number("SELECT epoch FROM lease WHERE name = ?", (name,)))


def _locked(descriptor: int, kind: int) -> bool:
    """Whether the lock could be taken at once; closing the descriptor gives it back."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
