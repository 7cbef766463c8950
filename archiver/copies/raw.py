"""Raw archive: byte-exact copies of agents' files, made before anything is parsed."""

import errno
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeVar

from msgspec import Struct

from ...core.durability import sync, sync_path
from ...core.errors import CopyDamaged, PathOutsideArchive, SourceUnreadable
from ..files.compression import as_lines
from ..files.lines import split
from ..store import Source
from .checksums import checksums_of, continued, verify
from .compressed_file import CompressedFile
from .raw_copy import COMPRESSED_SUFFIX, UNFINISHED, Copy
from .rewriting import new_content

_PROBE = 4096
"""Bytes compared at the beginning and at the end of a file to distinguish an append from a rewrite."""
_PIECE: Final = 1 << 20
_LINES_PIECE: Final = 1 << 16
Result = TypeVar("Result")
_NO_COPY = {errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR}
_log = logging.getLogger(__name__)


class Stat(Struct, frozen=True):
    """State of a file, used to detect changes: device, inode, modification time in ns, and size in bytes."""

    device: int
    inode: int
    mtime: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "Stat":
        """Return the current state of a file. Raises `OSError`."""
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


class Copied(Struct, frozen=True):
    """State of a copy after it was written durably.

    `stat` is the file's state, with the number of copied bytes as its size. `head` and `tail` are digests of the first
    and last 4 KiB. `sums` contains the packed checksums.
    """

    stat: Stat
    head: bytes
    tail: bytes
    sums: bytes = b""

    def source(self, agent: str, path: Path, archived: str) -> Source:
        """Return a new source for an agent's file and its copy."""
        at = self.stat
        return Source(
            agent, path, archived, at.device, at.inode, at.mtime, at.size, self.head, self.tail, sums=self.sums
        )


