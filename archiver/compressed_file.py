"""Compressed files: independent zstd frames, and a table to find the frame of a byte or of a line.

Raw copies and backups are compressed in this way. The layout is zstd's seekable format, so that `zstd -d` restores the
file without Palaver::

    frame ... frame | SHA-256 of the content, checksum of the table, lines per frame | table of frame sizes

Each frame has its own checksum, so damage is detected when the frame is read, and other frames stay readable. If the
table is lost, the file is scanned for its frames.
"""

import hashlib
import io
import os
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import CopyDamaged
from ..core.runtime import sync

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FRAME: Final = 512 * 1024
"""Content bytes per frame. The last frame may be shorter.

Larger frames hardly improve compression and slow down reading a single line.
"""

_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 9,
    zstd.CompressionParameter.checksum_flag: 1,
}
_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_METADATA: Final = 0x184D2A5C  # zstd skips frames with magic numbers 0x184D2A50 to 0x184D2A5F.
_TABLE: Final = 0x184D2A5E
_SEEKABLE_MAGIC: Final = 0x8F92EAB1
_METADATA_MAGIC: Final = struct.pack("<I", _METADATA)
_HEADER, _FOOTER = struct.Struct("<II"), struct.Struct("<IBI")
_DIGEST, _CHECK = 32, 8


class FrameTable(Struct, frozen=True):
    """Positions of the frames of a compressed file, in bytes.

    `offsets` contains the start of each frame in the file, and `starts` its start in the decompressed content. The last
    element of both is the end. `lines` counts the line ends before each frame. If the table was lost and the file was
    scanned for frames, `lines` and the SHA-256 `digest` of the content are empty. `has_end` is false if the file ends
    before the table, so that frames can be missing too. `extra` counts unexpected bytes after the table.
    """

    offsets: tuple[int, ...]
    starts: tuple[int, ...]
    lines: tuple[int, ...] = ()
    digest: bytes = b""
    has_end: bool = True
    extra: int = 0

    @property
    def size(self) -> int:
        """Size of the content in bytes."""
        return self.starts[-1]


def compress(source: BinaryIO, target: BinaryIO, frame_size: int = 0) -> FrameTable:
    """Write all bytes of `source` to `target` as a compressed file, with one frame in memory at a time.

    `frame_size` is the number of content bytes per frame, by default `FRAME`.
    """
    compressor, digest = zstd.ZstdCompressor(options=_OPTIONS), hashlib.sha256()
    frames: list[tuple[int, int]] = []
    lines: list[int] = []
    while piece := source.read(frame_size or FRAME):
        frame = compressor.compress(piece, compressor.FLUSH_FRAME)
        target.write(frame)
        digest.update(piece)
        frames.append((len(frame), len(piece)))
        lines.append(piece.count(b"\n"))
    target.write(_trailer(frames, lines, digest.digest()))
    return _frame_table(frames, lines, digest.digest())


def compress_file(path: Path, made: Path, frame_size: int = 0) -> tuple[int, int]:
    """Compress a file durably, and return the sizes in bytes before and after. For `frame_size`, see `compress`.

    Raises `OSError`, and `CopyDamaged` if the compressed file does not restore the original bytes.
    """
    with path.open("rb") as source, made.open("wb") as target:
        table = compress(source, target, frame_size)
        size = target.tell()
        sync(target)
    with CompressedFile(made) as written:
        if written.table != table or content_digest(written) != table.digest:
            raise CopyDamaged(
                made, "the compressed file does not restore the original bytes", hint="Check the disk, then try again."
            )
    return table.size, size


