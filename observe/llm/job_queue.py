"""Job queue with leases, retries with exponential backoff, and dead letters.

A job is leased before its request is sent. If the process dies, the lease expires and another process claims the job.
The attempt number prevents the previous holder from finishing it.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final

from ...archiver.store import Job, JobKind, Store
from ...core.clock import now
from ...core.conversation import Milliseconds
from .model_errors import ExtractionError, ModelBusy, ReplyInvalid, RequestRefused

ATTEMPTS_MAX: Final = 4
"""Maximum number of calls for one job. If the last call fails, the job becomes a dead letter."""
LEASE_MS: Final = 600_000
"""Duration of a lease, longer than any call."""
SESSION: Final = "session"
"""Purpose under which the ledger lists the calls for sessions."""
_BACKOFF_MS: Final = 30_000
_BACKOFF_MAX_MS: Final = 3_600_000


class JobQueue:
    """Jobs of one store. `put`, `claim` and `unclaim` open a transaction, and `fail` uses the caller's transaction."""

    def __init__(self, store: Store, clock: Callable[[], Milliseconds] = now, random: Random | None = None) -> None:
        self._store, self._clock = store, clock
        self._random = random or Random()  # noqa: S311 - spreads retries, guards nothing

    def put(self, digests: dict[int, str], kind: JobKind = JobKind.EXCHANGE) -> None:
        """Queue a job for each exchange. `digests` maps exchanges to the digests of their requests.

        A request that is already queued is not queued again.
        """
        with self._store.transaction():
            for exchange, digest in digests.items():
                self._store.jobs.put(exchange, digest, kind)

    def claim(self, limit: int, sessions: Collection[int] | None = None) -> list[Job]:
        """Lease up to `limit` due jobs, newest exchange first. Jobs without remaining attempts become dead letters."""
        at = self._clock()
        with self._store.transaction():
            claimed = self._store.jobs.claim(at, at + LEASE_MS, limit, sessions)
            for job in claimed:
                if job.attempts > ATTEMPTS_MAX:
                    self._store.jobs.fail(job, "no attempt returned a reply", "")
        return [job for job in claimed if job.attempts <= ATTEMPTS_MAX]

    def unclaim(self, jobs: Sequence[Job]) -> None:
        """Put unused jobs back into the queue."""
        with self._store.transaction():
            self._store.jobs.unclaim(jobs)

    def fail(self, job: Job, error: ExtractionError) -> bool:
        """Schedule a retry of a failed job, or make the job a dead letter. Return True for a dead letter."""
        if isinstance(error, ModelBusy) and not error.maybe_charged:
            # The provider failed, not the request, so retry without counting the attempt.
            self._store.jobs.postpone(job, self._clock() + self._delay(job, error), str(error), "")
            self._store.jobs.uncount_attempt(job)
            return False
        reply = error.reply if isinstance(error, ReplyInvalid) else ""
        if isinstance(error, RequestRefused) or job.attempts >= ATTEMPTS_MAX:
            self._store.jobs.fail(job, str(error), reply)
            return True
        self._store.jobs.postpone(job, self._clock() + self._delay(job, error), str(error), reply)
        return False

    def _delay(self, job: Job, error: ExtractionError) -> Milliseconds:
        """Return the delay before a retry.

        It doubles with each attempt, varies by 50 %, and is not shorter than the provider's requested delay.
        """
        longest = min(_BACKOFF_MS << job.attempts - 1, _BACKOFF_MAX_MS)
        asked = error.after if isinstance(error, ModelBusy) and error.after else 0
        return max(round(longest * self._random.uniform(0.5, 1)), round(asked * 1000))


def reason_of(job: Job, reason: str) -> str:
    """Return the purpose under which the ledger lists the call of a job.

    For a job of an exchange, this is `reason`.
    """
    return SESSION if job.kind is JobKind.SESSION else reason
