"""Changes are indexed soon, but workers do not start too often."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.observe.background.index_schedule import IndexSchedule
from palaver.observe.background.index_worker import IndexWorker, WorkerResult


class Time:
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


class World:
    """The schedule of a store that a test changes."""

    def __init__(self, store: Store) -> None:
        self.store, self.worker, self.time = store, ScriptedWorker(), Time()
        self.schedule = IndexSchedule(store, self.worker, lambda: "chosen", self.time)

    def change(self, count: int = 1) -> None:
        with self.store.transaction():
            self.store._database.run_many(  # pyright: ignore[reportPrivateUsage]
                "INSERT INTO change (entity, id) VALUES (?, ?)", [(Entity.ITEM, 1)] * count
            )

    def after(self, seconds: float) -> list[bool]:
        """Return the workers started after a delay; True marks workers that publish everything."""
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
def world(tmp_path: Path) -> Iterator[World]:
    with Store.create(tmp_path / "palaver.db") as store:
        yield World(store)


def test_the_first_worker_starts_immediately(world: World) -> None:
    """A worker starts immediately, and no further worker starts without a change."""
    assert world.after(0) == [False]
    world.end()

    assert world.after(1) == [False]
    assert world.after(3500) == [False]
    assert world.schedule.quiet


def test_damage_is_checked_each_hour(world: World) -> None:
    """Without changes, exactly one worker per hour starts and checks for damage."""
    world.settle()
    assert world.after(3600) == [True]
    world.end()

    assert world.after(3500) == [True]
    assert world.after(200) == [True, True]


def test_a_worker_starts_after_the_last_change(world: World) -> None:
    """A worker starts a few seconds after the last change by any process."""
    world.settle()
    world.change()
    assert world.after(1) == []
    world.change()
    assert world.after(3.5) == []
    assert not world.schedule.quiet

    assert world.after(4.5) == [False]


def test_continuous_changes_are_indexed_regularly(world: World) -> None:
    """During continuous changes, a worker starts every half minute; after many changes, immediately."""
    world.settle()
    for _ in range(28):
        world.change()
        assert world.after(1) == []
    world.change()
    world.after(1)
    world.change()
    assert world.after(2) == [False]
    world.end()
    world.change(1000)

    assert world.after(1) == [False, False]


def test_an_interrupted_worker_is_continued(world: World) -> None:
    """A worker that stopped early is followed by another worker immediately."""
    world.settle()
    world.change()
    world.after(0.1)
    world.after(5)
    world.end(left=True)

    assert world.after(0.1) == [False, False]


def test_the_last_few_are_published(world: World) -> None:
    """Changes missing from the index are published after a minute without changes, and not before."""
    world.settle()
    world.change()
    world.after(0.1)
    world.after(5)
    world.end(lag=1)
    assert world.after(1) == [False]

    assert world.after(60) == [False, True]
    world.end()
    assert world.after(3000) == [False, True]


def test_failed_workers_are_retried(world: World) -> None:
    """After a failure, workers are retried with increasing delays."""
    world.settle()
    world.change()
    world.after(0.1)
    world.after(5)
    world.worker.next = PalaverError("it broke")
    assert world.after(1) == [False]
    assert world.after(5.1) == [False, False]
    world.worker.next = PalaverError("it broke")
    assert world.after(1) == [False, False]
    assert world.after(9) == [False, False]

    assert world.after(1.1) == [False, False, False]
