"""Killing seven processes of one home two hundred times loses no acknowledged write."""

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
from palaver.core.query import Query
from palaver.core.results import Hit
from palaver.core.runtime import silent
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
"""Maximum CPU time in seconds until the first reply of a process, also after all were killed."""
DEADLINE = 120.0
"""Maximum seconds until a process acts on a busy machine."""


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, archive_search):
        monkeypatch.setattr(module, "load", fake)


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    with Warm(tmp_path / "complaints") as server:
        yield server


class ProcessGroup:
    """Running processes of all roles, with their acknowledged writes."""

    def __init__(self, root: Path, warm: Warm) -> None:
        self._root, self._warm = root, warm
        self.alive: dict[int, str] = {}
        self.kills = Counter[str]()
        self._started = 0
        self.acks = root / "acks"
        self.acks.mkdir()

    def start(self, role: str) -> Path:
        """Start a process of a role and return the file of its acknowledgements."""
        self._started += 1
        acks = self.acks / f"{role}{self._started}"
        others = [self.acks] if role == "search" else []
        self.alive[self._warm.start(role, self._root, acks, *others)] = role
        return acks

    def complete(self) -> None:
        """Start the missing processes of every role."""
        for role in (Counter[str](ROLES) - Counter(self.alive.values())).elements():
            self.start(role)

    def kill(self, numbers: list[int]) -> None:
        self._warm.kill(numbers)
        self.kills.update(self.alive.pop(number) for number in numbers)

    def acknowledged(self, kind: str) -> list[str]:
        """Return the values of all acknowledged writes of a kind."""
        lines = (line for path in self.acks.iterdir() for line in path.read_bytes().splitlines())
        return [value for found, value in map(json.loads, lines) if found == kind]


def has_acknowledged(acks: Path) -> bool:
    return acks.exists() and bool(acks.read_bytes())


def until(what: Callable[[], object]) -> float:
    """Wait until a condition holds and return the elapsed seconds."""
    start = time.monotonic()
    while not what():
        assert time.monotonic() < start + DEADLINE
        time.sleep(0.005)
    return time.monotonic() - start


@pytest.mark.timeout(900)
def test_killed_two_hundred_times(tmp_path: Path, warm: Warm) -> None:
    """Acknowledged memories and lines are stored exactly once, the database is intact, and the index is complete."""
    (tmp_path / "projects" / "shop").mkdir(parents=True)
    group, chance, waited = ProcessGroup(tmp_path, warm), random.Random(2026), list[float]()
    for role in ("remember", "converse"):
        until(partial(has_acknowledged, group.start(role)))
    for number in range(ROUNDS):
        group.complete()
        time.sleep(chance.uniform(0.05, 0.5))  # kill at a random moment
        assert not warm.failed(), warm.complaints()
        group.kill(sorted(group.alive) if number % 20 == 19 else some(group.alive, chance))
        if number % 20 == 19:
            waited.append(until(partial(has_acknowledged, group.start("search"))))
    group.kill(sorted(group.alive))

    home = Home(tmp_path / "home")
    with pipeline.Pipeline(home) as passes:
        assert not passes.run(in_paths([tmp_path / "projects"])).ingested.problems
    assert_whole(home)
    assert_each_once(memories(home), group.acknowledged("memory"), group.kills["remember"])
    assert_each_once(prompts(home), group.acknowledged("said"), group.kills["converse"])
    assert_rebuilt_alike(home, random.Random(1).sample(group.acknowledged("said"), 40))
    assert group.acknowledged("pass")
    assert all(float(each) < FIRST_ANSWER for each in group.acknowledged("answered"))
    assert min(waited) < FIRST_ANSWER


def some(alive: dict[int, str], chance: random.Random) -> list[int]:
    return chance.sample(sorted(alive), chance.randint(1, 3))


def assert_each_once(stored: list[str], acknowledged: list[str], kills: int) -> None:
    """Check that every acknowledged item is stored once, with at most one more item per killed process."""
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    assert len(stored) - len(acknowledged) <= kills


def assert_whole(home: Home) -> None:
    with Store.open(home.database) as store:
        integrity = store.integrity
        found = (
            integrity.damage(),
            integrity.dangling(),
            integrity.without_content(),
            integrity.unreadable_sources(),
        )
        assert not any(found)
        assert not integrity.outside_source()
        assert store.sources.problems() == []


def assert_rebuilt_alike(home: Home, words: list[str]) -> None:
    """Check that the extended index and a rebuilt index return the same results.

    Deleted entries still affect term statistics, so scores are compared to three digits.
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
        return [asked.find(Query.parse(word)).hits for word in words]
