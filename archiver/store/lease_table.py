"""Tables for background work and sessions: leases, stages, injected texts, and visits to projects.

- A lease is an exclusive right to archive, extract, watch, back up or call a language model for extraction. Each
  holder gets a higher epoch, so that writes of a former holder can be refused. The lock file of a lease also contains
  the progress of its holder, for other processes to show.
- A stage of background work, such as `backup`, has the times of its last success and its last problem.
- An injection is a text that a hook added to a session.
- A visit is the last time at which an agent called the tool `context.orient` for a project.
"""

import fcntl
import json
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import Milliseconds, now, show_minute
from ...core.errors import LeaseHeld, PalaverError, StoreError
from ...core.home import Home
from ...core.hooks import HookEvent
from ...core.reports import Holder, Injection, InjectionTotal, StageState
from ...core.runtime import Reporter, silent
from .database import Database, PathSeal


class InjectionTable:
    """Table of injections, in the order in which they were made."""

    def __init__(self, database: Database) -> None:
        self._db, self._names = database, PathSeal(database)

    def add(self, injection: Injection) -> None:
        """Record an injection."""
        self._db.run(
            "INSERT INTO injection (at, event, session_id, project, tokens, items) VALUES (?, ?, ?, ?, ?, ?)",
            (
                injection.at,
                injection.event,
                self._names.name(injection.session_id),
                self._names.name(injection.project),
                injection.tokens,
                json.dumps(injection.items),
            ),
        )

    def of_session(self, session_id: str) -> list[Injection]:
        """Return the injections into a session, oldest first."""
        session_id = self._names.name(session_id)
        rows = self._db.rows(
            "SELECT at, event, project, tokens, items FROM injection WHERE session_id = ? ORDER BY id", (session_id,)
        )
        return [
            Injection(at, HookEvent(event), session_id, project, tokens, tuple(json.loads(items)))
            for at, event, project, tokens, items in rows
        ]

    def totals(self, since: Milliseconds = 0, project: str | None = None) -> list[InjectionTotal]:
        """Return the totals of each event since `since`, of one project or of all projects."""
        rows = self._db.rows(
            """SELECT event, count(*), count(DISTINCT session_id), sum(tokens) FROM injection
               WHERE at >= ?1 AND (?2 IS NULL OR project = ?2) GROUP BY event ORDER BY event""",
            (since, project and self._names.name(project)),
        )
        return [InjectionTotal(*row) for row in rows]


ARCHIVER: Final = "archiver"
"""Lease for ingesting transcripts and changing raw copies."""
LEARNER: Final = "learner"
"""Lease for extracting observations and computing vectors."""
MODEL: Final = "model"
"""Lease for sending sessions to a language model."""
WATCHER: Final = "watch"
"""Lease that the background archiver holds while it runs."""
TEAM: Final = "team"
"""Lease of the process that sends to the team."""
BACKUP: Final = "backup"
"""Lease for copying the database."""
_RETRY_SECONDS: Final = 0.05
"""Seconds between two attempts to acquire a lease that another process holds."""
_PROGRESS_MAX: Final = 200
"""Number of bytes to read of the progress in a lock file."""


class Lease(Struct, frozen=True):
    """Right to write, valid until a later epoch is issued."""

    name: str
    epoch: int


