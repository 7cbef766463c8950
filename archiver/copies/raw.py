"""The raw archive: byte-exact copies of what the agents wrote, made before anything is parsed."""

import errno
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from msgspec import Struct

from ...core.durability import sync, sync_path
from ...core.errors import CopyDamaged, PathOutsideArchive, SourceUnreadable
from ..files.compression import shown
from ..store import Source
from . import checksums
from .forms import SEALED, UNFINISHED, Copy
from .seekable import Seekable

_PROBE = 4096
_PIECE = 1 << 16
Made = TypeVar("Made")
_NO_COPY = {errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR}
_log = logging.getLogger(__name__)


class Stat(Struct, frozen=True):
    """What tells whether a file changed: device, inode, modification time in ns, size in bytes."""

    device: int
    inode: int
    mtime: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "Stat":
        """The file's present state; raises `OSError`."""
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


class Copied(Struct, frozen=True):
    """A copy that is safely on disk: the file's state, with the bytes really copied as its size, the digests of the
    copy's first and last 4 KiB, and its checksums as `Source` has them.
    """

    stat: Stat
    head: bytes
    tail: bytes
    sums: bytes = b""
    compared: bool = False

    def source(self, agent: str, path: Path, archived: str) -> Source:
        """A source that is of this agent, was found here, and has this copy."""
        stat = self.stat
        return Source(
            agent=agent,
            path=path,
            archived=archived,
            device=stat.device,
            inode=stat.inode,
            mtime=stat.mtime,
            size=stat.size,
            head=self.head,
            tail=self.tail,
            sums=self.sums,
            compared=self.compared,
        )


