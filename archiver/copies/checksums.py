"""Checksums of the blocks of a raw copy, computed while the copy is written.

CRC-32 detects every single-bit error and runs at 3 GB/s in the standard library (BLAKE2b at 0.7 GB/s). It can be
continued from its last value, so that an append costs only the new bytes and never certifies the bytes before them. It
protects against faulty disks and memory, not against attackers.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from ...core.errors import CopyDamaged
from ..store import Source

BLOCK: Final = 1 << 16
"""Bytes a checksum covers; the last block of a copy may be shorter."""
_SIZE: Final = struct.Struct("<Q")


class Checksums:
    """The checksums of a copy and the number of bytes they cover."""

    def __init__(self, packed: bytes = b"", *, compared: bool = True, unknown: bool = False) -> None:
        """Continue packed checksums, or start with no bytes. With `unknown` nothing is computed."""
        self._compared, self._unknown = compared, unknown
        self.size: int = _SIZE.unpack_from(packed)[0] if packed else 0
        count = max(0, len(packed) - _SIZE.size) // 4
        self.sums = list(struct.unpack_from(f"<{count}I", packed, _SIZE.size)) if packed else []

    def pack(self) -> bytes:
        """Return the form that is stored: the size in 8 bytes, then 4 bytes a block."""
        return _SIZE.pack(self.size) + struct.pack(f"<{len(self.sums)}I", *self.sums)

    def recorded(self) -> tuple[bytes, bool]:
        """Return what `Source` has as `sums` and `compared`."""
        return (b"", False) if self._unknown else (self.pack(), self._compared)

    def add(self, piece: bytes) -> None:
        """Cover the next bytes."""
        view = memoryview(b"" if self._unknown else piece)
        while view:
            used = self.size % BLOCK
            part = view[: BLOCK - used]
            if used:
                self.sums[-1] = crc32(part, self.sums[-1])
            else:
                self.sums.append(crc32(part))
            self.size += len(part)
            view = view[len(part) :]

    def extend(self, file: BinaryIO, end: int) -> None:
        """Cover the bytes of a file up to `end`, read from the first one not yet covered."""
        if self._unknown:
            return
        file.seek(self.size)
        while self.size < end and (piece := file.read(min(BLOCK, end - self.size))):
            self.add(piece)

    def cut(self, file: BinaryIO, path: Path, end: int) -> None:
        """Cover a file's bytes before `end` alone, because those after it are about to change.

        Raises `CopyDamaged` where the block that holds byte `end` is damaged.
        """
        if end < self.size:
            number = end // BLOCK
            held = min(BLOCK, self.size - number * BLOCK)
            file.seek(number * BLOCK)
            if crc32(file.read(held)) != self.sums[number]:
                raise _damaged(path, number, held)
            self.size = number * BLOCK
            del self.sums[number:]
        self.extend(file, end)

    def verified(self, file: BinaryIO, path: Path) -> Iterator[bytes]:
        """Yield the covered bytes of a file, each block once its checksum was verified.

        Raises `CopyDamaged` at the first block that differs or is missing; `path` names the copy in it.
        """
        left = self.size
        for number, expected in enumerate(self.sums):
            held = min(BLOCK, left)
            piece = file.read(held)
            if len(piece) < held:
                missing = left - len(piece)
                raise CopyDamaged(path, f"{missing} of {self.size} bytes are missing")
            if crc32(piece) != expected:
                raise _damaged(path, number, held)
            yield piece
            left -= held


def damaged(file: BinaryIO, packed: bytes) -> dict[int, int]:
    """Return the blocks of a file that do not have their checksums, by number, each with the checksum it has."""
    sums = (crc32(file.read(held)) for held in _lengths(packed))
    return {number: found for number, found in enumerate(sums) if found != Checksums(packed).sums[number]}


def rewritten(file: BinaryIO, packed: bytes, damaged: Mapping[int, int]) -> bytes:
    """Return the checksums of a file whose bytes changed and whose length did not.

    A block that was `damaged` never gets a checksum that it has.
    """
    sums = Checksums(packed)
    for number, held in enumerate(_lengths(packed)):
        found = crc32(file.read(held))
        if number not in damaged:
            sums.sums[number] = found
        elif found != damaged[number]:
            sums.sums[number] = ~found & 0xFFFFFFFF
    return sums.pack()


def _lengths(packed: bytes) -> Iterator[int]:
    sums = Checksums(packed)
    return (min(BLOCK, sums.size - start) for start in range(0, sums.size, BLOCK))


def continued(known: Source | None, path: Path, size: int) -> Checksums:
    """Return the checksums to go on with in an uncompressed copy of `size` bytes.

    A copy without a row is read whole; one whose row has no checksums yet stays without them, because nobody compared
    its bytes. Raises `CopyDamaged` where the copy is shorter than recorded.
    """
    if known is None or not size:
        return Checksums()
    sums = Checksums(known.sums, compared=known.compared, unknown=not known.sums)
    if size < sums.size:
        raise CopyDamaged(path, f"{sums.size - size} of {sums.size} bytes are missing")
    return sums


def of(file: BinaryIO) -> bytes:
    """Return the packed checksums of all of a file, read from its start."""
    sums = Checksums()
    file.seek(0)
    while piece := file.read(BLOCK):
        sums.add(piece)
    return sums.pack()


def verify(file: BinaryIO, packed: bytes, path: Path) -> None:
    """Raise `CopyDamaged` unless the checksums match a file, read from its current position."""
    for _ in Checksums(packed).verified(file, path):
        pass


def _damaged(path: Path, number: int, held: int) -> CopyDamaged:
    first = number * BLOCK
    return CopyDamaged(path, f"bytes {first}-{first + held - 1} are not what was archived")
