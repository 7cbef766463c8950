"""Checksums of an uncompressed raw copy.

CRC-32 detects every single-bit error and runs at 3 GB/s in the standard library (BLAKE2b runs at 0.7 GB/s). When bytes
are appended, the CRC of the last block is continued. Therefore, only the new bytes are read, and earlier damage stays
visible. The checksums protect against faulty disks and memory, not against attackers.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from ...core.errors import CopyDamaged
from ..store import Source

BLOCK: Final = 1 << 16
"""Block size in bytes: the number of bytes that one checksum covers. The last block of a copy may be shorter."""
_SIZE: Final = struct.Struct("<Q")


class Checksums:
    """Checksums of the blocks of a copy, and the number of bytes (`size`) that they cover."""

    def __init__(self, packed: bytes = b"") -> None:
        """Load packed checksums, or start without checksums."""
        self.size: int = _SIZE.unpack_from(packed)[0] if packed else 0
        count = max(0, len(packed) - _SIZE.size) // 4
        self.sums = list(struct.unpack_from(f"<{count}I", packed, _SIZE.size)) if packed else []

    def pack(self) -> bytes:
        """Return the serialized checksums: the covered size in 8 bytes, then 4 bytes per block."""
        return _SIZE.pack(self.size) + struct.pack(f"<{len(self.sums)}I", *self.sums)

    def add(self, piece: bytes) -> None:
        """Update the checksums with the next bytes of the copy."""
        view = memoryview(piece)
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
        """Update the checksums with the bytes of a file up to offset `end`. Skip bytes that are already covered."""
        file.seek(self.size)
        while self.size < end and (piece := file.read(min(BLOCK, end - self.size))):
            self.add(piece)

    def verified(self, file: BinaryIO, path: Path) -> Iterator[bytes]:
        """Yield the covered bytes of a file block by block, after verifying the checksum of each block.

        Raises `CopyDamaged` at the first block that differs or is missing. The error names `path` as the copy.
        """
        left = self.size
        for number, expected in enumerate(self.sums):
            length = min(BLOCK, left)
            piece = file.read(length)
            if len(piece) < length:
                raise CopyDamaged(path, f"{left - len(piece)} of {self.size} bytes are missing")
            if crc32(piece) != expected:
                first = number * BLOCK
                raise CopyDamaged(path, f"bytes {first}-{first + length - 1} differ from the archived content")
            yield piece
            left -= length


def checksums_of(file: BinaryIO) -> bytes:
    """Return the packed checksums of a whole file, read from its start."""
    sums = Checksums()
    file.seek(0)
    while piece := file.read(BLOCK):
        sums.add(piece)
    return sums.pack()


def verify(file: BinaryIO, packed: bytes, path: Path) -> None:
    """Raise `CopyDamaged` unless the checksums match a file, read from its current position."""
    for _ in Checksums(packed).verified(file, path):
        pass


def continued(source: Source | None, path: Path, size: int) -> Checksums:
    """Return the stored checksums of an uncompressed copy of `size` bytes, so that an append can continue them.

    The result is empty if `source` is None or has no checksums. Raises `CopyDamaged` if the copy is shorter than the
    number of bytes that its checksums cover.
    """
    sums = Checksums(source.sums if source is not None and size else b"")
    if size < sums.size:
        raise CopyDamaged(path, f"{sums.size - size} of {sums.size} bytes are missing")
    return sums


def damaged_blocks(file: BinaryIO, packed: bytes) -> dict[int, int]:
    """Map the number of each damaged block (first block: 0) to the checksum of its current bytes."""
    expected = Checksums(packed).sums
    return {number: current for number, current in enumerate(_block_sums(file, packed)) if current != expected[number]}


def updated(file: BinaryIO, packed: bytes, damaged: Mapping[int, int]) -> bytes:
    """Return new checksums for a file in which some bytes were overwritten without a change of length.

    For each block in `damaged`, the result contains a checksum that does not match the block, so that the damage stays
    visible.
    """
    sums = Checksums(packed)
    for number, checksum in enumerate(_block_sums(file, packed)):
        if number not in damaged:
            sums.sums[number] = checksum
        elif checksum != damaged[number]:  # The old checksum would reveal something about the erased bytes.
            sums.sums[number] = ~checksum & 0xFFFFFFFF
    return sums.pack()


def _block_sums(file: BinaryIO, packed: bytes) -> Iterator[int]:
    size = Checksums(packed).size
    return (crc32(file.read(min(BLOCK, size - start))) for start in range(0, size, BLOCK))
