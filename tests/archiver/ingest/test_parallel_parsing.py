"""Parsing in several processes gives the same result as parsing in one process."""

# pyright: reportPrivateUsage=false

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import Copied, RawArchive
from palaver.archiver.formats.registry import by_agent
from palaver.archiver.ingest import ingest, parser_pool
from palaver.archiver.ingest.parallel_parser import ParallelParser, ParseTask, batches
from palaver.archiver.ingest.parser_pool import ParserPool

from ..history import History, talk

SESSIONS = 12
KEY = b"k" * 32


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    """Return a history with several sessions, and let every ingest run use two other processes."""
    monkeypatch.setattr(parser_pool, "processors", lambda: 3)
    monkeypatch.setattr(ingest, "_PARALLEL", 0)
    with History(tmp_path) as made:
        for number in range(SESSIONS):
            made.write(talk(f"w{number}", f"x{number}", session=f"s{number}"), f"s{number}", at=number)
        yield made


def tasks_of(history: History) -> dict[str, tuple[ParseTask, Future[Copied]]]:
    """Copy each transcript, and return the parse task and the finished copy of each."""
    tasks = dict[str, tuple[ParseTask, Future[Copied]]]()
    raw = RawArchive(history.home.archive)
    for path in sorted(history.folder.rglob("*.jsonl")):
        copy = Future[Copied]()
        copy.set_result(raw.copy(path, path.name))
        tasks[path.name] = (ParseTask(by_agent("claude-code"), path, raw.root, path.name, KEY), copy)
    return tasks


def test_other_processes_parse_the_same(history: History) -> None:
    """A process of the pool returns the same result as the task in this process."""
    tasks = tasks_of(history)
    with ParserPool() as pool:
        pool.submit(os.getpid).result(60)
        parser = ParallelParser(pool, tasks)
        first = parser._submitted[next(iter(tasks))]
        while not first.running() and not first.done():
            time.sleep(0.001)
        parsed = {name: parser.take(name) for name in tasks}

    assert any(parsed.values())
    assert all(file in (None, tasks[name][0].run()) for name, file in parsed.items())


def test_a_run_with_several_processes_stores_the_same(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ingesting with other processes stores the same rows in the same order as without."""
    history.ingest()
    monkeypatch.setattr(parser_pool, "processors", lambda: 1)
    with History(tmp_path, "alone") as alone:
        alone.ingest()

        assert history.dump() == alone.dump()


def test_a_killed_process_fails_no_file(history: History) -> None:
    """If a process of the pool is killed, each file has a correct result or is left to the caller."""
    tasks = tasks_of(history)
    with ParserPool() as pool:
        os.kill(pool.submit(os.getpid).result(60), signal.SIGKILL)
        parser = ParallelParser(pool, tasks)

        assert all(file in (None, tasks[name][0].run()) for name in tasks for file in [parser.take(name)])


def test_a_missing_copy_is_left_to_the_caller(tmp_path: Path) -> None:
    """The task of an unreadable copy returns None."""
    assert ParseTask(by_agent("claude-code"), tmp_path / "a.jsonl", tmp_path, "a.jsonl", KEY).run() is None


def test_batches_limit_unstored_content() -> None:
    """A batch has at most 64 MiB, or a single larger file."""
    sizes = [1 << 20, 63 << 20, 1, 100 << 20, 5]

    assert list(batches(sizes, lambda size: size)) == [[1 << 20, 63 << 20], [1], [100 << 20], [5]]
