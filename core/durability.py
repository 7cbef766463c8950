"""Durability: what was written stays written when the power goes."""

import io
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO


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


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file to write, its owner's alone, that then stands where another stood, at once and durably.

    What stood there stays where it cannot be written: raises `OSError`.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            sync(file)
        beside.replace(path)
        sync_path(path.parent)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