class RawArchive:
    """The folder of copies. Paths in and out are relative to it, with forward slashes.

    A copy has one name for its whole life, whether it is plain or sealed. Its lines are added to; those that are there
    change only where they are erased, and a document's that its agent wrote anew and that still says it all.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def is_unchanged(self, source: Source, stat: Stat) -> bool:
        """Whether a source still is what it was when it was last copied, and the copy is whole."""
        same = (source.device, source.inode, source.mtime, source.size) == (
            stat.device,
            stat.inode,
            stat.mtime,
            stat.size,
        )
        return same and self._size(source.archived) >= source.size

    def is_continued(self, source: Source) -> bool:
        """Whether the file still begins with what was archived, judged by the first and last 4 KiB of what is known
        of it and by every byte where the copy holds more, because a pass was killed.

        True as well for a file that cannot be read now: its copy is not given up for that.
        """
        try:
            with source.path.open("rb") as file:
                same = matches(source, file)
        except OSError:
            return True
        return same and (self._size(source.archived) <= source.size or self._may_take_up(source.archived, source.path))

    def is_intact(self, source: Source) -> bool:
        """Whether a copy holds all that is known of its file, judged by the first and last 4 KiB of that.

        True as well for a conversation of a container, whose copy is all there is. Raises like `original`.
        """
        with self.original(source.archived) as file:
            return not source.head or matches(source, file)

    def ends(self, path: Path, size: int) -> tuple[bytes, bytes]:
        """The digests of the first and the last 4 KiB of what was copied, as the agent's own file has them.

        For copies from which lines were erased; raises `OSError`.
        """
        with path.open("rb") as file:
            probe = min(size, _PROBE)
            return _digest(file, 0, probe), _digest(file, size - probe, probe)

    def copy(self, path: Path, archived: str, known: Source | None = None) -> Copied:
        """Append to a copy what the file holds beyond it, durably; the file must begin with what is already there.

        The checksums of `known` are continued; without it, they are computed for all of the copy. A sealed copy that
        goes on is plain again. Raises `SourceUnreadable` when the file vanished, may not be read, or there is no room
        for it.
        """
        return self._made(
            path, archived, lambda source, copy: self._sealed(source, copy, known) or self._grown(source, copy, known)
        )

    def replaced(self, archived: str, make: Callable[[Copy], Made]) -> Made:
        """What comes of bringing a copy up to date. One that is damaged is made anew first, and is kept beside then."""
        copy = Copy(self.root, archived)
        copy.plain.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return make(copy)
        except CopyDamaged as damage:
            _log.warning("%s; it is kept beside, and made anew", damage)
            return self.remade(archived, lambda archive: make(Copy(archive.root, archived)))

    def remade(self, archived: str, make: "Callable[[RawArchive], Made]") -> Made:
        """What comes of making a copy anew in an empty archive. When it is whole, the one that is here is set aside.

        Where `make` raises, that one stays in its place.
        """
        unfinished, copy = self.root / UNFINISHED, Copy(self.root, archived)
        unfinished.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unfinished) as folder:
            beside = Copy(Path(folder), archived)
            beside.plain.parent.mkdir(parents=True)
            made = make(RawArchive(beside.root))
            copy.give_way(beside.plain)
        return made

    def _made(self, path: Path, archived: str, make: Callable[[BinaryIO, Copy], Copied]) -> Copied:
        try:
            with path.open("rb") as source:
                return self.replaced(archived, partial(make, source))
        except OSError as error:
            raise unreadable(path, error) from None

    def _sealed(self, source: BinaryIO, copy: Copy, known: Source | None) -> Copied | None:
        """What a copy is that stays sealed, because the file holds no more; None when it has to be plain.

        Raises `CopyDamaged`.
        """
        if copy.plain.exists() or not copy.sealed.exists():
            return None
        state = os.fstat(source.fileno())
        with Seekable(copy.sealed) as file:
            if file.table.digest and state.st_size <= file.table.size:
                sums = (known.sums, known.compared) if known else (checksums.of(file), True)
                return _copied(state, file, file.table.size, *sums)
        copy.unseal()
        return None

    def _grown(self, source: BinaryIO, copy: Copy, known: Source | None) -> Copied:
        copied = _append(source, copy.plain, known)
        self._sync_folders(copy.plain)
        return copied

    def _sync_folders(self, copy: Path) -> None:
        """Make the name of a copy as durable as its bytes."""
        for folder in copy.parents:
            sync_path(folder)
            if folder == self.root:
                break

    def known(self, archived: str) -> Copied:
        """The state of a copy that no row tells of, as if it had just been made. Raises like `original`."""
        copy = Copy(self.root, archived)
        with self.original(archived) as file:
            state = (copy.plain if copy.plain.exists() else copy.sealed).stat()
            return _copied(state, file, copy.size(), checksums.of(file))

    def open(self, archived: str) -> BinaryIO:
        """The content of a copy, by its archive path, as lines; what the agent kept compressed is decompressed.

        Raises `OSError`, or `CopyDamaged` here or where the damage is.
        """
        return shown(self.original(archived), self.root / archived)

    def original(self, archived: str) -> BinaryIO:
        """The very bytes that the agent wrote; raises like `open`."""
        return Copy(self.root, archived).open()

    def lines(self, archived: str, first: int, last: int, near: tuple[int, int]) -> Iterator[bytes]:
        """Some lines of a copy's content, 1-based and inclusive; `near` is a line not after them, and its byte."""
        with self.open(archived) as file:
            file.seek(_start_of(file, first, near))
            yield from islice(file, last - first + 1)

    def start_of(self, archived: str, line: int, near: tuple[int, int]) -> int:
        """The byte at which a line of a copy's content begins; `near` as for `lines`."""
        with self.open(archived) as file:
            return _start_of(file, line, near)

    def verify(self, source: Source) -> None:
        """Raise `CopyDamaged` unless a copy holds the bytes whose checksums were recorded; raises like `original`."""
        with self.original(source.archived) as file:
            checksums.verify(file, source.sums, self.root / source.archived)

    def free_name(self, wanted: str, taken: set[str], source: Path) -> str:
        """`wanted`, or the same with a number when that name belongs to another source.

        A copy without a row (a pass that was killed, a lost database) is taken up again when `source` continues it,
        and left alone when it does not: it may be the last copy there is.
        """
        path = PurePosixPath(wanted)
        name, number = wanted, 1
        while name in taken or name.endswith(SEALED) or not self._may_take_up(name, source):
            number += 1
            name = str(path.with_name(f"{path.stem}~{number}{path.suffix}"))
        return name

    def resolve(self, path: str) -> Path:
        """The real file that a caller's path means; raises `PathOutsideArchive`.

        Absolute paths and paths relative to the archive are accepted; links, `..` and anything that is not a plain
        file inside the archive are refused, all with one answer.
        """
        found = self._inside(path) or self._inside(path + SEALED)
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
        """The archive path of a caller's path; raises `PathOutsideArchive`."""
        return self.resolve(path).relative_to(self.root.resolve()).as_posix().removesuffix(SEALED)

    def named(self, path: str) -> str:
        """The archive path that a caller's path says, whether there is a copy of that name or not."""
        asked = Path(path.encode("utf-8", "replace").decode())
        below = next((each for each in (self.root, self.root.resolve()) if asked.is_relative_to(each)), None)
        return (asked if below is None else asked.relative_to(below)).as_posix().removesuffix(SEALED)

    def _size(self, archived: str) -> int:
        try:
            return Copy(self.root, archived).size()
        except CopyDamaged:
            return 0

    def _may_take_up(self, archived: str, source: Path) -> bool:
        """Whether the file begins with all of a copy; true where there is no copy, or none can be made."""
        try:
            with self.original(archived) as ours, source.open("rb") as theirs:
                while block := ours.read(1 << 20):
                    if (theirs_too := theirs.read(len(block))) != block and not _erased_from(block, theirs_too):
                        return False
        except CopyDamaged:
            return False
        except OSError as error:
            return error.errno in _NO_COPY
        return True


