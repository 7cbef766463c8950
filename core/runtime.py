"""Processors, progress of a stage, context managers that are closed, and writes that survive a power failure."""

import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Self, TypeVar
from zlib import crc32

_T = TypeVar("_T")


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


Progress = Callable[[int, int], None]
"""Function called with the number of finished steps and the total number of steps."""


Reporter = Callable[[str, int, int], None]
"""Function called with the name of a stage, its number of finished steps and its total number of steps."""


def silent(*_values: object) -> None:
    """Ignore all progress reports. This function can be used as `Progress` and as `Reporter`."""


@contextmanager
def stage(report: Reporter, name: str) -> Generator[None]:
    """Report a stage with one step: 0 of 1 at the start of the block, and 1 of 1 at its end."""
    report(name, 0, 1)
    yield
    report(name, 1, 1)


def never() -> bool:
    """Return False. Parameters named `should_stop` have this function as their default."""
    return False


def read_data(module: str, name: str, kind: type[_T]) -> _T:
    """Return the content of a JSON file that is packaged beside a module. `module` is its `__file__`."""
    import msgspec  # Processes that parse only start faster without it.

    return msgspec.json.decode(Path(module).with_name(name).read_bytes(), type=kind)


class Closing(ABC):
    """Context manager that calls `close` at the end of the block."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def sync(file: IO[bytes] | io.TextIOWrapper) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_path(path: Path) -> None:
    """Flush a closed file to the disk. For a folder, flush its directory entries."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def with_checksum(line: bytes) -> bytes:
    """Return a line with its CRC-32 and a line end, as stored in small state files."""
    return b"%s %08x\n" % (line, crc32(line))


def without_checksum(line: bytes) -> bytes | None:
    """Return the line without its checksum, or None if the line is damaged."""
    content = line.rstrip(b"\n").rpartition(b" ")[0]
    return content if line.rstrip(b"\n") + b"\n" == with_checksum(content) else None


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """Yield a temporary file that atomically and durably replaces `path` at the end of the block.

    The file is readable only by its owner.

    Raises:
        OSError: The file cannot be written. The previous file is kept.
    """
    temporary = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            sync(file)
        temporary.replace(path)
        sync_path(path.parent)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
