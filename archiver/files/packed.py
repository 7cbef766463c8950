"""Packed files: what an agent itself compresses, by zstd."""

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

__all__ = ["Unpacked", "repack", "zstd"]

_LEVEL: Final = 19
_SKIPPED: Final = struct.Struct("<II")
_SKIPPABLE: Final = 0x184D2A50
"""Begins a frame that zstd passes over (RFC 8878, 3.1.2)."""
_log = logging.getLogger(__name__)


def repack(lines: Iterable[bytes], target: BinaryIO, size: int) -> None:
    """Compress lines into an empty file, and fill it up where it would be shorter than `size` bytes."""
    with zstd.ZstdFile(target, "wb", level=_LEVEL) as packed:
        packed.writelines(lines)
    missing = size - target.tell()
    if missing > 0:
        room = max(0, missing - _SKIPPED.size)
        target.write(_SKIPPED.pack(_SKIPPABLE, room) + bytes(room))


class Unpacked(io.RawIOBase):
    """What a packed file holds. One that is damaged or cut short ends where it can no longer be read."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._packed, self._path = packed, path
        self._plain = zstd.ZstdFile(packed)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        try:
            return self._plain.readinto(buffer)
        except (EOFError, zstd.ZstdError) as error:
            _log.warning("%s is damaged after %d bytes: %s", os.fsencode(self._path), self._plain.tell(), error)
            return 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        try:
            return self._plain.seek(offset, whence)
        except (EOFError, zstd.ZstdError):
            return self._plain.tell()

    def tell(self) -> int:
        return self._plain.tell()

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._packed.close()
        super().close()