def matches(source: Source, file: BinaryIO) -> bool:
    """Whether a file has the first and last 4 KiB of what is known of a source's."""
    probe = min(source.size, _PROBE)
    return _digest(file, 0, probe) == source.head and _digest(file, source.size - probe, probe) == source.tail


def unreadable(path: Path, error: OSError) -> SourceUnreadable:
    """What the system said of a transcript that was there a moment ago, in our words."""
    if isinstance(error, FileNotFoundError):
        return SourceUnreadable(path, "deleted before it could be copied")
    if isinstance(error, PermissionError):
        return SourceUnreadable(path, "permission denied", hint=f"Check the rights of {path}.")
    return SourceUnreadable(path, error.strerror or str(error))


def _append(source: BinaryIO, target: Path, known: Source | None) -> Copied:
    state = os.fstat(source.fileno())
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as copy:
        end = copy.seek(0, os.SEEK_END)
        sums = checksums.continued(known, target, end)
        sums.extend(copy, end)
        copy.seek(source.seek(end))
        while piece := source.read(1 << 20):
            copy.write(piece)
            sums.add(piece)
        size = copy.tell()
        sync(copy)
        return _copied(state, copy, size, *sums.recorded())


def _erased_from(ours: bytes, theirs: bytes) -> bool:
    """Whether two pieces are the same but for lines that were erased from ours."""
    if len(ours) != len(theirs):
        return False
    mine, other = ours.split(b"\n"), theirs.split(b"\n")
    return len(mine) == len(other) and all(a == b or not a.strip(b" \t") for a, b in zip(mine, other, strict=True))


def _copied(state: os.stat_result, copy: BinaryIO, size: int, sums: bytes, compared: bool = False) -> Copied:
    head = _digest(copy, 0, min(size, _PROBE))
    tail = _digest(copy, max(0, size - _PROBE), min(size, _PROBE))
    return Copied(Stat(state.st_dev, state.st_ino, state.st_mtime_ns, size), head, tail, sums, compared)


def _digest(file: BinaryIO, start: int, length: int) -> bytes:
    file.seek(start)
    return hashlib.blake2b(file.read(length), digest_size=16).digest()


def _start_of(file: BinaryIO, line: int, near: tuple[int, int]) -> int:
    start = file.start_of(line) if isinstance(file, Seekable) else None
    if start is not None:
        return start
    number, byte = near
    file.seek(byte)
    while piece := file.read(_PIECE):
        count = piece.count(b"\n")
        if number + count >= line:
            at = -1
            for _ in range(line - number):
                at = piece.index(b"\n", at + 1)
            return byte + at + 1
        number, byte = number + count, byte + len(piece)
    return byte
