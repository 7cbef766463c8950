"""The job queue manages leases, retries and dead letters."""

from pathlib import Path
from random import Random

import pytest

from palaver.archiver.store import Store
from palaver.observe.llm.job_queue import ATTEMPTS_MAX, LEASE_MS, JobQueue
from palaver.observe.llm.model_errors import ModelBusy, ReplyInvalid, RequestRefused

from ...search.history import History, Said


class Clock:
    """Clock that tests advance."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with three exchanges."""
    history = History(tmp_path)
    history.say("one", *(Said(f"question {number}", at=number) for number in range(3)))
    return history.store


@pytest.fixture
def queue(store: Store, clock: Clock) -> JobQueue:
    queue = JobQueue(store, clock, Random(7))
    queue.put({1: "a", 2: "b", 3: "c"})
    return queue


def test_newest_job_is_leased_first(queue: JobQueue) -> None:
    """Jobs are leased newest first, and a leased job is not leased twice."""
    assert [job.exchange for job in queue.claim(2)] == [3, 2]
    assert [job.exchange for job in queue.claim(2)] == [1]
    assert queue.claim(2) == []


def test_expired_lease_is_claimed_again(queue: JobQueue, store: Store, clock: Clock) -> None:
    """After the lease of a job expires, only the process that claims the job next can finish it."""
    [lost] = queue.claim(1)
    clock.now += LEASE_MS
    [again] = queue.claim(1)

    assert (again.exchange, again.attempts) == (lost.exchange, 2)
    assert not store.jobs.is_claimed(lost)
    store.jobs.finish(lost, "learned", 0)
    assert store.jobs.is_claimed(again)


def test_exhausted_jobs_become_dead_letters(queue: JobQueue, store: Store, clock: Clock) -> None:
    """A job that never finishes becomes a dead letter with a reason."""
    for _ in range(ATTEMPTS_MAX):
        assert len(queue.claim(3)) == 3
        clock.now += LEASE_MS

    assert queue.claim(3) == []
    assert len(store.jobs.dead()) == 3
    assert all("returned a reply" in dead.reason for dead in store.jobs.dead())


def test_equal_request_is_not_queued_again(queue: JobQueue, store: Store) -> None:
    """An exchange is queued again only if its content, the prompt or the model changes."""
    for job in queue.claim(3):
        store.jobs.fail(job, "why", "reply")
    queue.put({1: "a", 2: "other"})

    assert [(job.exchange, job.digest, job.attempts) for job in queue.claim(3)] == [(2, "other", 1)]


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS_MAX))
def test_backoff_doubles_with_jitter(queue: JobQueue, clock: Clock, attempt: int) -> None:
    """Each delay is between 50 % and 100 % of a maximum that doubles with every attempt."""
    [job] = queue.claim(1)
    for _ in range(attempt - 1):
        queue.fail(job, ReplyInvalid("no", "raw"))
        clock.now += 3_600_000
        [job] = queue.claim(1)
    queue.fail(job, ReplyInvalid("no", "raw"))
    began, longest = clock.now, 30_000 << attempt - 1

    clock.now = began + longest // 2 - 1
    assert job.exchange not in [each.exchange for each in queue.claim(3)]
    clock.now = began + longest
    assert job.exchange in [each.exchange for each in queue.claim(3)]


def test_delay_is_at_least_retry_after(queue: JobQueue, clock: Clock) -> None:
    """A delay is never shorter than the retry-after time of the provider."""
    [job] = queue.claim(1)
    queue.fail(job, ModelBusy("busy", after=500))
    clock.now += 499_999
    assert job.exchange not in [each.exchange for each in queue.claim(3)]
    clock.now += 1
    assert [each.exchange for each in queue.claim(3)] == [job.exchange]


def test_a_busy_provider_uses_no_attempt(queue: JobQueue, store: Store, clock: Clock) -> None:
    """Temporary failures of the provider never create a dead letter."""
    for _ in range(3 * ATTEMPTS_MAX):
        for job in queue.claim(3):
            assert not queue.fail(job, ModelBusy("busy"))
        clock.now += 3_600_000

    assert store.jobs.dead() == []
    assert [job.attempts for job in queue.claim(3)] == [1, 1, 1]


def test_rejected_request_becomes_a_dead_letter(queue: JobQueue, store: Store) -> None:
    """A request that the provider rejects is not retried."""
    [job] = queue.claim(1)

    assert queue.fail(job, RequestRefused("no", 400))
    assert [dead.exchange for dead in store.jobs.dead()] == [job.exchange]


def test_unclaiming_uses_no_attempt(queue: JobQueue) -> None:
    """A job that is returned unprocessed, for example because the budget is exhausted, uses no attempt."""
    jobs = queue.claim(3)
    queue.unclaim(jobs)

    assert [(job.exchange, job.attempts) for job in queue.claim(3)] == [(3, 1), (2, 1), (1, 1)]