def content_digest(file: BinaryIO) -> bytes:
    """Return the SHA-256 of a whole file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]


class CompressedFile(io.BufferedReader):
    """Content of a compressed file, read like an ordinary file. Reading damaged content raises `CopyDamaged`."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises `OSError`, or `CopyDamaged` if no frame can be read."""
        self._frames = _Frames(path)
        self.table = self._frames.table
        super().__init__(self._frames, 64 * 1024)

    def start_of(self, line: int) -> int | None:
        """Return the byte offset at which a line starts (first line: 1), or None if the frame table was lost."""
        before = self.table.lines
        if line == 1 or not before:
            return 0 if line == 1 else None
        frame = bisect_left(before, line - 1) - 1
        data, at = self._frames.content(frame), -1
        for _ in range(line - 1 - before[frame]):
            at = data.index(b"\n", at + 1)
        return self.table.starts[frame] + at + 1

    def intact_lines(self) -> bytes:
        """Return all lines without a damaged byte, including a last line without a line end."""
        kept, lost = bytearray(), False
        for number in range(len(self.table.starts) - 1):
            try:
                content = self._frames.content(number)
            except CopyDamaged:
                del kept[kept.rfind(b"\n") + 1 :]
                lost = True
                continue
            kept += content.partition(b"\n")[2] if lost else content
            lost = lost and b"\n" not in content
        return bytes(kept)

    def intact_frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield the intact frames: the start of each in the content, and its bytes.

        If the table was lost, the starts after a damaged frame are unknown, so the first damaged frame is the end.
        """
        for number, start in enumerate(self.table.starts[:-1]):
            try:
                yield start, self._frames.content(number)
            except CopyDamaged:
                if not self.table.digest:
                    return

    def format_damage(self) -> str:
        """Return a description of damage outside the frames, or an empty string if the file is intact."""
        if self.table.extra:
            return f"{self.table.extra} unexpected bytes follow the end of the file, but all content is readable"
        return "" if self.table.digest else self._frames.truncation().reason


class _Frames(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=0)
        try:
            self.table = _load_table(self._file.fileno()) or _find_frames(self._file.readall())
        except BaseException:
            self._file.close()
            raise
        self._place = 0
        self._loaded, self._data = -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = (0, self._place, self.table.size)[whence]
        self._place = max(0, origin + offset)
        return self._place

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if self._place >= self.table.size:
            if not self.table.has_end:
                raise self.truncation()
            return 0
        frame = bisect_right(self.table.starts, self._place) - 1
        remaining = memoryview(self.content(frame))[self._place - self.table.starts[frame] :]
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(remaining))
        view[:count] = remaining[:count]
        self._place += count
        return count

    def content(self, frame: int) -> bytes:
        """Return the decompressed content of a frame."""
        if self._loaded != frame:
            start, end = self.table.offsets[frame : frame + 2]
            try:
                data = zstd.decompress(os.pread(self._file.fileno(), end - start, start))
            except (zstd.ZstdError, MemoryError) as error:
                raise self._damaged(frame, str(error)) from None
            if len(data) != self.table.starts[frame + 1] - self.table.starts[frame]:
                raise self._damaged(frame, "the content is incomplete")
            self._loaded, self._data = frame, data
        return self._data

    def truncation(self) -> CopyDamaged:
        """Return the error for a file whose table is damaged or whose end is missing."""
        problem = "its table of contents is damaged" if self.table.has_end else "its end is missing"
        return CopyDamaged(self.path, f"{problem}; the first {self.table.size} bytes of the content are readable")

    def _damaged(self, frame: int, reason: str) -> CopyDamaged:
        first, last = self.table.starts[frame], self.table.starts[frame + 1] - 1
        lines = self.table.lines
        where = f"lines {lines[frame] + 1}-{lines[frame + 1] + 1}, " if lines else ""
        return CopyDamaged(self.path, f"{where}bytes {first}-{last} of the content are damaged ({reason.rstrip('.')})")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _frame_table(frames: list[tuple[int, int]], lines: list[int], digest: bytes, *, has_end: bool = True) -> FrameTable:
    packed, content = zip(*frames, strict=True) if frames else ((), ())
    offsets, starts = tuple(accumulate(packed, initial=0)), tuple(accumulate(content, initial=0))
    return FrameTable(offsets, starts, tuple(accumulate(lines, initial=0)) if digest else (), digest, has_end)


def _trailer(frames: list[tuple[int, int]], lines: list[int], digest: bytes) -> bytes:
    sizes = struct.pack(f"<{2 * len(frames)}I", *(size for frame in frames for size in frame))
    counts = struct.pack(f"<{len(lines)}I", *lines)
    metadata = digest + hashlib.blake2b(digest + counts + sizes, digest_size=_CHECK).digest() + counts
    table = sizes + _FOOTER.pack(len(frames), 0, _SEEKABLE_MAGIC)
    return _HEADER.pack(_METADATA, len(metadata)) + metadata + _HEADER.pack(_TABLE, len(table)) + table


def _trailer_size(count: int) -> int:
    return 2 * _HEADER.size + _DIGEST + _CHECK + 12 * count + _FOOTER.size


def _load_table(descriptor: int) -> FrameTable | None:
    """Return the frame table at the end of a file, or None if the table is missing or damaged."""
    size = os.fstat(descriptor).st_size
    footer = os.pread(descriptor, _FOOTER.size, max(0, size - _FOOTER.size))
    if len(footer) < _FOOTER.size:
        return None
    count, _, magic = _FOOTER.unpack(footer)
    length = _trailer_size(count)
    if magic != _SEEKABLE_MAGIC or length > size:
        return None
    return _read_trailer(os.pread(descriptor, length, size - length), count, size - length)


def _read_trailer(trailer: bytes, count: int, end: int) -> FrameTable | None:
    """Parse the table of `count` frames, the last of which ends at byte `end`. Return None if the table is damaged."""
    digest = trailer[_HEADER.size :][:_DIGEST]
    counts = trailer[_HEADER.size + _DIGEST + _CHECK :][: 4 * count]
    sizes = trailer[-_FOOTER.size - 8 * count : -_FOOTER.size]
    flat = struct.unpack(f"<{2 * count}I", sizes)
    frames = list(zip(flat[::2], flat[1::2], strict=True))
    lines = list(struct.unpack(f"<{count}I", counts))
    if trailer != _trailer(frames, lines, digest) or sum(flat[::2]) != end:
        return None
    return _frame_table(frames, lines, digest)


def _find_frames(data: bytes) -> FrameTable:
    """Scan a file for frames, and return their table. The scan is needed if the file does not end with a table."""
    frames, at = list[tuple[int, int]](), 0
    while frame := _frame_at(data, at):
        frames.append(frame)
        at += frame[0]
    count = len(frames)
    length = _trailer_size(count)
    if len(data) > at + length and (table := _read_trailer(data[at : at + length], count, at)):
        return replace(table, extra=len(data) - at - length)
    return _frame_table(frames, [], b"", has_end=data[at : at + 4] == _METADATA_MAGIC)


def _frame_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Return the compressed size and the content size of the frame at byte `at`, or None if no frame is left.

    An unreadable frame is assumed to extend to the start of the next frame.
    """
    if data.startswith(_METADATA_MAGIC, at):
        return None
    remaining = memoryview(data)[at:]
    try:
        packed = zstd.get_frame_size(remaining)
        return packed, len(zstd.decompress(remaining[:packed]))
    except (zstd.ZstdError, MemoryError):
        following = data.find(_FRAME_MAGIC, at + 1)
        return (following - at, FRAME) if following > 0 else None
