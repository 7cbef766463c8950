"""Changes are indexed soon, but workers do not start too often."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.observe.background.index_worker import IndexWorker, WorkerResult
from palaver.observe.background.schedule import IndexSchedule


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class ScriptedWorker(IndexWorker):
    """An index worker whose results a test sets."""

    def __init__(self) -> None:
        super().__init__(Home(Path("/nowhere")))
        self.started: list[bool] = []
        self.at_work = False
        self.next: WorkerResult | PalaverError | None = None

    @property
    def busy(self) -> bool:
        return self.at_work

    def start(self, model: str | None, *, settle: bool) -> None:
        assert not self.at_work
        assert model == "chosen"
        self.at_work = True
        self.started.append(settle)

    def result(self) -> WorkerResult | PalaverError | None:
        result, self.next = self.next, None
        self.at_work = self.at_work and result is None
        return result


class Harness:
    """The schedule of a store that a test changes."""

    def __init__(self, store: Store) -> None:
        self.store, self.worker, self.time = store, ScriptedWorker(), Clock()
        self.schedule = IndexSchedule(store, self.worker, lambda: "chosen", self.time)

    def change(self, count: int = 1) -> None:
        with self.store.transaction():
            self.store._database.run_many(  # pyright: ignore[reportPrivateUsage]
                "INSERT INTO change (entity, id) VALUES (?, ?)", [(Entity.ITEM, 1)] * count
            )

    def after(self, seconds: float) -> list[bool]:
        """Return the workers started after a delay. True marks workers that publish everything."""
        self.time.now += seconds
        self.schedule.step()
        return self.worker.started

    def end(self, *, lag: int = 0, left: bool = False) -> None:
        self.worker.next = WorkerResult(seq=self.store.changes.last(), lag=lag, left=left)

    def settle(self) -> None:
        """Run the first worker, which processes content of an earlier archiver."""
        self.after(10)
        self.end()
        self.after(1)
        self.worker.started.clear()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Store.create(tmp_path / "palaver.db") as store:
        yield Harness(store)


def test_the_first_worker_starts_immediately(harness: Harness) -> None:
    """A worker starts immediately, and no further worker starts without a change."""
    assert harness.after(0) == [False]
    harness.end()

    assert harness.after(1) == [False]
    assert harness.after(3500) == [False]
    assert harness.schedule.quiet


def test_damage_is_checked_each_hour(harness: Harness) -> None:
    """Without changes, exactly one worker per hour starts and checks for damage."""
    harness.settle()
    assert harness.after(3600) == [True]
    harness.end()

    assert harness.after(3500) == [True]
    assert harness.after(200) == [True, True]


def test_a_worker_starts_after_the_last_change(harness: Harness) -> None:
    """A worker starts a few seconds after the last change by any process."""
    harness.settle()
    harness.change()
    assert harness.after(1) == []
    harness.change()
    assert harness.after(3.5) == []
    assert not harness.schedule.quiet

    assert harness.after(4.5) == [False]


def test_continuous_changes_are_indexed_regularly(harness: Harness) -> None:
    """During continuous changes, a worker starts every half minute. After many changes, it starts immediately."""
    harness.settle()
    for _ in range(28):
        harness.change()
        assert harness.after(1) == []
    harness.change()
    harness.after(1)
    harness.change()
    assert harness.after(2) == [False]
    harness.end()
    harness.change(1000)

    assert harness.after(1) == [False, False]


def test_an_interrupted_worker_is_continued(harness: Harness) -> None:
    """A worker that stopped early is followed by another worker immediately."""
    harness.settle()
    harness.change()
    harness.after(0.1)
    harness.after(5)
    harness.end(left=True)

    assert harness.after(0.1) == [False, False]


def test_the_last_few_are_published(harness: Harness) -> None:
    """Changes missing from the index are published after a minute without changes, and not before."""
    harness.settle()
    harness.change()
    harness.after(0.1)
    harness.after(5)
    harness.end(lag=1)
    assert harness.after(1) == [False]

    assert harness.after(60) == [False, True]
    harness.end()
    assert harness.after(3000) == [False, True]


def test_failed_workers_are_retried(harness: Harness) -> None:
    """After a failure, workers are retried with increasing delays."""
    harness.settle()
    harness.change()
    harness.after(0.1)
    harness.after(5)
    harness.worker.next = PalaverError("it broke")
    assert harness.after(1) == [False]
    assert harness.after(5.1) == [False, False]
    harness.worker.next = PalaverError("it broke")
    assert harness.after(1) == [False, False]
    assert harness.after(9) == [False, False]

    assert harness.after(1.1) == [False, False, False]
