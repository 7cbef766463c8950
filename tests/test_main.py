"""Tests for __main__.py: how a process ends."""

import subprocess
import sys

import pytest

START = "import sys; sys.argv[0] = 'palaver'\nfrom palaver.__main__ import start\n"


def ended(program: str, *arguments: str) -> tuple[int, list[str], str]:
    """The status of a program that starts a command, the rows it printed, and what it complained of."""
    done = subprocess.run(
        [sys.executable, "-c", START + program, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_ctrl_c_after_the_end_of_a_command_has_no_effect() -> None:
    """The exit status stays 0, and no traceback is printed."""
    program = "import atexit, signal\natexit.register(signal.raise_signal, signal.SIGINT)\nstart()"

    assert ended(program, "--version")[::2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--help"], 0), (["search", "--no-such"], 2), (["no-such-command"], 2), (["status"], 1)]
)
def test_the_status_is_kept(arguments: list[str], status: int) -> None:
    """A process ends with the status of its command, and all it said was written."""
    found, rows, complaint = ended("start()", *arguments)

    assert (found, bool(rows or complaint)) == (status, True)


def test_a_thread_that_works_is_waited_for() -> None:
    """What another thread is still about is finished first, as ever."""
    program = "import threading\ndef work():\n    threading.main_thread().join()\n    print('done', flush=True)\n"
    program += "threading.Thread(target=work).start()\nstart()"

    status, rows, _ = ended(program, "--version")

    assert (status, rows[1:]) == (0, ["done"])


def test_a_profiler_has_the_last_word() -> None:
    """Who looks on while a command runs can still say what was seen."""
    profiled = [sys.executable, "-m", "cProfile", "-m", "palaver", "--version"]
    done = subprocess.run(profiled, capture_output=True, text=True, check=False)

    assert (done.returncode, "function calls" in done.stdout) == (0, True)
