"""Compression: files that an agent keeps compressed or as one document, read as the lines they hold."""

import io
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .document import unfolded

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SUFFIX = ".zst"
DOCUMENT = ".json"
_log = logging.getLogger(__name__)


def opened(path: Path) -> BinaryIO:
    """The lines of a file: decompressed when its name ends in `.zst`, one a record when in `.json`; raises `OSError`.

    A compressed file that is damaged or cut short ends where it can no longer be read. Its bytes stay archived as
    they are.
    """
    return shown(path.open("rb"), path)


def shown(file: BinaryIO, path: Path) -> BinaryIO:
    """The lines of an open file, by the name that the agent gave it."""
    if path.suffix == DOCUMENT:
        return unfolded(file)
    return io.BufferedReader(_Unpacked(file, path)) if path.suffix == SUFFIX else file


class _Unpacked(io.RawIOBase):
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