class RawArchive:
    """Folder of raw copies. Archive paths are relative to this folder, with forward slashes.

    A copy keeps the same archive path in both storage formats. Content is only appended to a copy, with two exceptions:

    - Lines can be erased.
    - If an agent rewrites a JSON document, and the document still contains all archived content, it replaces the copy.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def is_unchanged(self, source: Source, stat: Stat) -> bool:
        """Return whether a file has not changed since it was last copied, and its copy is complete."""
        known = Stat(source.device, source.inode, source.mtime, source.size)
        return known == stat and self._size(source.archived) >= source.size

    def is_continued(self, source: Source) -> bool:
        """Return whether a file still begins with its archived content, judged by the recorded first and last 4 KiB.

        After a killed ingest run, a copy can be larger than the size in the database. The copy and the file are then
        compared byte by byte. The result is True for an unreadable file, so that its copy stays in use.
        """
        try:
            with source.path.open("rb") as file:
                same = matches(source, file)
        except OSError:
            return True
        return same and (
            self._size(source.archived) <= source.size or self._is_beginning_of(source.archived, source.path)
        )

    def copy(self, path: Path, archived: str, known: Source | None = None, *, rewrite: bool = False) -> Copied:
        """Append the new bytes of a file to its copy, durably. The file must begin with the copy's content.

        With `known`, continue the checksums of this source. Otherwise compute the checksums of the whole copy. With
        `rewrite`, replace the whole copy. A damaged copy is kept under another name and recreated. Raises
        `SourceUnreadable` if the file is missing, is not readable, or does not fit on the disk.
        """
        try:
            with path.open("rb") as source:
                return self.update(archived, lambda copy: self._copy(source, copy, known, rewrite=rewrite))
        except OSError as error:
            raise unreadable(path, error) from None

    def update(self, archived: str, write: Callable[[Copy], Result]) -> Result:
        """Call `write` to update a copy, and return its result. A damaged copy is renamed and replaced by a new one."""
        copy = Copy(self.root, archived)
        copy.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return write(copy)
        except CopyDamaged as damage:
            _log.warning("%s; the damaged copy is kept, and a new copy is made", damage)
            return self.replace(archived, write)

    def replace(self, archived: str, write: Callable[[Copy], Result]) -> Result:
        """Call `write` to create a copy again, and return its result. The old copy is kept, marked as damaged.

        If `write` raises an exception, the old copy stays in use.
        """
        unfinished = self.root / UNFINISHED
        unfinished.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unfinished) as folder:
            made = Copy(Path(folder), archived)
            made.path.parent.mkdir(parents=True)
            result = write(made)
            Copy(self.root, archived).replace(made.path)
        return result

    def _copy(self, source: BinaryIO, copy: Copy, known: Source | None, *, rewrite: bool) -> Copied:
        if rewrite:
            with new_content(copy) as target:
                shutil.copyfileobj(source, target, _PIECE)
        elif kept := _still_compressed(source, copy, known):
            return kept
        copied = _append(source, copy.path, None if rewrite else known)
        for folder in copy.path.parents:  # Sync the folders as well, so that the file name is durable.
            sync_path(folder)
            if folder == self.root:
                break
        return copied

    def describe(self, archived: str) -> Copied:
        """Return the state of a copy that has no row in the database. Raises the errors of `open_raw`."""
        copy = Copy(self.root, archived)
        with copy.open() as file:
            state = (copy.path if copy.path.exists() else copy.compressed_path).stat()
            return _copied(state, _ends(file, copy.size()), copy.size(), checksums_of(file))

    def open(self, archived: str) -> BinaryIO:
        """Open the content of a copy as lines.

        A file that the agent compressed is decompressed. A JSON document is converted to one record per line.

        Raises `OSError`. Opening or reading a damaged copy raises `CopyDamaged`.
        """
        return as_lines(self.open_raw(archived), self.root / archived)

    def open_raw(self, archived: str) -> BinaryIO:
        """Open the content of a copy as the exact bytes that the agent wrote. Raises the errors of `open`."""
        return Copy(self.root, archived).open()

    def lines(self, archived: str, first: int, last: int, near: tuple[int, int]) -> Iterator[bytes]:
        """Yield the lines `first` to `last` of a copy (1-based, inclusive).

        `near` is the number and the byte offset of a line at or before `first`.
        """
        with self.open(archived) as file:
            file.seek(_start_of(file, first, near))
            yield from islice(file, last - first + 1)

    def record(self, archived: str, line: int, near: tuple[int, int]) -> bytes:
        """Return the record that begins on a line of a copy, even if it continues on the next lines.

        `near` has the same meaning as in `lines`.
        """
        with self.open(archived) as file:
            start = _start_of(file, line, near)
            return next((found.data for found in split(file, start_byte=start, start_line=line)), b"")

    def start_of(self, archived: str, line: int, near: tuple[int, int]) -> int:
        """Return the byte offset of a line in a copy's content. `near` has the same meaning as in `lines`."""
        with self.open(archived) as file:
            return _start_of(file, line, near)

    def verify(self, source: Source) -> None:
        """Raise `CopyDamaged` unless a copy matches its checksums. Also raises the errors of `open_raw`."""
        with self.open_raw(source.archived) as file:
            verify(file, source.sums, self.root / source.archived)

    def free_name(self, wanted: str, taken: set[str], source: Path) -> str:
        """Return `wanted`, or `wanted` with a number if this name belongs to another source.

        After a killed ingest run or the loss of the database, a copy can have no row. Such a copy is reused if the file
        begins with its content. Otherwise it is kept, because it can be the only copy of another file.
        """
        path = PurePosixPath(wanted)
        name, number = wanted, 1
        while name in taken or name.endswith(COMPRESSED_SUFFIX) or not self._is_beginning_of(name, source):
            number += 1
            name = str(path.with_name(f"{path.stem}~{number}{path.suffix}"))
        return name

    def resolve(self, path: str) -> Path:
        """Return the real file for a path given by a caller. Raises `PathOutsideArchive`.

        Absolute paths and paths relative to the archive are accepted. Links, `..`, and everything except a regular file
        inside the archive are refused with the same error.
        """
        found = self._inside(path) or self._inside(path + COMPRESSED_SUFFIX)
        if found is None:
            raise PathOutsideArchive(path)
        return found

    def _inside(self, path: str) -> Path | None:
        try:
            root = self.root.resolve(strict=True)
            asked = Path(path)
            asked = root / (asked.relative_to(self.root) if asked.is_relative_to(self.root) else asked)
            real = asked.resolve(strict=True)
            inside = real == asked and real.is_relative_to(root) and real.is_file()
        except (OSError, ValueError, RuntimeError):
            return None
        return real if inside else None

    def relative(self, path: str) -> str:
        """Return the archive path of an existing copy for a path given by a caller. Raises `PathOutsideArchive`."""
        return self.resolve(path).relative_to(self.root.resolve()).as_posix().removesuffix(COMPRESSED_SUFFIX)

    def archive_path(self, path: str) -> str:
        """Return the archive path for a path given by a caller, even if no copy exists there."""
        asked = Path(path.encode("utf-8", "replace").decode())
        below = next((each for each in (self.root, self.root.resolve()) if asked.is_relative_to(each)), None)
        return (asked if below is None else asked.relative_to(below)).as_posix().removesuffix(COMPRESSED_SUFFIX)

    def _size(self, archived: str) -> int:
        try:
            return Copy(self.root, archived).size()
        except CopyDamaged:
            return 0

    def _is_beginning_of(self, archived: str, path: Path) -> bool:
        """Return whether a file begins with the full content of a copy. Erased lines of the copy are not compared.

        The result is also True if no copy exists under this name, for example because the name is too long.
        """
        try:
            with self.open_raw(archived) as copy, path.open("rb") as original:
                while block := copy.read(_PIECE):
                    if (other := original.read(len(block))) != block and not _differs_in_erased_lines(block, other):
                        return False
        except CopyDamaged:
            return False
        except OSError as error:
            return error.errno in _NO_COPY
        return True


