"""Changes are indexed soon, and not too often."""

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
        """The rounds that were begun, True where all is to be published, when so much time went by."""
        self.time.now += seconds
        self.schedule.step()
        return self.worker.started

    def end(self, *, lag: int = 0, left: bool = False) -> None:
        self.worker.next = WorkerResult(seq=self.store.changes.last(), lag=lag, left=left)

    def settle(self) -> None:
        """The first round, which finds what an earlier archiver left undone."""
        self.after(10)
        self.end()
        self.after(1)
        self.worker.started.clear()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Store.create(tmp_path / "palaver.db") as store:
        yield World(store)


def test_the_first_round(world: World) -> None:
    """At the start there is a round at once: nobody knows what was left undone. Then there is none for nothing."""
    assert world.after(0) == [False]
    world.end()

    assert world.after(1) == [False]
    assert world.after(3500) == [False]
    assert world.schedule.quiet


def test_it_looks_for_damage_each_hour(world: World) -> None:
    """However long nothing changes, a round begins once an hour, and no more often."""
    world.settle()
    assert world.after(3600) == [True]
    world.end()

    assert world.after(3500) == [True]
    assert world.after(200) == [True, True]


def test_when_it_is_quiet(world: World) -> None:
    """A few seconds after the last change, whoever made it, there is a round."""
    world.settle()
    world.change()
    assert world.after(1) == []
    world.change()
    assert world.after(3.5) == []
    assert not world.schedule.quiet

    assert world.after(4.5) == [False]


def test_when_it_is_never_quiet(world: World) -> None:
    """Where something always changes there is a round every half minute; where much does, at once."""
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


def test_a_round_that_broke_off(world: World) -> None:
    """A round that had to break off is followed by another at once."""
    world.settle()
    world.change()
    world.after(0.1)
    world.after(5)
    world.end(left=True)

    assert world.after(0.1) == [False, False]


def test_the_last_few_are_published(world: World) -> None:
    """What the index does not hold after a round is published when nothing changes for a minute, and not before."""
    world.settle()
    world.change()
    world.after(0.1)
    world.after(5)
    world.end(lag=1)
    assert world.after(1) == [False]

    assert world.after(60) == [False, True]
    world.end()
    assert world.after(3000) == [False, True]


def test_a_round_that_failed(world: World) -> None:
    """After a failure there is another attempt, later each time."""
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
