"""Folder: the one way to the files below `.mnemonics`. Nothing outside is reached, and no link is followed."""

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct, field

from ...core.durability import sync
from ...core.errors import MnemonicsUnusable
from ...core.home import home_of
from ...core.project import MNEMONICS

_LARGEST: Final = 131_072
"""Bytes of the largest file that is read; a memory holds less than half of it."""
_DEEPEST: Final = 8
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WITHOUT_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
"""What a file system answers that has no second names, as those of memory cards and shared folders."""
_LINK: Final = "it is a link, and links are not followed"


class Seen(Struct, frozen=True):
    """What a look at the folder found: files by their path below it, each with what tells an edit; what is no file."""

    files: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    folders: list[str] = field(default_factory=list[str])
    problems: dict[str, str] = field(default_factory=dict[str, str])


class Folder:
    """`.mnemonics` of a project, opened step by step from the project on. Paths are below it, with slashes.

    Raises `MnemonicsUnusable` where the system refuses, or a link stands in the way.
    """

    def __init__(self, project: Path) -> None:
        self.project = project.resolve()
        self.path = self.project / MNEMONICS

    def whole(self, path: str) -> str:
        """The absolute path, as stored."""
        return f"{self.path}/{path}"

    def look(self) -> Seen:
        """Return every Markdown file that is not hidden, by `stat` alone."""
        seen = Seen()
        if home_of(self.project) is not None:
            return seen  # Palaver's own data is never a source
        try:
            with self._opened(()) as top:
                _look(top, PurePosixPath(), seen)
        except FileNotFoundError:
            return seen
        except OSError as error:
            raise self._unusable("", error) from None
        return seen

    def read(self, path: str) -> bytes:
        """The bytes of a file; raises `OSError`."""
        parent, name = _split(path)
        with self._opened(parent) as folder:
            descriptor = os.open(name, _READ, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(errno.EINVAL, "it is no regular file")
                return file.read(_LARGEST)

    def create(self, path: str, data: bytes) -> bool:
        """Make a file, with its folder; False where there is one of that name."""
        parent, name = _split(path)
        try:
            with self._opened(parent, make=True) as folder:
                _place(folder, name, data)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unusable(path, error) from None
        return True

    def replace(self, path: str, data: bytes, digest: str) -> None:
        """Put these bytes in place of those with that digest, at once; others than those stay."""
        parent, name = _split(path)
        beside = _beside()
        try:
            with self._opened(parent) as folder:
                mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                _write(folder, beside, data, mode)
                try:
                    self._check(path, digest)
                    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    os.unlink(beside, dir_fd=folder)
                    raise
                os.fsync(folder)
        except OSError as error:
            raise self._unusable(path, error) from None

    def remove(self, path: str, digest: str) -> None:
        """Delete the file with that digest; any other stays."""
        parent, name = _split(path)
        try:
            with self._opened(parent) as folder:
                self._check(path, digest)
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
        except OSError as error:
            raise self._unusable(path, error) from None

    def _check(self, path: str, digest: str) -> None:
        if digest_of(self.read(path)) != digest:
            raise MnemonicsUnusable(self.whole(path), "somebody is editing it", hint="Look at it, then call again.")

    @contextmanager
    def _opened(self, parents: tuple[str, ...], *, make: bool = False) -> Generator[int]:
        """A descriptor of a folder below; raises `OSError`."""
        folder = os.open(self.project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in (MNEMONICS, *parents):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                below = os.open(part, _DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    def _unusable(self, path: str, error: OSError) -> MnemonicsUnusable:
        return MnemonicsUnusable(self.whole(path).rstrip("/"), reason_of(error))


def digest_of(data: bytes) -> str:
    """What tells one content of a file from another."""
    return sha256(data).hexdigest()


def reason_of(error: OSError) -> str:
    """Why the system refused a file."""
    # Where a folder is a link, Linux says that it is no folder and macOS that there are too many links.
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return _LINK
    return (error.strerror or str(error)).lower()


def _look(folder: int, below: PurePosixPath, seen: Seen) -> None:
    """Note what a folder holds. The iterator is drained first: a recursion would hold one descriptor for each level."""
    for entry in sorted(_entries(folder), key=lambda each: each.name):
        path = (below / entry.name).as_posix()
        if entry.name.startswith("."):
            continue
        if not _is_text(entry.name):
            seen.problems[path.encode(errors="replace").decode()] = "its name is not UTF-8"
        elif entry.is_symlink():
            seen.problems[path] = _LINK
        elif entry.is_dir(follow_symlinks=False):
            _look_into(folder, path, seen)
        elif entry.name.lower().endswith(".md"):
            _note(entry, path, seen)


def _look_into(folder: int, path: str, seen: Seen) -> None:
    place = PurePosixPath(path)
    if len(place.parts) > _DEEPEST:
        seen.problems[path] = f"it lies more than {_DEEPEST} folders deep"
        return
    try:
        below = os.open(place.name, _DIRECTORY, dir_fd=folder)
    except OSError as error:
        seen.problems[path] = reason_of(error)
        return
    seen.folders.append(path)
    try:
        _look(below, place, seen)
    except OSError as error:
        seen.problems[path] = reason_of(error)
    finally:
        os.close(below)


def _note(entry: os.DirEntry[str], path: str, seen: Seen) -> None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        seen.problems[path] = "it is no regular file"
    elif found.st_size >= _LARGEST:
        seen.problems[path] = f"it is larger than {_LARGEST:,} bytes"
    else:
        seen.files[path] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _entries(folder: int) -> Iterator[os.DirEntry[str]]:
    with closing(os.scandir(folder)) as entries:
        yield from entries


def _place(folder: int, name: str, data: bytes) -> None:
    """Make a file that is whole from the moment it has its name; raises `FileExistsError` where there is one."""
    beside = _beside()
    _write(folder, beside, data, 0o666)
    try:
        os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        _write(folder, name, data, 0o666)
    finally:
        os.unlink(beside, dir_fd=folder)
    os.fsync(folder)


def _beside() -> str:
    """A name that is not looked at."""
    return f".{secrets.token_hex(8)}.tmp"


def _write(folder: int, name: str, data: bytes, mode: int) -> None:
    """Make a file durably, or not at all."""
    descriptor = os.open(name, _NEW, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            sync(file)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    os.fsync(folder)


def _split(path: str) -> tuple[tuple[str, ...], str]:
    *parents, name = PurePosixPath(path).parts
    assert ".." not in (*parents, name)
    assert not path.startswith("/")
    return tuple(parents), name


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
