"""The seekable form of a file: compressed frames that each stand alone, and a table that finds them by byte and line.

It is laid out as zstd's seekable format, so `zstd -d` gives the file back without us::

    frame ... frame | ours: SHA-256 of the content, check of the table, lines per frame | table of frame sizes

Each frame carries its own checksum. What is damaged is found when it is read, and costs its frame alone; without its
table a file is still read, frame by frame.
"""

import hashlib
import io
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import CopyDamaged
from ..files.packed import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FRAME: Final = 512 * 1024
"""Bytes of content in a frame, all but the last. Larger ones pack hardly better and take longer to read a line from."""

_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 9,
    zstd.CompressionParameter.checksum_flag: 1,
}
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_OURS: Final = 0x184D2A5C  # magic numbers 0x184D2A50 to 5F are frames that every zstd reader skips
_TABLE: Final = 0x184D2A5E
_SEEKABLE: Final = 0x8F92EAB1
_AFTER: Final = struct.pack("<I", _OURS)
_SKIPPED, _FOOTER = struct.Struct("<II"), struct.Struct("<IBI")
_DIGEST, _CHECK = 32, 8


class Table(Struct, frozen=True):
    """Where each frame begins, in the file (`at`) and in the content (`starts`), both with the end as a last element.

    `lines` counts the line ends before each frame. It is empty, and so is the `digest` of the whole content, where the
    table was lost and the frames were found one by one. `whole` is False when the end of the file is missing too.
    `extra` counts the foreign bytes after the table.
    """

    at: tuple[int, ...]
    starts: tuple[int, ...]
    lines: tuple[int, ...] = ()
    digest: bytes = b""
    whole: bool = True
    extra: int = 0

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return self.starts[-1]


def pack(source: BinaryIO, target: BinaryIO) -> Table:
    """Write the seekable form of everything in `source`, holding a frame at a time."""
    packer, digest = zstd.ZstdCompressor(options=_OPTIONS), hashlib.sha256()
    frames: list[tuple[int, int]] = []
    lines: list[int] = []
    while piece := source.read(FRAME):
        frame = packer.compress(piece, packer.FLUSH_FRAME)
        target.write(frame)
        digest.update(piece)
        frames.append((len(frame), len(piece)))
        lines.append(piece.count(b"\n"))
    target.write(_trailer(frames, lines, digest.digest()))
    return _table(frames, lines, digest.digest())


class Seekable(io.BufferedReader):
    """The content of a file in seekable form, read like the file it was; where it is damaged, `CopyDamaged`."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError`, or `CopyDamaged` where no frame can be read at all."""
        self._frames = _Frames(path)
        self.table = self._frames.table
        super().__init__(self._frames, 64 * 1024)

    def start_of(self, line: int) -> int | None:
        """The byte at which a line begins (1-based, at most one past the last); None where the table was lost."""
        before = self.table.lines
        if line == 1 or not before:
            return 0 if line == 1 else None
        frame = bisect_left(before, line - 1) - 1
        data, at = self._frames.content(frame), -1
        for _ in range(line - 1 - before[frame]):
            at = data.index(b"\n", at + 1)
        return self.table.starts[frame] + at + 1

    def salvaged(self) -> bytes:
        """All lines of which no byte is damaged, and the end when it has none."""
        held, lost = bytearray(), False
        for number in range(len(self.table.starts) - 1):
            try:
                content = self._frames.content(number)
            except CopyDamaged:
                del held[held.rfind(b"\n") + 1 :]
                lost = True
                continue
            held += content.partition(b"\n")[2] if lost else content
            lost = lost and b"\n" not in content
        return bytes(held)

    def form_damage(self) -> str:
        """Return the damage to the file outside its frames; empty for none."""
        if self.table.extra:
            return f"{self.table.extra} bytes after its end are not part of it; all of it can be read"
        return "" if self.table.digest else self._frames.cut().reason

    def damage(self) -> Iterator[CopyDamaged]:
        """What of the content cannot be read, frame by frame, and whether the rest is what was packed."""
        digest, broken = hashlib.sha256(), False
        for number in range(len(self.table.starts) - 1):
            try:
                digest.update(self._frames.content(number))
            except CopyDamaged as found:
                broken = True
                yield found
        if reason := self.form_damage():
            yield CopyDamaged(self._frames.path, reason)
        if self.table.digest and not broken and digest.digest() != self.table.digest:
            yield CopyDamaged(self._frames.path, "its content is not what was sealed")


