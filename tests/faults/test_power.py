"""Fifty power cuts lose no acknowledged write and leave no partial index."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.store import Source, Store
from palaver.core.home import Home
from palaver.search.index.generation import Generations
from palaver.search.index.index_check import IndexCheck

from .stored import memories, prompts
from .warm import Warm

CUTS = 50


class Disk:
    """Mounted folder on a disk that loses unsynced writes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        program = Path(__file__).with_name("lossy_disk.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._told() == "mounted"

    def cut(self, after: int) -> None:
        """Cut the power after a number of changes and wait until this happens."""
        self._ask("cut", after)
        assert self._told() == "cut"

    def restore(self, seed: int) -> None:
        """Mount the disk again with its content."""
        self._ask("restore", seed)
        assert self._told() == "restored"

    def _ask(self, what: str, number: int) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([what, number]) + "\n")
        self._process.stdin.flush()

    def _told(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline() or '"it ended"')

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Return a test disk mounted at `home`. Skip the test without permission to mount."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or os.geteuid() != 0:
        pytest.skip("needs /dev/fuse and the right to mount")
    with Disk(tmp_path / "home") as found:
        yield found


@pytest.mark.timeout(900)
def test_the_power_is_cut_fifty_times(tmp_path: Path, disk: Disk) -> None:
    """Acknowledged writes survive a power cut, each copy matches its row, and the index can be searched."""
    (tmp_path / "projects" / "shop").mkdir(parents=True)
    (tmp_path / "acks").mkdir()
    chance, home = random.Random(2026), Home(tmp_path / "home")
    with Warm(tmp_path / "complaints") as warm:
        for number in range(CUTS):
            tasks = [(task, tmp_path / "acks" / f"{task}{number}") for task in ("keep", "remember")]
            running = [warm.start(task, tmp_path, acks) for task, acks in tasks]
            disk.cut(int(chance.choice((50, 1000, 4000)) * chance.random()) + 1)
            warm.kill(running)
            disk.restore(number)
            assert_kept(home, tmp_path / "acks")
    assert_whole(home)
    assert len(acknowledged(tmp_path / "acks", "memory")) > CUTS
    assert acknowledged(tmp_path / "acks", "kept")


def acknowledged(folder: Path, kind: str) -> list[str]:
    lines = (line for path in sorted(folder.iterdir()) for line in path.read_bytes().splitlines())
    return [value for found, value in map(json.loads, lines) if found == kind]


def assert_kept(home: Home, acks: Path) -> None:
    acknowledged_memories, kept = acknowledged(acks, "memory"), acknowledged(acks, "kept")
    if not acknowledged_memories and not kept:
        return
    stored_memories, stored = memories(home), prompts(home)
    assert set(acknowledged_memories) <= set(stored_memories)
    assert set(kept) <= set(stored)
    assert len(set(stored_memories)) == len(stored_memories)
    assert len(set(stored)) == len(stored)
    with Store.open(home.database) as store:
        assert store.integrity.damage() == []
        for source in store.sources.all():
            assert_copied(RawArchive(home.archive), source)
    generations = Generations(home.index)
    if generation := generations.current():
        generations.verify(generation)


def assert_copied(raw: RawArchive, source: Source) -> None:
    """Check that the copy, in either storage format, contains the known bytes of the file."""
    with raw.open_raw(source.archived) as copy:
        assert copy.read()[: source.size] == source.path.read_bytes()[: source.size]


def assert_whole(home: Home) -> None:
    with Store.open(home.database) as store:
        integrity = store.integrity
        assert not any(
            (
                integrity.dangling(),
                integrity.without_content(),
                integrity.unreadable_sources(),
                integrity.outside_source(),
            )
        )
        assert IndexCheck(store, Generations(home.index)).run().differences == []
