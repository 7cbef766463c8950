"""Exit status and interruption of the process."""

import subprocess
import sys

import pytest

START = "import sys; sys.argv[0] = 'palaver'\nfrom palaver.__main__ import start\n"


def ended(program: str, *arguments: str) -> tuple[int, list[str], str]:
    """Run a program that starts a command, and return its exit status, lines of output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", START + program, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_ctrl_c_after_the_end_of_a_command_has_no_effect() -> None:
    """Ctrl-C after a command ended leaves exit status 0 and prints no traceback."""
    program = "import atexit, signal\natexit.register(signal.raise_signal, signal.SIGINT)\nstart()"

    assert ended(program, "--version")[::2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--help"], 0), (["search", "--no-such"], 2), (["no-such-command"], 2), (["status"], 1)]
)
def test_the_status_is_kept(arguments: list[str], status: int) -> None:
    """The process ends with the status of its command after writing all output."""
    found, rows, complaint = ended("start()", *arguments)

    assert (found, bool(rows or complaint)) == (status, True)


def test_threads_are_joined() -> None:
    """The process waits for running threads before it exits."""
    program = "import threading\ndef work():\n    threading.main_thread().join()\n    print('done', flush=True)\n"
    program += "threading.Thread(target=work).start()\nstart()"

    status, rows, _ = ended(program, "--version")

    assert (status, rows[1:]) == (0, ["done"])


def test_exit_handlers_run() -> None:
    """Exit handlers run when the process ends, so profilers can write their reports."""
    profiled = [sys.executable, "-m", "cProfile", "-m", "palaver", "--version"]
    done = subprocess.run(profiled, capture_output=True, text=True, check=False)

    assert (done.returncode, "function calls" in done.stdout) == (0, True)
