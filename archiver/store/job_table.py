"""Jobs: exchanges and sessions to be sent to a language model, with their states and batches."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from msgspec import Struct

from ...core.conversation import Milliseconds
from .database import AMONG, Database, listed
from .observation_table import MODEL_PREFIX, OPTED_OUT, SUMMARY_PREFIX


class JobKind(StrEnum):
    """Subject of a job: an exchange, or a session. For a session, `Job.exchange` is its first exchange."""

    EXCHANGE = "exchange"
    SESSION = "session"


class Job(Struct, frozen=True):
    """Job that a process has claimed.

    Each claim increases `attempts`. Therefore, the result of an earlier claim can be recognised and refused. `digest`
    identifies the text to send, the prompt and the model.
    """

    exchange: int
    digest: str
    attempts: int
    kind: JobKind = JobKind.EXCHANGE


class DeadJob(Struct, frozen=True):
    """Job that failed permanently, with the reason and the last reply."""

    exchange: int
    attempts: int
    reason: str
    reply: str
    kind: JobKind = JobKind.EXCHANGE


class Batch(Struct, frozen=True):
    """Batch of jobs that was sent at the time `at`.

    `name` is the provider's ID, or None until the provider has answered.
    """

    id: int
    token: str
    name: str | None
    at: Milliseconds


_SAME = "exchange = ? AND digest = ? AND attempts = ? AND kind = ?"
_LIVE = f"{_SAME} AND state IN ('leased', 'sent')"


class JobTable:
    """Table of jobs and batches. The caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def candidates(self, extractor: str, *, outdated: bool, before: Milliseconds | None = None) -> list[int]:
        """Return the exchanges that no language model has processed, newest first.

        With `outdated`, return instead the exchanges that were processed with another model or prompt than `extractor`.
        With `before`, return only exchanges of sessions that ended by that time.
        """
        ended = "" if before is None else "AND coalesce(s.ended, s.started, 0) <= ?"
        kind = "e.observed LIKE ? AND e.observed <> ?" if outdated else "e.observed NOT LIKE ? AND e.observed <> ?"
        return self._db.numbers(
            f"""SELECT e.item FROM exchange e JOIN item i ON i.key = e.item JOIN session s ON s.id = i.session
                WHERE {kind} AND e.observed <> ? {ended} ORDER BY coalesce(i.at, 0) DESC, i.key DESC""",
            (f"{MODEL_PREFIX}%", extractor, OPTED_OUT, *(() if before is None else (before,))),
        )

    def candidate_sessions(self, extractor: str, quiet_since: Milliseconds, *, outdated: bool) -> list[int]:
        """Return the sessions that no language model has summarised, newest first.

        Only sessions with at least two exchanges and without activity since `quiet_since` are returned. With
        `outdated`, return instead the sessions whose summary was written with another model or prompt than `extractor`.
        """
        kind = "IN" if outdated else "NOT IN"
        return self._db.numbers(
            f"""SELECT s.id FROM session s JOIN item i ON i.session = s.id JOIN exchange e ON e.item = i.key
                WHERE s.kind = 'main' AND s.id {kind} (
                    SELECT m.session FROM summary m JOIN observation o ON o.item = m.item WHERE o.extractor LIKE ?)
                AND s.id NOT IN (
                    SELECT m.session FROM summary m JOIN observation o ON o.item = m.item WHERE o.extractor = ?)
                GROUP BY s.id HAVING count(*) > 1 AND total(e.observed = ?) = 0
                    AND max(coalesce(e.ended, i.at, 0)) <= ?
                ORDER BY max(coalesce(i.at, 0)) DESC, s.id DESC""",
            (f"{SUMMARY_PREFIX}%", extractor, OPTED_OUT, quiet_since),
        )

    def newest_sessions(self, count: int) -> set[int]:
        """Return the IDs of the `count` sessions that ended last."""
        sql = "SELECT id FROM session ORDER BY coalesce(ended, started, 0) DESC, id DESC LIMIT ?"
        return set(self._db.numbers(sql, (count,)))

    def put(self, exchange: int, digest: str, kind: JobKind = JobKind.EXCHANGE) -> None:
        """Add a job of this kind unless the exchange already has one with the same digest."""
        self._db.run(
            """INSERT INTO job (exchange, kind, digest, state, due) VALUES (?, ?, ?, 'waiting', 0)
               ON CONFLICT (exchange, kind) DO UPDATE SET digest = excluded.digest, state = 'waiting', attempts = 0,
                   due = 0, batch = NULL, outcome = '', refused = 0, reason = '', reply = ''
               WHERE digest <> excluded.digest""",
            (exchange, kind, digest),
        )

    def claim(self, at: Milliseconds, until: Milliseconds, limit: int, sessions: Collection[int] | None) -> list[Job]:
        """Lease due jobs until the time `until`, newest exchanges first.

        With `sessions`, lease only jobs of these sessions. A job with an expired lease is due again, because the
        process that held the lease has stopped.
        """
        chosen = "" if sessions is None else f"AND i.session {AMONG}"
        values = () if sessions is None else (listed(sessions),)
        rows = self._db.rows(
            f"""UPDATE job SET state = 'leased', attempts = attempts + 1, due = ? WHERE (exchange, kind) IN (
                    SELECT j.exchange, j.kind FROM job j JOIN item i ON i.key = j.exchange
                    WHERE j.state IN ('waiting', 'leased') AND j.due <= ? {chosen}
                    ORDER BY coalesce(i.at, 0) DESC, i.key DESC, j.kind LIMIT ?)
                RETURNING exchange, digest, attempts, kind""",
            (until, at, *values, limit),
        )
        return sorted((_job(*row) for row in rows), key=lambda job: -job.exchange)

    def unclaim(self, jobs: Sequence[Job]) -> None:
        """Release claimed jobs before they were attempted, and do not count the attempts."""
        self._db.run_many(
            f"UPDATE job SET state = 'waiting', attempts = attempts - 1, due = 0 WHERE {_LIVE}", map(_fence, jobs)
        )

    def is_claimed(self, job: Job) -> bool:
        """Return whether a claim is still valid: no later claim or result exists for the job."""
        return self._db.one(f"SELECT 1 FROM job WHERE {_LIVE}", _fence(job)) is not None

    def is_answered(self, exchange: int, digest: str, kind: JobKind) -> bool:
        """Return whether a job with this digest has a result, so that the same text need not be sent again."""
        sql = "SELECT 1 FROM job WHERE exchange = ? AND digest = ? AND kind = ? AND state = 'done'"
        return self._db.one(sql, (exchange, digest, kind)) is not None

    def finish(self, job: Job, outcome: str, refused: int) -> None:
        """Record the answer to a job.

        `outcome` classifies the answer, and `refused` counts the facts in it that have no evidence.
        """
        self._db.run(
            f"""UPDATE job SET state = 'done', batch = NULL, outcome = ?, refused = ?, reason = '', reply = ''
                WHERE {_LIVE}""",
            (outcome, refused, *_fence(job)),
        )

    def postpone(self, job: Job, due: Milliseconds, reason: str, reply: str) -> None:
        """Record that a job failed and can be tried again from the time `due` on."""
        self._db.run(
            f"UPDATE job SET state = 'waiting', batch = NULL, due = ?, reason = ?, reply = ? WHERE {_LIVE}",
            (due, reason, reply, *_fence(job)),
        )

    def uncount_attempt(self, job: Job) -> None:
        """Reduce the number of attempts of a job by one. Call this if the provider failed, not the job."""
        self._db.run(f"UPDATE job SET attempts = attempts - 1 WHERE {_SAME}", _fence(job))

    def fail(self, job: Job, reason: str, reply: str) -> None:
        """Record that a job failed permanently."""
        self._db.run(
            f"UPDATE job SET state = 'dead', batch = NULL, reason = ?, reply = ? WHERE {_LIVE}",
            (reason, reply, *_fence(job)),
        )

    def drop(self, job: Job) -> None:
        """Delete a job whose content changed."""
        self._db.run(f"DELETE FROM job WHERE {_LIVE}", _fence(job))

    def dead(self) -> list[DeadJob]:
        """Return the permanently failed jobs, newest exchange first."""
        rows = self._db.rows(
            "SELECT exchange, attempts, reason, reply, kind FROM job WHERE state = 'dead' ORDER BY exchange DESC, kind"
        )
        return [DeadJob(key, attempts, reason, reply, JobKind(kind)) for key, attempts, reason, reply, kind in rows]

    def revive(self) -> int:
        """Schedule all permanently failed jobs again, and return the number of jobs."""
        count = self._db.number("SELECT count(*) FROM job WHERE state = 'dead'")
        self._db.run("UPDATE job SET state = 'waiting', attempts = 0, due = 0 WHERE state = 'dead'")
        return count

    def states(self) -> dict[str, int]:
        """Count the jobs by state. Answered jobs are counted by the outcome of their answer instead."""
        sql = "SELECT CASE state WHEN 'done' THEN outcome ELSE state END, count(*) FROM job GROUP BY 1 ORDER BY 1"
        return dict(self._db.rows(sql))

    def refused(self) -> int:
        """Count the facts in all answers that were refused because they have no evidence."""
        return self._db.number("SELECT sum(refused) FROM job")

    def due(self, at: Milliseconds) -> int:
        """Count the jobs that can be claimed at the time `at`."""
        return self._db.number("SELECT count(*) FROM job WHERE state IN ('waiting', 'leased') AND due <= ?", (at,))

    def insert_batch(self, token: str, at: Milliseconds, jobs: Sequence[Job]) -> Batch:
        """Record a batch before it is sent. The provider assigns its ID later (see `name_batch`)."""
        number = self._db.run("INSERT INTO batch (token, at, state) VALUES (?, ?, 'intended')", (token, at))
        self._db.run_many(
            f"UPDATE job SET state = 'sent', batch = ? WHERE {_LIVE}", [(number, *_fence(job)) for job in jobs]
        )
        return Batch(number, token, None, at)

    def name_batch(self, batch: int, name: str) -> None:
        """Record the provider's ID of a batch."""
        self._db.run("UPDATE batch SET name = ?, state = 'sent' WHERE id = ?", (name, batch))

    def end_batch(self, batch: int) -> None:
        """Record that all results of a batch were stored, or that the batch has no results."""
        self._db.run("UPDATE batch SET state = 'ended' WHERE id = ?", (batch,))

    def open_batches(self) -> list[Batch]:
        """Return the batches whose results are not stored yet, oldest first."""
        rows = self._db.rows("SELECT id, token, name, at FROM batch WHERE state <> 'ended' ORDER BY id")
        return [Batch(*row) for row in rows]

    def batch_names(self) -> set[str]:
        """Return the IDs that the provider assigned to batches."""
        return {name for (name,) in self._db.rows("SELECT name FROM batch WHERE name IS NOT NULL")}

    def of_batch(self, batch: int) -> list[Job]:
        """Return the jobs of a batch that have no result yet."""
        rows = self._db.rows(
            """SELECT exchange, digest, attempts, kind FROM job WHERE batch = ? AND state = 'sent'
               ORDER BY exchange, kind""",
            (batch,),
        )
        return [_job(*row) for row in rows]


def _job(exchange: int, digest: str, attempts: int, kind: str) -> Job:
    return Job(exchange, digest, attempts, JobKind(kind))


def _fence(job: Job) -> tuple[int, str, int, str]:
    return job.exchange, job.digest, job.attempts, job.kind
