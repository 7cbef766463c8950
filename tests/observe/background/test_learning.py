"""Is it learned from what was taken up soon, and not too often?"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Entity, Store
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.observe.background.catching_up import Caught, Helper
from palaver.observe.background.learning import Learning

from ...archiver.watch.test_watching import Times


class Hand(Helper):
    """A helper whose rounds a test ends."""

    def __init__(self) -> None:
        super().__init__(Home(Path("/nowhere")))
        self.begun: list[bool] = []
        self.at_work = False
        self.result: Caught | PalaverError | None = None

    @property
    def busy(self) -> bool:
        return self.at_work

    def begin(self, model: str | None, *, settle: bool) -> None:
        assert not self.at_work
        assert model == "chosen"
        self.at_work = True
        self.begun.append(settle)

    def ended(self) -> Caught | PalaverError | None:
        result, self.result = self.result, None
        self.at_work = self.at_work and result is None
        return result


class Desk:
    """Learning in a store that a test changes."""

    def __init__(self, store: Store) -> None:
        self.store, self.hand, self.times = store, Hand(), Times()
        self.learning = Learning(store, self.hand, lambda: "chosen", self.times)

    def change(self, count: int = 1) -> None:
        with self.store.transaction():
            self.store._database.run_many(  # pyright: ignore[reportPrivateUsage]
                "INSERT INTO change (entity, id) VALUES (?, ?)", [(Entity.ITEM, 1)] * count
            )

    def after(self, seconds: float) -> list[bool]:
        """The rounds that were begun, True where all is to be published, when so much time went by."""
        self.times.pass_by(seconds)
        self.learning.round()
        return self.hand.begun

    def end(self, *, lag: int = 0, left: bool = False) -> None:
        self.hand.result = Caught(seq=self.store.changes.last(), lag=lag, left=left)

    def settle(self) -> None:
        """The first round, which finds what an earlier archiver left undone."""
        self.after(10)
        self.end()
        self.after(1)
        self.hand.begun.clear()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Store.create(tmp_path / "palaver.db") as store:
        yield Desk(store)


def test_the_first_round(desk: Desk) -> None:
    """At the start there is a round at once: nobody knows what was left undone. Then there is none for nothing."""
    assert desk.after(0) == [False]
    desk.end()

    assert desk.after(1) == [False]
    assert desk.after(3500) == [False]
    assert desk.learning.quiet


def test_it_looks_for_damage_each_hour(desk: Desk) -> None:
    """However long nothing changes, a round begins once an hour, and no more often."""
    desk.settle()
    assert desk.after(3600) == [True]
    desk.end()

    assert desk.after(3500) == [True]
    assert desk.after(200) == [True, True]


def test_when_it_is_quiet(desk: Desk) -> None:
    """A few seconds after the last change, whoever made it, there is a round."""
    desk.settle()
    desk.change()
    assert desk.after(1) == []
    desk.change()
    assert desk.after(3.5) == []
    assert not desk.learning.quiet

    assert desk.after(4.5) == [False]


def test_when_it_is_never_quiet(desk: Desk) -> None:
    """Where something always changes there is a round every half minute; where much does, at once."""
    desk.settle()
    for _ in range(28):
        desk.change()
        assert desk.after(1) == []
    desk.change()
    desk.after(1)
    desk.change()
    assert desk.after(2) == [False]
    desk.end()
    desk.change(1000)

    assert desk.after(1) == [False, False]


def test_a_round_that_broke_off(desk: Desk) -> None:
    """A round that had to break off is followed by another at once."""
    desk.settle()
    desk.change()
    desk.after(0.1)
    desk.after(5)
    desk.end(left=True)

    assert desk.after(0.1) == [False, False]


def test_the_last_few_are_published(desk: Desk) -> None:
    """What the index does not hold after a round is published when nothing changes for a minute, and not before."""
    desk.settle()
    desk.change()
    desk.after(0.1)
    desk.after(5)
    desk.end(lag=1)
    assert desk.after(1) == [False]

    assert desk.after(60) == [False, True]
    desk.end()
    assert desk.after(3000) == [False, True]


def test_a_round_that_failed(desk: Desk) -> None:
    """After a failure there is another attempt, later each time."""
    desk.settle()
    desk.change()
    desk.after(0.1)
    desk.after(5)
    desk.hand.result = PalaverError("it broke")
    assert desk.after(1) == [False]
    assert desk.after(5.1) == [False, False]
    desk.hand.result = PalaverError("it broke")
    assert desk.after(1) == [False, False]
    assert desk.after(9) == [False, False]

    assert desk.after(1.1) == [False, False, False]