class _Frames(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=0)
        try:
            self.table = _load(self._file.fileno()) or _recover(self._file.readall())
        except BaseException:
            self._file.close()
            raise
        self._place = 0
        self._held, self._data = -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = (0, self._place, self.table.size)[whence]
        self._place = max(0, origin + offset)
        return self._place

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if self._place >= self.table.size:
            if not self.table.whole:
                raise self.cut()
            return 0
        frame = bisect_right(self.table.starts, self._place) - 1
        rest = memoryview(self.content(frame))[self._place - self.table.starts[frame] :]
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(rest))
        view[:count] = rest[:count]
        self._place += count
        return count

    def content(self, frame: int) -> bytes:
        """What a frame holds."""
        if self._held != frame:
            at, end = self.table.at[frame : frame + 2]
            try:
                data = zstd.decompress(os.pread(self._file.fileno(), end - at, at))
            except (zstd.ZstdError, MemoryError) as error:
                raise self._broken(frame, str(error)) from None
            if len(data) != self.table.starts[frame + 1] - self.table.starts[frame]:
                raise self._broken(frame, "it holds less than it should")
            self._held, self._data = frame, data
        return self._data

    def cut(self) -> CopyDamaged:
        """The error that tells of a lost end."""
        what = "its table of contents is damaged" if self.table.whole else "its end is missing"
        return CopyDamaged(self.path, f"{what}; {self.table.size} bytes before it can be read")

    def _broken(self, frame: int, why: str) -> CopyDamaged:
        first, last = self.table.starts[frame], self.table.starts[frame + 1] - 1
        lines = self.table.lines
        where = f"lines {lines[frame] + 1}-{lines[frame + 1] + 1}, " if lines else ""
        return CopyDamaged(self.path, f"{where}bytes {first}-{last} of the content are damaged ({why.rstrip('.')})")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _table(frames: list[tuple[int, int]], lines: list[int], digest: bytes, *, whole: bool = True) -> Table:
    packed, plain = zip(*frames, strict=True) if frames else ((), ())
    at, starts = tuple(accumulate(packed, initial=0)), tuple(accumulate(plain, initial=0))
    return Table(at, starts, tuple(accumulate(lines, initial=0)) if digest else (), digest, whole)


def _trailer(frames: list[tuple[int, int]], lines: list[int], digest: bytes) -> bytes:
    sizes = struct.pack(f"<{2 * len(frames)}I", *(size for frame in frames for size in frame))
    counts = struct.pack(f"<{len(lines)}I", *lines)
    ours = digest + _check(digest, counts, sizes) + counts
    table = sizes + _FOOTER.pack(len(frames), 0, _SEEKABLE)
    return _SKIPPED.pack(_OURS, len(ours)) + ours + _SKIPPED.pack(_TABLE, len(table)) + table


def _trailer_size(count: int) -> int:
    return 2 * _SKIPPED.size + _DIGEST + _CHECK + 12 * count + _FOOTER.size


def _check(digest: bytes, counts: bytes, sizes: bytes) -> bytes:
    return hashlib.blake2b(digest + counts + sizes, digest_size=_CHECK).digest()


def _load(descriptor: int) -> Table | None:
    """The table at the end of a file; None where it is missing or not what was written."""
    size = os.fstat(descriptor).st_size
    footer = os.pread(descriptor, _FOOTER.size, max(0, size - _FOOTER.size))
    if len(footer) < _FOOTER.size:
        return None
    count, _, magic = _FOOTER.unpack(footer)
    length = _trailer_size(count)
    if magic != _SEEKABLE or length > size:
        return None
    return _read_trailer(os.pread(descriptor, length, size - length), count, size - length)


def _read_trailer(trailer: bytes, count: int, end: int) -> Table | None:
    """Return the table of `count` frames that end at byte `end`; None if it is damaged."""
    digest = trailer[_SKIPPED.size :][:_DIGEST]
    counts = trailer[_SKIPPED.size + _DIGEST + _CHECK :][: 4 * count]
    sizes = trailer[-_FOOTER.size - 8 * count : -_FOOTER.size]
    flat = struct.unpack(f"<{2 * count}I", sizes)
    frames = list(zip(flat[::2], flat[1::2], strict=True))
    lines = list(struct.unpack(f"<{count}I", counts))
    if trailer != _trailer(frames, lines, digest) or sum(flat[::2]) != end:
        return None
    return _table(frames, lines, digest)


def _recover(data: bytes) -> Table:
    """The frames that are found one after the other where there is no table to trust; all but the last were full."""
    frames, at = list[tuple[int, int]](), 0
    while found := _frame_at(data, at):
        frames.append(found)
        at += found[0]
    count = len(frames)
    length = _trailer_size(count)
    if len(data) > at + length and (table := _read_trailer(data[at : at + length], count, at)):
        return replace(table, extra=len(data) - at - length)
    sizes = [(packed, FRAME) for packed, _ in frames[:-1]] + frames[-1:]
    return _table(sizes, [], b"", whole=data[at : at + 4] == _AFTER)


def _frame_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Bytes and content of the frame that begins here; one that cannot be read reaches to the next one."""
    if data.startswith(_AFTER, at):
        return None
    rest = memoryview(data)[at:]
    try:
        packed = zstd.get_frame_size(rest)
        return packed, len(zstd.decompress(rest[:packed]))
    except (zstd.ZstdError, MemoryError):
        following = data.find(_MAGIC, at + 1)
        return (following - at, FRAME) if following > 0 else None