class LeaseTable:
    """Table of leases.

    A file lock shows whether the holder is alive. The epoch in the table blocks writes of a former holder that was
    suspended.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._descriptors: dict[str, int] = {}
        """Descriptor of the lock file of each lease that this process holds."""

    @contextmanager
    def hold(self, name: str, patience: float = 0.0) -> Generator[Lease]:
        """Hold a lease while the block runs.

        Raises:
            LeaseHeld: Another process still holds the lease after `patience` seconds.
            StoreReadOnly: The database cannot be written.
            StoreError: The lock file cannot be opened.
        """
        deadline = time.monotonic() + patience
        descriptor = self._open(name)
        try:
            while not _locked(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    raise self._held(name)
                time.sleep(_RETRY_SECONDS)
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            self._descriptors[name] = descriptor
            yield self._begin(name)
        finally:
            self._descriptors.pop(name, None)
            os.close(descriptor)

    @contextmanager
    def keep_free(self, name: str, patience: float = 0.0) -> Generator[None]:
        """Let no process acquire a lease while the block runs. Nothing is written.

        Without a lock file, the lease was never held, and a process that acquires it is not noticed.

        Raises:
            LeaseHeld: A process still holds the lease after `patience` seconds.
        """
        deadline = time.monotonic() + patience
        try:
            descriptor = os.open(self._lock(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            while not _locked(descriptor, fcntl.LOCK_SH):
                if time.monotonic() >= deadline:
                    raise self._held(name)
                time.sleep(_RETRY_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def reporter(self, name: str, report: Reporter = silent) -> Reporter:
        """Return a reporter that calls `report`, and records the progress for `holder` while the lease is held."""

        def record(stage: str, done: int, total: int) -> None:
            report(stage, done, total)
            descriptor = self._descriptors.get(name)
            if descriptor is not None:
                with suppress(OSError):  # A full disk must not end the run.
                    os.pwrite(descriptor, f"{stage}\t{done}\t{total}\n".encode(), 0)

        return record

    def holder(self, name: str) -> Holder | None:
        """Return the current holder of a lease with its progress, or None if nobody holds it."""
        try:
            descriptor = os.open(self._lock(name), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _locked(descriptor, fcntl.LOCK_SH):
                return None
            return replace(self._last(name), **_progress(os.pread(descriptor, _PROGRESS_MAX, 0)))
        finally:
            os.close(descriptor)

    def check(self, lease: Lease) -> None:
        """Raise `LeaseHeld` if another process acquired the lease later.

        Two processes can hold the same lease only on file systems without working file locks.
        """
        if self._db.number("SELECT epoch FROM lease WHERE name = ?", (lease.name,)) != lease.epoch:
            raise LeaseHeld(
                f"another Palaver process acquired the {lease.name} lease", hint="Wait until it has finished."
            )

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
        return Holder(*row) if row else Holder("another process", now())

    def _held(self, name: str) -> LeaseHeld:
        holder = self._last(name)
        since = show_minute(holder.since)
        return LeaseHeld(f"{holder.who} has held the {name} lease since {since}", hint="Wait until it has finished.")

    def _begin(self, name: str) -> Lease:
        with self._db.transaction():
            self._db.run(
                """INSERT INTO lease (name, holder, epoch, at) VALUES (?, ?, 1, ?)
                   ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = epoch + 1, at = excluded.at""",
                (name, f"process {os.getpid()}", now()),
            )
            return Lease(name, self._db.number("SELECT epoch FROM lease WHERE name = ?", (name,)))


def _progress(content: bytes) -> dict[str, Any]:
    """Return the stage, the finished steps and all steps that a lock file contains, or nothing."""
    # A shorter text leaves the end of a longer one behind, so only the first line counts.
    stage, *steps = content.partition(b"\n")[0].decode("ascii", "replace").split("\t")
    if len(steps) != 2 or not all(map(str.isdecimal, steps)):
        return {}
    return {"stage": stage, "done": int(steps[0]), "total": int(steps[1])}


def _locked(descriptor: int, kind: int) -> bool:
    """Try to lock a file without waiting. Return True on success. Closing the descriptor releases the lock."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class StageTable:
    """Table of stages, by name."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def note(self, name: str, problems: Sequence[PalaverError] = ()) -> None:
        """Record that a stage succeeded or, if there are `problems`, that it failed.

        The recorded times keep the order of the calls, even if the clock was set back.
        """
        if not problems:
            self._db.run(
                """INSERT INTO stage (name, succeeded) VALUES (?, ?)
                   ON CONFLICT (name) DO UPDATE SET succeeded = excluded.succeeded,
                       failed = min(failed, excluded.succeeded)""",
                (name, now()),
            )
            return
        first, *others = map(str, problems)
        self._db.run(
            """INSERT INTO stage (name, problem, failed) VALUES (?, ?, ?)
               ON CONFLICT (name) DO UPDATE SET problem = excluded.problem, failed = excluded.failed,
                   succeeded = min(succeeded, excluded.failed - 1)""",
            (name, f"{first} (and {len(others)} more)" if others else first, now()),
        )

    def all(self) -> list[StageState]:
        """Return the state of every stage that has run, sorted by name."""
        rows = self._db.rows("SELECT name, succeeded, problem, failed FROM stage ORDER BY name")
        return [StageState(*row) for row in rows]


class VisitTable:
    """Table of the last visit to each project. The key is the identity of the project."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def last(self, project: str) -> Milliseconds | None:
        """Return the time of the last visit to the project with this identity, or None if there was none."""
        row = self._db.one("SELECT at FROM visit WHERE project = ?", (project,))
        return row[0] if row else None

    def record(self, project: str, at: Milliseconds) -> None:
        """Record a visit at the time `at`. If a later time is already stored, keep it."""
        self._db.run(
            "INSERT INTO visit VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET at = max(at, excluded.at)",
            (project, at),
        )
