"""Crash injection: run a worker process that kills itself at a step that the test chooses.

A step is a function call in Palaver's code or in the file functions of the standard library. Imports and polling of
threads do not count as steps, because they differ between runs.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parents[1]
OWN: Final = frozenset({"os", "palaver", "pathlib", "shutil", "tempfile"})
TRIES: Final = 3

Counted: TypeAlias = Callable[[str, object], bool]
"""Predicate that returns whether a `sys.setprofile` event is a step."""


def every(_event: str, _called: object) -> bool:
    """Return True for each call and each return."""
    return True


def run_with_crash(work: Callable[[], object], at: int, counted: Counted = every) -> int:
    """Run a function and kill the process at step `at`. Return the number of steps if the function ends earlier."""
    steps = count(1)

    def count_step(frame: FrameType, event: str, called: object) -> None:
        own = str(frame.f_globals.get("__name__")).partition(".")[0] in OWN
        if own and counted(event, called) and next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(count_step)
    sys.setprofile(count_step)
    work()
    sys.setprofile(None)
    return next(steps) - 1


def command(module: str, *arguments: object) -> list[str]:
    """Return the command of a worker module, run from the repository root."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a worker and return its completed process."""
    return subprocess.run(command(module, *arguments), cwd=ROOT, check=False, capture_output=True, text=True)


def steps(ran: subprocess.CompletedProcess[str]) -> int:
    """Return the number of steps of a worker that was not killed."""
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def kill(begin: Callable[[int], subprocess.CompletedProcess[str]], at: int) -> None:
    """Run a worker that is killed at step `at`, or near its end if it has fewer steps.

    `begin` restores the state and runs the worker with the given step.
    """
    for _ in range(TRIES):
        ran = begin(at)
        if ran.returncode == -signal.SIGKILL:
            return
        at = steps(ran) * 99 // 100
    raise AssertionError(f"not killed at step {at}")
