"""Process that cannot write read-only files, even when the tests run as root."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

_DROP = 24
"""Linux: `PR_CAPBSET_DROP`."""
_OVERRIDES = (1, 2)
"""Linux: `CAP_DAC_OVERRIDE` and `CAP_DAC_READ_SEARCH`, which bypass permissions."""


def start(program: str, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start a Python program without these capabilities and return its process.

    Skip the test if root cannot drop the capabilities.
    """
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
    """Give the owner all permissions for a folder and its content."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def let_read(root: Path) -> None:
    """Reduce the owner's permissions for a folder and its content to reading."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
