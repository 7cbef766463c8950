"""Durability: what was written stays written when the power goes."""

import io
import os
from pathlib import Path
from typing import IO


def sync(file: IO[bytes] | io.TextIOWrapper) -> None:
    """Bring what was written to a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_path(path: Path) -> None:
    """The same for a closed file; for a folder, make the names in it as durable as the files they name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
