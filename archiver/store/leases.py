"""Leases: who may write the index, fenced by an epoch that only rises."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...core.clock import now
from ...core.errors import LeaseHeld
from .database import Database


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write, as long as no later epoch was given out."""

    name: str
    epoch: int


class Leases:
    """Gives out leases. The file lock tells the living from the dead; the row's epoch fences the sleeping."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @contextmanager
    def hold(self, name: str) -> Generator[Lease]:
        """Hold the lease while the block runs; raises `LeaseHeld` at once when another process has it."""
        path = self._db.path.with_name(f"{name}.lock")
        with _locked(path, name):
            yield self._begin(name)

    def check(self, lease: Lease) -> None:
        """Raises `LeaseHeld` when somebody took the lease after us, as can happen where file locks do not work."""
        if self._db.number("SELECT epoch FROM lease WHERE name = ?", (lease.name,)) != lease.epoch:
            raise LeaseHeld(f"another Palaver took the {lease.name} lease", hint="Wait until it is done.")

    def _begin(self, name: str) -> Lease:
        with self._db.transaction():
            self._db.run(
                """INSERT INTO lease (name, holder, epoch, at) VALUES (?, ?, 1, ?)
                   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = epoch + 1, at = excluded.at""",
                (name, f"process {os.getpid()}", now()),
            )
            return Lease(name, self._db.number("SELECT epoch FROM lease WHERE name = ?", (name,)))


@contextmanager
def _locked(path: Path, name: str) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeld(f"another Palaver holds the {name} lease", hint="Wait until it is done.") from None
        yield
    finally:
        os.close(descriptor)
