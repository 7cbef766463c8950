"""A process that kills itself at one of its own steps, and the test that chooses at which.

A step is what Palaver's code does, or the standard library's where it works on files for it. What an import does is
none, nor is how often a thread looks whether it may go on: both differ from one run to the next.
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
"""Whether an event of `sys.setprofile` is a step, by its name and the function that it is about."""


def every(_event: str, _called: object) -> bool:
    """Each call and each return."""
    return True


def fused(work: Callable[[], object], at: int, counted: Counted = every) -> int:
    """Do the work, and be killed at its step number `at`, unless there are fewer: how many there are."""
    steps = count(1)

    def burn(frame: FrameType, event: str, called: object) -> None:
        own = str(frame.f_globals.get("__name__")).partition(".")[0] in OWN
        if own and counted(event, called) and next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(burn)
    sys.setprofile(burn)
    work()
    sys.setprofile(None)
    return next(steps) - 1


def command(module: str, *arguments: object) -> list[str]:
    """What runs a worker: a module of these tests, from their root."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a worker to its end, which may be a violent one."""
    return subprocess.run(command(module, *arguments), cwd=ROOT, check=False, capture_output=True, text=True)


def steps(ran: subprocess.CompletedProcess[str]) -> int:
    """How many steps a worker took that was not killed, and printed what `fused` gave it."""
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def kill(begin: Callable[[int], subprocess.CompletedProcess[str]], at: int) -> None:
    """Have a worker killed at its step `at`, or close to its end if this time it takes fewer.

    `begin` puts everything back as it was and runs the worker with the number it is given.
    """
    for _ in range(TRIES):
        ran = begin(at)
        if ran.returncode == -signal.SIGKILL:
            return
        at = steps(ran) * 99 // 100
    raise AssertionError(f"not killed at step {at}")