def matches(source: Source, file: BinaryIO) -> bool:
    """Return whether a file still has the recorded first and last 4 KiB of a source."""
    return _ends(file, source.size) == (source.head, source.tail)


def unreadable(path: Path, error: OSError) -> SourceUnreadable:
    """Return the error for a transcript that could not be copied."""
    if isinstance(error, FileNotFoundError):
        return SourceUnreadable(path, "the file was deleted before it could be copied")
    if isinstance(error, PermissionError):
        return SourceUnreadable(path, "permission denied", hint=f"Check the permissions of {path}.")
    return SourceUnreadable(path, error.strerror or str(error))


def _still_compressed(source: BinaryIO, copy: Copy, known: Source | None) -> Copied | None:
    """Return the state of a compressed copy if the file has no new bytes. Otherwise decompress the copy.

    Raises `CopyDamaged`.
    """
    if copy.path.exists() or not copy.compressed_path.exists():
        return None
    state = os.fstat(source.fileno())
    with CompressedFile(copy.compressed_path) as file:
        if not file.table.digest:
            raise CopyDamaged(copy.compressed_path, file.format_damage())
        if state.st_size <= file.table.size:
            sums = known.sums if known else checksums_of(file)
            return _copied(state, _original_ends(source, file, file.table.size), file.table.size, sums)
    copy.decompress()
    return None


def _append(source: BinaryIO, path: Path, known: Source | None) -> Copied:
    state = os.fstat(source.fileno())
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as copy:
        end = copy.seek(0, os.SEEK_END)
        sums = continued(known, path, end)
        sums.extend(copy, end)
        copy.seek(source.seek(end))
        while piece := source.read(_PIECE):
            copy.write(piece)
            sums.add(piece)
        size = copy.tell()
        sync(copy)
        return _copied(state, _original_ends(source, copy, size), size, sums.pack())


def _differs_in_erased_lines(copy: bytes, original: bytes) -> bool:
    """Return whether two byte strings differ only in lines that were erased from `copy`."""
    if len(copy) != len(original):
        return False
    rows, others = copy.split(b"\n"), original.split(b"\n")
    return len(rows) == len(others) and all(a == b or not a.strip(b" \t") for a, b in zip(rows, others, strict=True))


def _copied(state: os.stat_result, ends: tuple[bytes, bytes], size: int, sums: bytes) -> Copied:
    return Copied(Stat(state.st_dev, state.st_ino, state.st_mtime_ns, size), *ends, sums)


def _original_ends(source: BinaryIO, copy: BinaryIO, size: int) -> tuple[bytes, bytes]:
    """Return the digests of the first and the last 4 KiB of the agent's file, for comparison in the next run.

    If the copy and the file differ in more than erased lines, the file was rewritten while it was copied. Then return
    the digests of the copy, so that the next run detects the difference.
    """
    probe = min(size, _PROBE)
    head, tail = ((_read(copy, start, probe), _read(source, start, probe)) for start in (0, size - probe))
    return _digest(head[_differs_in_erased_lines(*head)]), _digest(tail[_differs_in_erased_lines(*tail)])


def _ends(file: BinaryIO, size: int) -> tuple[bytes, bytes]:
    """Return the digests of the first and the last 4 KiB of the first `size` bytes of a file."""
    probe = min(size, _PROBE)
    return _digest(_read(file, 0, probe)), _digest(_read(file, size - probe, probe))


def _read(file: BinaryIO, start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _start_of(file: BinaryIO, line: int, near: tuple[int, int]) -> int:
    start = file.start_of(line) if isinstance(file, CompressedFile) else None
    if start is not None:
        return start
    number, offset = near
    file.seek(offset)
    while piece := file.read(_LINES_PIECE):
        count = piece.count(b"\n")
        if number + count >= line:
            at = -1
            for _ in range(line - number):
                at = piece.index(b"\n", at + 1)
            return offset + at + 1
        number, offset = number + count, offset + len(piece)
    return offset
