"""Tests of `parallel_parser.py`."""

# pyright: reportPrivateUsage=false

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import Copied, RawArchive
from palaver.archiver.formats.registry import by_agent
from palaver.archiver.ingest import ingest, parser_pool
from palaver.archiver.ingest.parallel_parser import ParallelParser, ParseTask, batches
from palaver.archiver.ingest.parser_pool import ParserPool

from ..history import History, talk

# The pool of parser processes starts processes on demand and leaves none behind.


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        os.waitpid(process, os.WNOHANG)
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except ChildProcessError:
        return True
    return True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ParserPool]:
    """Return a pool on a machine with three processors."""
    monkeypatch.setattr(parser_pool, "processors", lambda: 3)
    with ParserPool() as made:
        yield made


def test_one_processor_is_left_to_the_caller(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool has one process fewer than the available processors. With one processor, the pool is empty."""
    assert pool.size == 2
    monkeypatch.setattr(parser_pool, "processors", lambda: 1)
    before = set(multiprocessing.active_children())
    pool.start()

    assert set(multiprocessing.active_children()) <= before


def test_closing_ends_a_process_that_is_busy(pool: ParserPool) -> None:
    """Closing the pool ends its processes without waiting for running tasks."""
    process = pool.submit(os.getpid).result(60)
    pool.submit(time.sleep, 600)
    pool.close()

    assert wait_until(lambda: not is_alive(process))


def test_a_closed_pool_can_be_used_again(pool: ParserPool) -> None:
    """After closing, a submitted function runs in a new process."""
    first = pool.submit(os.getpid).result(60)
    pool.close()

    assert pool.submit(os.getpid).result(60) not in (first, os.getpid())


def test_processes_end_with_a_killed_parent() -> None:
    """If the parent process is killed, the processes of its pool end."""
    program = """if True:
        import os
        from palaver.archiver.ingest.parser_pool import ParserPool

        pool = ParserPool()
        print(pool.submit(os.getpid).result(60), flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert wait_until(lambda: not is_alive(int(done.stdout)))


def test_a_system_without_processes_fails_the_future(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no process can be started, the future contains the error, and `submit` raises nothing."""

    def refuse(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", refuse)

    assert isinstance(pool.submit(os.getpid).exception(60), OSError)


def test_modules_of_the_current_folder_are_not_run(tmp_path: Path) -> None:
    """A module in the current folder does not replace a standard module in a process of the pool."""
    (tmp_path / "random.py").write_text("print('run')\nraise SystemExit")
    (tmp_path / "signal.py").write_text("print('run')\nraise SystemExit")
    program = "import os; from palaver.archiver.ingest.parser_pool import ParserPool\n"
    program += "with ParserPool() as pool: print(pool.submit(os.cpu_count).result(60) is not None)"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)

    assert done.stdout == "True\n"


def test_importing_the_pool_loads_no_parser() -> None:
    """Importing the pool does not import the parser, so that both can load in parallel."""
    loaded = "[name for name in ('msgspec', 'orjson', 're2') if name in sys.modules]"
    program = f"import sys, {parser_pool.__name__}; print({loaded})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"


# Parsing in several processes gives the same result as parsing in one process.


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
