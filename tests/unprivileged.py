"""A process that really may not write what it may only read, also where the tests are run by root."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

_DROP = 24
"""Linux: `PR_CAPBSET_DROP`."""
_OVERRIDES = (1, 2)
"""Linux: `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`, by which rights stop no root."""


def start(program: str, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Run a Python program that rights stop; talk to it by its pipes. Skips where root cannot give its powers up."""
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            preexec_fn=_give_up if os.geteuid() == 0 else None,  # noqa: PLW1509 - no other thread holds a lock for it
        )
    except subprocess.SubprocessError:
        pytest.skip("root cannot give its powers up here")


def _give_up() -> None:
    libc = ctypes.CDLL(None)
    if any(libc.prctl(_DROP, power, 0, 0, 0) for power in _OVERRIDES):
        raise PermissionError


def let_write(root: Path) -> None:
    """Give the owner all rights to a folder and what is in it."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def let_read(root: Path) -> None:
    """Leave the owner the right to read a folder and what is in it, and no other."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
