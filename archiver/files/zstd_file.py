"""Files that agents compressed with zstd."""

import io
import logging
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["DecompressedFile", "compress_lines", "zstd"]

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
