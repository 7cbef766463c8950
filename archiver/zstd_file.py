"""Files as lines: plain files, files that agents compressed with zstd, and JSON documents.

A keyed hash of the content of a file detects changes.
"""

import io
import logging
import os
import stat
import struct
import sys
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from .lines import document_lines

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


__all__ = [
    "BUFFER",
    "DOCUMENT",
    "SUFFIX",
    "DecompressedFile",
    "as_lines",
    "compress_lines",
    "content_hash",
    "opened",
    "zstd",
]

_LEVEL: Final = 19
_FRAME_HEADER: Final = struct.Struct("<II")
_SKIPPABLE: Final = 0x184D2A50
"""Magic bytes of a skippable frame (RFC 8878, 3.1.2)."""
_log = logging.getLogger(__name__)


def compress_lines(lines: Iterable[bytes], target: BinaryIO, size: int) -> None:
    """Compress lines into an empty file. Pad the file with a skippable frame to at least `size` bytes."""
    with zstd.ZstdFile(target, "wb", level=_LEVEL) as packed:
        packed.writelines(lines)
    missing = size - target.tell()
    if missing > 0:
        padding = max(0, missing - _FRAME_HEADER.size)
        target.write(_FRAME_HEADER.pack(_SKIPPABLE, padding) + bytes(padding))


class DecompressedFile(io.RawIOBase):
    """Decompressed content of a file. If the file is damaged, the content ends at the first unreadable byte."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._packed, self._path = packed, path
        self._plain = zstd.ZstdFile(packed)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read decompressed bytes into a buffer, and return the number of bytes."""
        try:
            return self._plain.readinto(buffer)
        except (EOFError, zstd.ZstdError) as error:
            _log.warning("%s is damaged after %d bytes: %s", os.fsencode(self._path), self._plain.tell(), error)
            return 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset in the decompressed content."""
        try:
            return self._plain.seek(offset, whence)
        except (EOFError, zstd.ZstdError):
            return self._plain.tell()

    def tell(self) -> int:
        """Return the current offset in the decompressed content."""
        return self._plain.tell()

    def close(self) -> None:
        """Close this file and the compressed file."""
        if not self.closed:
            self._plain.close()
            self._packed.close()
        super().close()


SUFFIX: Final = ".zst"
DOCUMENT: Final = ".json"
BUFFER: Final = 1 << 18
"""Size of the read buffer in bytes. Python's default of 8 KiB more than doubles the time to split long lines."""


def opened(path: Path) -> BinaryIO:
    """Open a file as a stream of lines. Raises `OSError`.

    A file with the suffix `.zst` is decompressed, up to the first unreadable byte. A file with the suffix `.json` is
    converted to one record per line.
    """
    return as_lines(path.open("rb", BUFFER), path)


def as_lines(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a stream of lines for an open file, converted by the suffix of its path as in `opened`."""
    if path.suffix == DOCUMENT:
        return document_lines(file)
    if path.suffix == SUFFIX:
        return io.BufferedReader(DecompressedFile(file, path))
    return file


_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of a file to hash. Hashing a file of this size takes about 1 ms."""


def content_hash(file: str, key: bytes) -> bytes | None:
    """Return the keyed hash of the content of `file`, or None if the file is too large or cannot be read.

    If the file does not exist, return empty bytes.
    """
    try:
        known = Path(file).stat()
        if not stat.S_ISREG(known.st_mode) or known.st_size > _BYTES_MAX:
            return None
        return blake2b(Path(file).read_bytes(), key=key, digest_size=16).digest()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError):
        return None
