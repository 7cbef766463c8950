"""Durability: what was written stays written when the power goes."""

import io
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO
from zlib import crc32


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


def with_checksum(line: bytes) -> bytes:
    """Return a line with its CRC-32 and a line end, as small files hold it."""
    return b"%s %08x\n" % (line, crc32(line))


def without_checksum(line: bytes) -> bytes | None:
    """Return what `with_checksum` was given; None where the line is damaged."""
    content = line.rstrip(b"\n").rpartition(b" ")[0]
    return content if line.rstrip(b"\n") + b"\n" == with_checksum(content) else None


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
