"""Access to the files of a `.mnemonics` folder. Paths are relative to it, and symbolic links are never followed."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct, field

from ...core.durability import sync, sync_path
from ...core.errors import MnemonicsUnusable
from ...core.home import home_of
from ...core.project import MNEMONICS

_SIZE_MAX: Final = 131_072
"""Maximum size in bytes of a file that is read, more than twice the maximum size of a memory."""
_DEPTH_MAX: Final = 8
_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of file systems without hard links, as on memory cards."""
_LINK: Final = "it is a link, and links are not followed"


class FolderListing(Struct, frozen=True):
    """Content of a `.mnemonics` folder: its files, its subfolders, and the files that cannot be used.

    `files` maps each path to file attributes that change with every edit. `problems` maps each unusable path to the
    reason.
    """

    files: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    folders: list[str] = field(default_factory=list[str])
    problems: dict[str, str] = field(default_factory=dict[str, str])


class MnemonicsFolder:
    """`.mnemonics` folder of a project. Methods raise `MnemonicsUnusable` for a system error or a symbolic link."""

    def __init__(self, project: Path) -> None:
        self.project = project.resolve()
        self.path = self.project / MNEMONICS

    def absolute(self, path: str) -> str:
        """Return the absolute path, as the store records it."""
        return f"{self.path}/{path}"

    def scan(self) -> FolderListing:
        """Return all Markdown files that are not hidden, without reading them."""
        listing = FolderListing()
        if home_of(self.project) is not None:  # Palaver's own data is never a source.
            return listing
        try:
            _scan(self._checked(()), PurePosixPath(), listing)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._unusable("", error) from None
        return listing

    def read(self, path: str) -> bytes:
        """Return the bytes of a file. Raises `OSError`."""
        descriptor = os.open(self._file(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            return file.read(_SIZE_MAX)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file and its folder. Return False if the file already exists."""
        try:
            file = self._file(path, make=True)
            new = _write_beside(file, data, 0o666)
            try:
                os.link(new, file, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC))
                new.replace(file)
            finally:
                new.unlink(missing_ok=True)
            sync_path(file.parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unusable(path, error) from None
        return True

    def replace(self, path: str, data: bytes, digest: str) -> None:
        """Replace the content of a file atomically, if its current content has this digest."""
        try:
            file = self._file(path)
            new = _write_beside(file, data, stat.S_IMODE(file.lstat().st_mode))
            try:
                self._check_unedited(path, digest)
                new.replace(file)
            finally:
                new.unlink(missing_ok=True)
            sync_path(file.parent)
        except OSError as error:
            raise self._unusable(path, error) from None

    def remove(self, path: str, digest: str) -> None:
        """Delete a file, if its current content has this digest."""
        try:
            self._check_unedited(path, digest)
            file = self._file(path)
            file.unlink()
            sync_path(file.parent)
        except OSError as error:
            raise self._unusable(path, error) from None

    def _check_unedited(self, path: str, digest: str) -> None:
        if digest_of(self.read(path)) != digest:
            raise MnemonicsUnusable(
                self.absolute(path), "the file was edited in the meantime", hint="Read the file, then call again."
            )

    def _file(self, path: str, *, make: bool = False) -> Path:
        *parents, name = PurePosixPath(path).parts
        assert ".." not in (*parents, name)
        assert not path.startswith("/")
        return self._checked(tuple(parents), make=make) / name

    def _checked(self, parents: tuple[str, ...], *, make: bool = False) -> Path:
        """Return a folder below the project after checking that no part of its path is a link. Raises `OSError`."""
        folder = self.project
        for part in (MNEMONICS, *parents):
            folder /= part
            if make:
                with suppress(FileExistsError):
                    folder.mkdir()
            mode = folder.lstat().st_mode
            if not stat.S_ISDIR(mode):
                error = errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTDIR
                raise OSError(error, os.strerror(error))
        return folder

    def _unusable(self, path: str, error: OSError) -> MnemonicsUnusable:
        return MnemonicsUnusable(self.absolute(path).rstrip("/"), error_reason(error))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of the content of a file."""
    return sha256(data).hexdigest()


def error_reason(error: OSError) -> str:
    """Return the reason for an error. The path is omitted, because the callers add the path themselves."""
    return _LINK if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()


def _scan(folder: Path, below: PurePosixPath, listing: FolderListing) -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = (below / entry.name).as_posix()
        if entry.name.startswith("."):
            continue
        if entry.name != entry.name.encode(errors="replace").decode():
            listing.problems[path.encode(errors="replace").decode()] = "its name is not UTF-8"
        elif entry.is_symlink():
            listing.problems[path] = _LINK
        elif entry.is_dir(follow_symlinks=False):
            _scan_folder(folder / entry.name, below / entry.name, listing)
        elif entry.name.lower().endswith(".md"):
            _add_file(entry, path, listing)


def _scan_folder(folder: Path, below: PurePosixPath, listing: FolderListing) -> None:
    path = below.as_posix()
    if len(below.parts) > _DEPTH_MAX:
        listing.problems[path] = f"it is more than {_DEPTH_MAX} folders deep"
        return
    listing.folders.append(path)
    try:
        _scan(folder, below, listing)
    except OSError as error:
        listing.problems[path] = error_reason(error)


def _add_file(entry: os.DirEntry[str], path: str, listing: FolderListing) -> None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        listing.problems[path] = "it is not a regular file"
    elif found.st_size >= _SIZE_MAX:
        listing.problems[path] = f"it is larger than {_SIZE_MAX:,} bytes"
    else:
        listing.files[path] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _write_beside(file: Path, data: bytes, mode: int) -> Path:
    """Write a hidden file durably into the folder of another file. Return its path."""
    new = file.with_name(f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, mode), "wb") as opened:
            opened.write(data)
            sync(opened)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new
