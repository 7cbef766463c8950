"""Raw archive: byte-exact copies of agents' files, made before anything is parsed, and their rewriting.

A raw copy has one of two storage formats: uncompressed while it can grow, compressed afterwards. To change the
format, a temporary file is written, synced, compared with the original and renamed to its final name. Therefore, a
file with a final name is always complete. If both files exist, the uncompressed file is used.

Rewriting erases lines, replaces content or deletes copies, and updates the checksums. New content is written to a
temporary file, which then replaces the copy atomically. If the process is killed, the copy contains either the old or
the new content.
"""

import errno
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeVar

from msgspec import Struct

from ...core.errors import CopyDamaged, PathOutsideArchive, SourceUnreadable
from ...core.runtime import sync, sync_path
from ..compressed_file import CompressedFile, compress_file, content_digest
from ..lines import BUFFER, DOCUMENT, SUFFIX, as_lines, blanked, compress_lines, split, without_records
from ..store import Source, Store
from .checksums import checksums_of, continued, damaged_blocks, updated, verify

COMPRESSED_SUFFIX: Final = ".sealed.zst"
"""Suffix of a compressed copy. A file with the suffix `.zst` alone was compressed by its agent."""
DAMAGED_SUFFIX: Final = ".damaged"
"""Suffix of a damaged file that was replaced but kept. A second such file has the suffix `.damaged~2`."""
UNFINISHED: Final = ".unfinished"
"""Folder inside the archive for temporary files."""
_PIECE: Final = 1 << 20


