"""Jobs: which exchanges a language model shall look at, how far each is, and the batches they were sent in."""

from collections.abc import Collection, Sequence
from typing import cast

from msgspec import Struct

from ...core.conversation import Milliseconds
from .database import AMONG, Database, Row, listed
from .observation_table import MODEL_PREFIX, OPTED_OUT


class Job(Struct, frozen=True):
    """A job as it was claimed. `attempts` is the fence: whoever claims it later has a higher one.

    `digest` is of what is asked: content, prompt and model.
    """

    exchange: int
    digest: str
    attempts: int


class DeadJob(Struct, frozen=True):
    """A job that was given up, why, and the last reply as it came."""

    exchange: int
    attempts: int
    reason: str
    reply: str


class Batch(Struct, frozen=True):
    """Jobs sent together since `at`. `name` is the provider's, None while nobody heard its answer."""

    id: int
    token: str
    name: str | None
    at: Milliseconds


_LIVE = "exchange = ? AND digest = ? AND attempts = ? AND state IN ('leased', 'sent')"


class JobTable:
    """Reads and writes jobs. Every method is one statement or two; the caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def candidates(self, extractor: str, *, outdated: bool) -> list[int]:
        """Exchanges that this extractor has not looked at, newest first.

        With `outdated` only those that another prompt or model has looked at, else only those that none has.
        """
        kind = "e.observed LIKE ? AND e.observed <> ?" if outdated else "e.observed NOT LIKE ? AND e.observed <> ?"
        rows = self._db.rows(
            f"""SELECT e.item FROM exchange e JOIN item i ON i.key = e.item
                WHERE {kind} AND e.observed <> '{OPTED_OUT}' ORDER BY coalesce(i.at, 0) DESC, i.key DESC""",
            (f"{MODEL_PREFIX}%", extractor),
        )
        return [cast(int, row[0]) for row in rows]

    def newest_sessions(self, count: int) -> set[int]:
        """The sessions that ended last."""
        rows = self._db.rows(
            "SELECT id FROM session ORDER BY coalesce(ended, started, 0) DESC, id DESC LIMIT ?", (count,)
        )
        return {cast(int, row[0]) for row in rows}

    def put(self, exchange: int, digest: str) -> None:
        """Ask for this exchange. What was asked in the same words before is not asked again."""
        self._db.run(
            """INSERT INTO job (exchange, digest, state, due) VALUES (?, ?, 'waiting', 0)
               ON CONFLICT (exchange) DO UPDATE SET digest = excluded.digest, state = 'waiting', attempts = 0, due = 0,
                   batch = NULL, outcome = '', refused = 0, reason = '', reply = ''
               WHERE digest <> excluded.digest""",
            (exchange, digest),
        )

    def claim(self, at: Milliseconds, until: Milliseconds, limit: int, sessions: Collection[int] | None) -> list[Job]:
        """Lease jobs that are due, those of the newest exchanges first; only of these sessions unless None.

        A job whose lease ran out is due too: whoever held it is gone.
        """
        chosen = "" if sessions is None else f"AND i.session {AMONG}"
        values = () if sessions is None else (listed(sessions),)
        rows = self._db.rows(
            f"""UPDATE job SET state = 'leased', attempts = attempts + 1, due = ? WHERE exchange IN (
                    SELECT j.exchange FROM job j JOIN item i ON i.key = j.exchange
                    WHERE j.state IN ('waiting', 'leased') AND j.due <= ? {chosen}
                    ORDER BY coalesce(i.at, 0) DESC, i.key DESC LIMIT ?)
                RETURNING exchange, digest, attempts""",
            (until, at, *values, limit),
        )
        return sorted(map(_job, rows), key=lambda job: -job.exchange)

    def unclaim(self, jobs: Sequence[Job]) -> None:
        """Give back jobs that nothing was tried with."""
        self._db.run_many(
            f"UPDATE job SET state = 'waiting', attempts = attempts - 1, due = 0 WHERE {_LIVE}",
            [(job.exchange, job.digest, job.attempts) for job in jobs],
        )

    def live(self, job: Job) -> bool:
        """Whether it is still ours to finish."""
        return self._db.one(f"SELECT 1 FROM job WHERE {_LIVE}", _fence(job)) is not None

    def finish(self, job: Job, outcome: str, refused: int) -> None:
        """It is answered: `outcome` says how, `refused` counts facts that had no proof."""
        self._db.run(
            f"""UPDATE job SET state = 'done', batch = NULL, outcome = ?, refused = ?, reason = '', reply = ''
                WHERE {_LIVE}""",
            (outcome, refused, *_fence(job)),
        )

    def postpone(self, job: Job, due: Milliseconds, reason: str, reply: str) -> None:
        """It failed; try again, not before `due`."""
        self._db.run(
            f"UPDATE job SET state = 'waiting', batch = NULL, due = ?, reason = ?, reply = ? WHERE {_LIVE}",
            (due, reason, reply, *_fence(job)),
        )

    def refund(self, job: Job) -> None:
        """The attempt does not count."""
        self._db.run(
            "UPDATE job SET attempts = attempts - 1 WHERE exchange = ? AND digest = ? AND attempts = ?", _fence(job)
        )

    def bury(self, job: Job, reason: str, reply: str) -> None:
        """It failed for good."""
        self._db.run(
            f"UPDATE job SET state = 'dead', batch = NULL, reason = ?, reply = ? WHERE {_LIVE}",
            (reason, reply, *_fence(job)),
        )

    def drop(self, job: Job) -> None:
        """Forget it: what it asked about is no longer what stands there."""
        self._db.run(f"DELETE FROM job WHERE {_LIVE}", _fence(job))

    def dead(self) -> list[DeadJob]:
        """What was given up, newest exchange first."""
        rows = self._db.rows(
            "SELECT exchange, attempts, reason, reply FROM job WHERE state = 'dead' ORDER BY exchange DESC"
        )
        return [DeadJob(cast(int, row[0]), cast(int, row[1]), str(row[2]), str(row[3])) for row in rows]

    def revive(self) -> int:
        """Let everything that was given up be tried again; how many there were."""
        count = self._db.number("SELECT count(*) FROM job WHERE state = 'dead'")
        self._db.run("UPDATE job SET state = 'waiting', attempts = 0, due = 0 WHERE state = 'dead'")
        return count

    def states(self) -> dict[str, int]:
        """How many jobs are in each state; answered ones by how they were answered."""
        rows = self._db.rows(
            "SELECT CASE state WHEN 'done' THEN outcome ELSE state END, count(*) FROM job GROUP BY 1 ORDER BY 1"
        )
        return {str(name): cast(int, count) for name, count in rows}

    def refused(self) -> int:
        """Facts of all answers that had no proof."""
        return self._db.number("SELECT sum(refused) FROM job")

    def due(self, at: Milliseconds) -> int:
        """How many jobs could be claimed now."""
        return self._db.number("SELECT count(*) FROM job WHERE state IN ('waiting', 'leased') AND due <= ?", (at,))

    def intend(self, token: str, at: Milliseconds, jobs: Sequence[Job]) -> Batch:
        """These jobs are about to be sent as a batch; its provider's name is not known yet."""
        number = self._db.run("INSERT INTO batch (token, at, state) VALUES (?, ?, 'intended')", (token, at))
        self._db.run_many(
            f"UPDATE job SET state = 'sent', batch = ? WHERE {_LIVE}",
            [(number, job.exchange, job.digest, job.attempts) for job in jobs],
        )
        return Batch(number, token, None, at)

    def name_batch(self, batch: int, name: str) -> None:
        """The provider took the batch and calls it so."""
        self._db.run("UPDATE batch SET name = ?, state = 'sent' WHERE id = ?", (name, batch))

    def end_batch(self, batch: int) -> None:
        """Every result was taken over, or there are none."""
        self._db.run("UPDATE batch SET state = 'ended' WHERE id = ?", (batch,))

    def open_batches(self) -> list[Batch]:
        """Batches whose results are still to come, oldest first."""
        rows = self._db.rows("SELECT id, token, name, at FROM batch WHERE state <> 'ended' ORDER BY id")
        return [Batch(cast(int, row[0]), str(row[1]), cast("str | None", row[2]), cast(int, row[3])) for row in rows]

    def batch_names(self) -> set[str]:
        """What the provider calls every batch of ours that it told us of."""
        return {str(row[0]) for row in self._db.rows("SELECT name FROM batch WHERE name IS NOT NULL")}

    def of_batch(self, batch: int) -> list[Job]:
        """The jobs of a batch that have no result yet."""
        rows = self._db.rows(
            "SELECT exchange, digest, attempts FROM job WHERE batch = ? AND state = 'sent' ORDER BY exchange", (batch,)
        )
        return [_job(row) for row in rows]


def _fence(job: Job) -> tuple[int, str, int]:
    return job.exchange, job.digest, job.attempts


def _job(row: Row) -> Job:
    return Job(cast(int, row[0]), str(row[1]), cast(int, row[2]))
