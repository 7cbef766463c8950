"""The queue: who asks about which exchange, how often it is tried, and when it is given up.

A job is leased before anything is sent. When its process dies the lease runs out and the job is claimed anew; whoever
held it before has a lower number of attempts and can no longer finish it.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random

from ...archiver.store import Job, Store
from ...core.clock import now
from ...core.conversation import Milliseconds
from .errors import ExtractionError, ModelBusy, ReplyInvalid, RequestRefused

ATTEMPTS_MAX = 4
"""Calls that one exchange may cost before it is given up."""
LEASE_MS = 600_000
"""Longer than any call may last."""
_BACKOFF_MS = 30_000
_BACKOFF_MAX_MS = 3_600_000


class Queue:
    """Jobs of one store. `put` and `claim` are transactions; what settles a job is called inside one."""

    def __init__(self, store: Store, clock: Callable[[], Milliseconds] = now, chance: Random | None = None) -> None:
        self._store, self._clock = store, clock
        self._chance = chance or Random()  # noqa: S311 - spreads retries, guards nothing

    def put(self, digests: dict[int, str]) -> None:
        """Ask for these exchanges; what was asked in the same words before is not asked again."""
        with self._store.transaction():
            for exchange, digest in digests.items():
                self._store.jobs.put(exchange, digest)

    def claim(self, limit: int, sessions: Collection[int] | None = None) -> list[Job]:
        """Lease up to `limit` jobs that are due, newest first; those that were tried too often are given up."""
        at = self._clock()
        with self._store.transaction():
            claimed = self._store.jobs.claim(at, at + LEASE_MS, limit, sessions)
            for job in claimed:
                if job.attempts > ATTEMPTS_MAX:
                    self._store.jobs.bury(job, "each time the process ended before it had an answer", "")
        return [job for job in claimed if job.attempts <= ATTEMPTS_MAX]

    def unclaim(self, jobs: Sequence[Job]) -> None:
        """Give back jobs that nothing was tried with."""
        with self._store.transaction():
            self._store.jobs.unclaim(jobs)

    def fail(self, job: Job, error: ExtractionError) -> bool:
        """Try again later, or give up when that is of no use; whether it was given up."""
        if isinstance(error, ModelBusy) and not error.unsure:
            # The provider's trouble is not the request's: however long it lasts, nothing is given up for it.
            self._store.jobs.postpone(job, self._clock() + self._delay(job, error), str(error), "")
            self._store.jobs.refund(job)
            return False
        reply = error.reply if isinstance(error, ReplyInvalid) else ""
        if isinstance(error, RequestRefused) or job.attempts >= ATTEMPTS_MAX:
            self._store.jobs.bury(job, str(error), reply)
            return True
        self._store.jobs.postpone(job, self._clock() + self._delay(job, error), str(error), reply)
        return False

    def _delay(self, job: Job, error: ExtractionError) -> Milliseconds:
        """Doubled with each attempt and spread by half, and never less than the provider asked for."""
        longest = min(_BACKOFF_MS << job.attempts - 1, _BACKOFF_MAX_MS)
        asked = error.after if isinstance(error, ModelBusy) and error.after else 0
        return max(round(longest * self._chance.uniform(0.5, 1)), round(asked * 1000))