class Copy(Struct, frozen=True):
    """Raw copy, identified by its archive path. To change its format, the caller must hold the archiver's lease."""

    root: Path
    archived: str

    @property
    def path(self) -> Path:
        """Path of the uncompressed file."""
        return self.root / self.archived

    @property
    def compressed_path(self) -> Path:
        """Path of the compressed file."""
        return self.root / (self.archived + COMPRESSED_SUFFIX)

    def open(self) -> BinaryIO:
        """Open the decompressed content. Raises `OSError`. Opening or reading a damaged copy raises `CopyDamaged`."""
        for _ in range(2):  # The format may change between the two attempts.
            try:
                return self.path.open("rb", BUFFER)
            except FileNotFoundError:
                pass
            try:
                return CompressedFile(self.compressed_path)
            except FileNotFoundError:
                pass
        return self.path.open("rb", BUFFER)

    def exists(self) -> bool:
        """Return whether a copy exists, damaged or not."""
        return self.path.exists() or self.compressed_path.exists()

    def size(self) -> int:
        """Return the size of the content in bytes.

        Return 0 if the copy is missing, or if it is compressed and its table is damaged. Raises `OSError`.
        """
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            pass
        try:
            with CompressedFile(self.compressed_path) as file:
                return file.table.size if file.table.digest else 0
        except FileNotFoundError:
            return 0

    def checksums(self) -> bytes:
        """Compute the packed checksums of the content. Raises the errors of `open`."""
        with self.open() as file:
            return checksums_of(file)

    def compress(self) -> tuple[int, int]:
        """Replace the uncompressed file with a compressed file. Return the sizes in bytes before and after.

        Raises `OSError`, and `CopyDamaged` if the compressed file does not restore the original bytes. If an error
        occurs, the uncompressed file stays.
        """
        with self.temporary() as made:
            sizes = compress_file(self.path, made)
            _rename(made, self.compressed_path)
        self.path.unlink()
        sync_path(self.path.parent)
        return sizes

    def decompress(self) -> None:
        """Replace the compressed file, if it exists, with an uncompressed file.

        Raises `OSError`, and `CopyDamaged` if some of the content is lost. On an error, the compressed file is kept.
        """
        if self.path.exists() or not self.compressed_path.exists():
            self.compressed_path.unlink(missing_ok=True)
            return
        with self.temporary() as made:
            with CompressedFile(self.compressed_path) as source, made.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
                sync(target)
                expected = source.table.digest
            with made.open("rb") as written:
                if expected and content_digest(written) != expected:
                    raise CopyDamaged(self.compressed_path, "its content differs from the content that was compressed")
            _rename(made, self.path)
        self.compressed_path.unlink()

    def format_damage(self) -> str:
        """Describe damage outside the content of the compressed file. The result is empty for an intact file.

        Raises the errors of `open`.
        """
        with self.open() as file:
            return file.format_damage() if isinstance(file, CompressedFile) else ""

    def replace(self, made: Path) -> None:
        """Replace the copy with the complete, synced file `made`. Keep the files of the old copy, marked as damaged."""
        # Rename the compressed file last, so that a readable file exists at every moment.
        if self.path.exists():
            _keep_damaged(self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _rename(made, self.path)
        if self.compressed_path.exists():
            _keep_damaged(self.compressed_path)
            sync_path(self.path.parent)

    def damaged_files(self) -> list[Path]:
        """Return the files of this copy that were kept and marked as damaged."""
        if not self.path.parent.is_dir():
            return []
        names = self.path.name + DAMAGED_SUFFIX, self.compressed_path.name + DAMAGED_SUFFIX
        return [path for path in self.path.parent.iterdir() if path.name.startswith(names)]

    @contextmanager
    def temporary(self) -> Generator[Path]:
        """Create an empty temporary file on the archive's file system. Delete it afterwards unless it was renamed."""
        folder = self.root / UNFINISHED
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        made = Path(name)
        try:
            yield made
        finally:
            made.unlink(missing_ok=True)


def _keep_damaged(file: Path) -> None:
    kept, number = file.with_name(file.name + DAMAGED_SUFFIX), 1
    while kept.exists():
        number += 1
        kept = file.with_name(f"{file.name}{DAMAGED_SUFFIX}~{number}")
    file.replace(kept)


def _rename(made: Path, target: Path) -> None:
    made.replace(target)
    sync_path(target.parent)


@contextmanager
def new_content(copy: Copy) -> Generator[BinaryIO]:
    """Yield a file that replaces the copy, atomically and durably, if the block succeeds."""
    with copy.temporary() as made:
        with made.open("wb") as file:
            yield file
            sync(file)
        made.replace(copy.path)
    copy.compressed_path.unlink(missing_ok=True)
    sync_path(copy.path.parent)


def drop_checksums(store: Store, sources: Iterable[Source | None]) -> None:
    """Delete the stored checksums of copies whose content is about to change.

    If the process is killed during the change, the copies have no checksums, which is better than wrong checksums.
    """
    numbers = [source.id for source in sources if source is not None and source.id is not None]
    if numbers:
        with store.transaction():
            for number in numbers:
                store.sources.save_checksums(number)


@contextmanager
def updating_checksums(store: Store, copy: Copy, source: Source | None, *, in_place: bool) -> Generator[None]:
    """Update a source's checksums after the `with` block has rewritten the source's copy.

    The block must derive the new content from the old copy. A damaged copy raises `CopyDamaged` before the block runs,
    because new checksums would hide the damage. With `in_place`, a damaged uncompressed copy is accepted: the block
    overwrites only some bytes, and the checksums still show the damage.
    """
    if source is None or not source.sums:
        yield
        return
    damaged: dict[int, int] = {}
    with copy.open() as file:
        if in_place and copy.path.exists():
            damaged = damaged_blocks(file, source.sums)
        else:
            verify(file, source.sums, copy.path)
    if not damaged:  # After a crash, the old checksums must still show the damage.
        drop_checksums(store, (source,))
    yield
    if damaged:
        with copy.open() as file:
            source.sums = updated(file, source.sums, damaged)
    else:
        source.sums = copy.checksums()
    if source.id is not None:
        with store.transaction():
            store.sources.save_checksums(source.id, source.sums)


def erase_lines(copy: Copy, lines: Collection[int], exchange_starts: Collection[int]) -> None:
    """Overwrite lines (1-based) of a copy with spaces. All other lines keep their numbers.

    In a JSON lines file, the other lines also keep their offsets. A JSON document, or a file that the agent compressed,
    is encoded again and padded to at least its previous size. `exchange_starts` are the lines on which exchanges begin.
    Raises `OSError` and `CopyDamaged`.
    """
    if not lines:
        return
    gone, size = {line: line in exchange_starts for line in lines}, copy.size()
    with copy.open() as source, new_content(copy) as target:
        write_without(source, copy.path, gone, target, size)


def write_without(source: BinaryIO, path: Path, gone: Mapping[int, bool], target: BinaryIO, size: int) -> None:
    """Write the content of the copy at `path` with blank lines in place of the lines in `gone`.

    `gone` maps line numbers to whether an exchange begins there. Content that is encoded again is padded to `size`.
    """
    if path.suffix == DOCUMENT:
        target.write(without_records(source.read(), gone).ljust(size))
    elif path.suffix == SUFFIX:
        compress_lines(_without(as_lines(source, path), gone), target, size)
    else:
        target.writelines(_without(source, gone))


def remove(copy: Copy) -> None:
    """Delete a copy in every storage format, its damaged files, and folders that become empty."""
    for path in (copy.path, copy.compressed_path, *copy.damaged_files()):
        path.unlink(missing_ok=True)
    for folder in copy.path.parents:
        if folder == copy.root or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def remove_leftovers(copy: Copy) -> None:
    """Delete temporary files and the damaged files of a copy.

    Raises `CopyDamaged` if only a damaged file remains of the copy.
    """
    damaged = copy.damaged_files()
    if damaged and not copy.exists():
        raise CopyDamaged(damaged[0], "the other files of this copy are missing")
    for path in damaged:
        path.unlink(missing_ok=True)
    if copy.path.exists():
        copy.compressed_path.unlink(missing_ok=True)
    shutil.rmtree(copy.root / UNFINISHED, ignore_errors=True)


def _without(source: BinaryIO, gone: Mapping[int, bool]) -> Iterator[bytes]:
    number, begun = 1, False
    while piece := source.readline(_PIECE):
        ended = piece.endswith(b"\n")
        if number in gone and piece.strip(b" \t\n"):
            piece = blanked(len(piece) - ended, opens=gone[number] and not begun) + b"\n" * ended
        yield piece
        number, begun = number + ended, not ended


_PROBE = 4096
"""Bytes compared at the beginning and at the end of a file to distinguish an append from a rewrite."""
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
        state = path.stat()
        return cls(state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)


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
        stored = Stat(source.device, source.inode, source.mtime, source.size)
        return stored == stat and self._size(source.archived) >= source.size

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

    def copy(self, path: Path, archived: str, continued: Source | None = None, *, rewrite: bool = False) -> Copied:
        """Append the new bytes of a file to its copy, durably. The file must begin with the copy's content.

        With `continued`, continue the checksums of this source. Otherwise compute the checksums of the whole copy. With
        `rewrite`, replace the whole copy. A damaged copy is kept under another name and recreated. Raises
        `SourceUnreadable` if the file is missing, is not readable, or does not fit on the disk.
        """
        try:
            with path.open("rb") as source:
                return self.update(archived, lambda copy: self._copy(source, copy, continued, rewrite=rewrite))
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

    def _copy(self, source: BinaryIO, copy: Copy, continued: Source | None, *, rewrite: bool) -> Copied:
        if rewrite:
            with new_content(copy) as target:
                shutil.copyfileobj(source, target, _PIECE)
        elif kept := _still_compressed(source, copy, continued):
            return kept
        copied = _append(source, copy.path, None if rewrite else continued)
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

    def free_name(self, name: str, taken: set[str], source: Path) -> str:
        """Return `name`, or `name` with a number if this name belongs to another source.

        After a killed ingest run or the loss of the database, a copy can have no row. Such a copy is reused if the file
        begins with its content. Otherwise it is kept, because it can be the only copy of another file.
        """
        path = PurePosixPath(name)
        number = 1
        while name in taken or name.endswith(COMPRESSED_SUFFIX) or not self._is_beginning_of(name, source):
            number += 1
            name = str(path.with_name(f"{path.stem}~{number}{path.suffix}"))
        return name

    def resolve(self, path: str) -> Path:
        """Return the real file for a path given by a caller. Raises `PathOutsideArchive`.

        Absolute paths and paths relative to the archive are accepted. Links, `..`, and everything except a regular file
        inside the archive are refused with the same error.
        """
        copy = self._inside(path) or self._inside(path + COMPRESSED_SUFFIX)
        if copy is None:
            raise PathOutsideArchive(path)
        return copy

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


def _still_compressed(source: BinaryIO, copy: Copy, stored: Source | None) -> Copied | None:
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
            sums = stored.sums if stored else checksums_of(file)
            return _copied(state, _original_ends(source, file, file.table.size), file.table.size, sums)
    copy.decompress()
    return None


def _append(source: BinaryIO, path: Path, stored: Source | None) -> Copied:
    state = os.fstat(source.fileno())
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as copy:
        end = copy.seek(0, os.SEEK_END)
        sums = continued(stored, path, end)
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
