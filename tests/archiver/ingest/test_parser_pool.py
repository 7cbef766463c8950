"""The pool of parser processes starts processes on demand and leaves none behind."""

import errno
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.archiver.ingest import parser_pool
from palaver.archiver.ingest.parser_pool import ParserPool


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
