"""Who may finish a job, when it is tried again, and when it is given up?"""

from pathlib import Path
from random import Random

import pytest

from palaver.archiver.store import Store
from palaver.observe.llm.job_queue import ATTEMPTS_MAX, LEASE_MS, JobQueue
from palaver.observe.llm.model_errors import ModelBusy, ReplyInvalid, RequestRefused

from ...search.history import History, Said


class Clock:
    """A clock that stands until it is told."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three exchanges."""
    history = History(tmp_path)
    history.say("one", *(Said(f"question {number}", at=number) for number in range(3)))
    return history.store


@pytest.fixture
def queue(store: Store, clock: Clock) -> JobQueue:
    queue = JobQueue(store, clock, Random(7))
    queue.put({1: "a", 2: "b", 3: "c"})
    return queue


def test_the_newest_comes_first_and_only_once(queue: JobQueue) -> None:
    """A leased job is nobody else's."""
    assert [job.exchange for job in queue.claim(2)] == [3, 2]
    assert [job.exchange for job in queue.claim(2)] == [1]
    assert queue.claim(2) == []


def test_a_lease_runs_out(queue: JobQueue, store: Store, clock: Clock) -> None:
    """Whoever claims it then is the only one who can finish it."""
    [lost] = queue.claim(1)
    clock.now += LEASE_MS
    [again] = queue.claim(1)

    assert (again.exchange, again.attempts) == (lost.exchange, 2)
    assert not store.jobs.live(lost)
    store.jobs.finish(lost, "learned", 0)
    assert store.jobs.live(again)


def test_what_kills_its_process_is_given_up(queue: JobQueue, store: Store, clock: Clock) -> None:
    """After a number of attempts, with a reason."""
    for _ in range(ATTEMPTS_MAX):
        assert len(queue.claim(3)) == 3
        clock.now += LEASE_MS

    assert queue.claim(3) == []
    assert len(store.jobs.dead()) == 3
    assert all("without a reply" in dead.reason for dead in store.jobs.dead())


def test_the_same_question_is_not_asked_again(queue: JobQueue, store: Store) -> None:
    """Only another content, prompt or model is another question; a dead one stays dead until then."""
    for job in queue.claim(3):
        store.jobs.bury(job, "why", "reply")
    queue.put({1: "a", 2: "other"})

    assert [(job.exchange, job.digest, job.attempts) for job in queue.claim(3)] == [(2, "other", 1)]


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS_MAX))
def test_waiting_doubles_and_is_spread(queue: JobQueue, clock: Clock, attempt: int) -> None:
    """Each attempt waits between half and all of twice as long as the one before."""
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


def test_a_provider_may_ask_for_more(queue: JobQueue, clock: Clock) -> None:
    """Never less than retry-after."""
    [job] = queue.claim(1)
    queue.fail(job, ModelBusy("busy", after=500))
    clock.now += 499_999
    assert job.exchange not in [each.exchange for each in queue.claim(3)]
    clock.now += 1
    assert [each.exchange for each in queue.claim(3)] == [job.exchange]


def test_a_busy_provider_uses_no_attempt(queue: JobQueue, store: Store, clock: Clock) -> None:
    """However long it is busy, nothing is given up for that."""
    for _ in range(3 * ATTEMPTS_MAX):
        for job in queue.claim(3):
            assert not queue.fail(job, ModelBusy("busy"))
        clock.now += 3_600_000

    assert store.jobs.dead() == []
    assert [job.attempts for job in queue.claim(3)] == [1, 1, 1]


def test_a_request_that_can_never_work_is_given_up_at_once(queue: JobQueue, store: Store) -> None:
    """Trying again would change nothing."""
    [job] = queue.claim(1)

    assert queue.fail(job, RequestRefused("no", 400))
    assert [dead.exchange for dead in store.jobs.dead()] == [job.exchange]


def test_giving_back_uses_no_attempt(queue: JobQueue) -> None:
    """As when the money is used up."""
    jobs = queue.claim(3)
    queue.unclaim(jobs)

    assert [(job.exchange, job.attempts) for job in queue.claim(3)] == [(3, 1), (2, 1), (1, 1)]
