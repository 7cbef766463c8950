"""Seven processes over one home, killed at random moments two hundred times: nothing acknowledged is ever lost."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.progress import silent
from palaver.core.query import Query
from palaver.core.results import Hit
from palaver.observe import pipeline
from palaver.search import archive_search
from palaver.search.index.generation import Generations
from palaver.search.index.index_check import IndexCheck
from palaver.search.index.indexer import Indexer

from ..search.fake_embedder import FakeEmbedder
from .stored import memories, prompts
from .warm import Warm
from .worker import fake

ROUNDS = 200
ROLES = ("archive", "remember", "remember", "converse", "converse", "search", "search")
FIRST_ANSWER = 2.0
"""Seconds of work that a process has with its first answer, and in which it gives one after everything was killed,
unless others keep the machine busy.
"""
DEADLINE = 120.0
"""Seconds in which a process has done something, however busy the machine is."""


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, archive_search):
        monkeypatch.setattr(module, "load", fake)


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    with Warm(tmp_path / "complaints") as server:
        yield server


class Crowd:
    """The processes of all roles, and what was acknowledged to them."""

    def __init__(self, root: Path, warm: Warm) -> None:
        self._root, self._warm = root, warm
        self.alive: dict[int, str] = {}
        self.kills = Counter[str]()
        self._started = 0
        self.acks = root / "acks"
        self.acks.mkdir()

    def start(self, role: str) -> Path:
        """Start a process of a role; where it reports to."""
        self._started += 1
        acks = self.acks / f"{role}{self._started}"
        others = [self.acks] if role == "search" else []
        self.alive[self._warm.start(role, self._root, acks, *others)] = role
        return acks

    def complete(self) -> None:
        """Start what is missing of every role."""
        for role in (Counter[str](ROLES) - Counter(self.alive.values())).elements():
            self.start(role)

    def kill(self, numbers: list[int]) -> None:
        self._warm.kill(numbers)
        self.kills.update(self.alive.pop(number) for number in numbers)

    def acknowledged(self, kind: str) -> list[str]:
        """Everything of a kind."""
        lines = (line for path in self.acks.iterdir() for line in path.read_bytes().splitlines())
        return [value for found, value in map(json.loads, lines) if found == kind]


def has_acknowledged(acks: Path) -> bool:
    return acks.exists() and bool(acks.read_bytes())


def until(what: Callable[[], object]) -> float:
    """Wait until something is so, and say how many seconds it took."""
    start = time.monotonic()
    while not what():
        assert time.monotonic() < start + DEADLINE
        time.sleep(0.005)
    return time.monotonic() - start


@pytest.mark.timeout(900)
def test_killed_two_hundred_times(tmp_path: Path, warm: Warm) -> None:
    """An archiver, four writers and two readers are killed at random: every acknowledged memory and line is there once,
    is found at once by whoever reads, also right after all were killed, the file is whole, and the index is what a
    rebuild makes.
    """
    (tmp_path / "projects" / "shop").mkdir(parents=True)
    crowd, chance, waited = Crowd(tmp_path, warm), random.Random(2026), list[float]()
    for role in ("remember", "converse"):
        until(partial(has_acknowledged, crowd.start(role)))
    for number in range(ROUNDS):
        crowd.complete()
        time.sleep(chance.uniform(0.05, 0.5))  # the moment of the kill is what is tested
        assert not warm.failed(), warm.complaints()
        crowd.kill(sorted(crowd.alive) if number % 20 == 19 else some(crowd.alive, chance))
        if number % 20 == 19:
            waited.append(until(partial(has_acknowledged, crowd.start("search"))))
    crowd.kill(sorted(crowd.alive))

    home = Home(tmp_path / "home")
    with pipeline.Pipeline(home) as passes:
        assert not passes.run(in_paths([tmp_path / "projects"])).ingested.problems
    assert_whole(home)
    assert_each_once(memories(home), crowd.acknowledged("memory"), crowd.kills["remember"])
    assert_each_once(prompts(home), crowd.acknowledged("said"), crowd.kills["converse"])
    assert_rebuilt_alike(home, random.Random(1).sample(crowd.acknowledged("said"), 40))
    assert crowd.acknowledged("pass")
    assert all(float(each) < FIRST_ANSWER for each in crowd.acknowledged("answered"))
    assert min(waited) < FIRST_ANSWER


def some(alive: dict[int, str], chance: random.Random) -> list[int]:
    return chance.sample(sorted(alive), chance.randint(1, 3))


def assert_each_once(stored: list[str], acknowledged: list[str], kills: int) -> None:
    """All that was acknowledged, nothing twice, and besides at most what a killed process was about to acknowledge."""
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    assert len(stored) - len(acknowledged) <= kills


def assert_whole(home: Home) -> None:
    with Store.open(home.database) as store:
        integrity = store.integrity
        found = (integrity.damage(), integrity.dangling(), integrity.bodiless(), integrity.unparsed())
        assert not any(found)
        assert not integrity.misplaced()
        assert store.sources.problems() == []


def assert_rebuilt_alike(home: Home, words: list[str]) -> None:
    """The index that grew holds what the archive holds, and one that is made anew gives the same answers.

    What was deleted still weighs a little on the statistics of words, so scores are the same to the third digit.
    """
    with Store.open(home.database) as store:
        assert IndexCheck(store, Generations(home.index)).run(silent).differences == []
    grown = answers(home, words)
    home.index.rename(home.root / "grown")
    with Store.open(home.database) as store:
        Indexer(store, Generations(home.index), FakeEmbedder()).publish()
    for before, after in zip(grown, answers(home, words), strict=True):
        assert before[0].id == after[0].id
        assert [hit.score for hit in before] == pytest.approx([hit.score for hit in after], abs=1e-3)


def answers(home: Home, words: list[str]) -> list[tuple[Hit, ...]]:
    with archive_search.ArchiveSearch(home) as asked:
        return [asked.search(Query.parse(word)).hits for word in words]
