"""Processes that answer tasks: as many as the system gives, and no longer than they are wanted."""

# pyright: reportPrivateUsage=false

import errno
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.formats.registry import by_agent
from palaver.archiver.ingest import processes
from palaver.archiver.ingest.processes import Helpers
from palaver.archiver.ingest.task import Task


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Helpers]:
    """Helpers on a machine of three processors."""
    monkeypatch.setattr(processes, "processors", lambda: 3)
    with Helpers() as made:
        yield made


@pytest.fixture
def missing(tmp_path: Path) -> Task:
    """A task whose copy is not there."""
    return Task(by_agent("claude-code"), tmp_path / "a.jsonl", tmp_path, "a.jsonl", b"k" * 32)


def test_there_are_as_many_as_processors_to_spare(started: Helpers) -> None:
    """One processor is this process's own, and nobody starts more than are wanted."""
    assert [len(started.start(wanted)) for wanted in (0, 1, 9)] == [0, 1, 2]


def test_they_stay_unless_they_die(started: Helpers) -> None:
    """Whoever wants help again gets the same processes, and another one for each that died."""
    first, second = started.start(2)
    assert list(started.start(2)) == [first, second]
    first.close()
    third, fourth = started.start(2)

    assert third is second
    assert fourth not in (first, second)
    assert fourth.lives


def test_closing_ends_them(started: Helpers) -> None:
    """No process outlives its use."""
    begun = list(started.start(2))
    started.close()

    assert not any(helper.lives for helper in begun)


def test_a_system_without_processes_gives_none(started: Helpers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, nobody helps, and nothing fails."""

    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refused)

    assert list(started.start(2)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe has one size")
def test_a_system_without_large_pipes_gives_help(started: Helpers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not have larger pipes, as a user who has many already, gets the same help through small ones."""

    import fcntl

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(fcntl, "fcntl", refused)

    assert len(started.start(2)) == 2


def test_a_copy_that_is_gone_is_left_to_the_one_who_asks(started: Helpers, missing: Task) -> None:
    """A process that cannot read a copy says so and goes on; what is asked meanwhile waits its turn."""
    (helper,) = started.start(1)
    helper.ask(missing)
    helper.ask(missing)

    assert [helper.answer(), helper.answer()] == [None, None]
    assert helper.lives


def test_a_dead_process_answers_nothing(started: Helpers, missing: Task) -> None:
    """Asking one that has gone fails no one."""
    (helper,) = started.start(1)
    helper.stop()
    helper._process.wait(60)
    helper.ask(missing)

    assert helper.answer() is None


def test_an_answer_of_other_types_is_none(started: Helpers, missing: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process of another version answers may not be understood here: whoever waits for it is told so."""
    program = """if True:
        import pickle, sys

        while pickle.load(sys.stdin.buffer):
            sys.stdout.buffer.write(bytes([0, 0, 0, 0, 0, 0, 0, 1, 42]))
            sys.stdout.flush()
    """
    monkeypatch.setattr(processes, "_SERVE", program)
    (helper,) = started.start(1)
    helper.ask(missing)

    assert helper.answer() is None
    assert helper.lives


def test_a_process_ends_with_the_one_that_started_it() -> None:
    """Closed input is the end: whoever is killed leaves nobody behind."""
    done = subprocess.run([sys.executable, "-P", "-c", processes._SERVE], input=b"", timeout=60, check=False)

    assert done.returncode == 0


def test_a_process_that_nobody_listens_to_ends_quietly(missing: Task) -> None:
    """Whoever is killed leaves no complaint of another on the terminal either."""
    command = [sys.executable, "-P", "-c", processes._SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        _, complaint = process.communicate(pickle.dumps(missing), timeout=60)

    assert (process.returncode, complaint) == (0, b"")


def test_starting_loads_nothing_that_they_need() -> None:
    """They load what they need while this process loads what it needs."""
    loaded = "[name for name in ('msgspec', 'orjson', 're2') if name in sys.modules]"
    program = f"import sys, {processes.__name__}; print({loaded})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"
