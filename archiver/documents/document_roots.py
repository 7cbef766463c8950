"""Roots: the folders from which documents may be indexed.

A path is resolved and checked against the roots, then opened folder by folder without following links. Therefore,
replacing a folder with a link after the check gives no access to other folders (see CVE-2025-53109 and CVE-2025-53110).
"""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.home import is_home

BYTES_MAX: Final = 64 << 20
"""Maximum size of a document in bytes."""
SYSTEM_FOLDERS: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DocumentFile(Struct, frozen=True):
    """Content of a file and its modification time in milliseconds."""

    data: bytes
    at: int


class DocumentRoots:
    """Folders from which documents may be read."""

    def __init__(self, folders: Sequence[Path], without: Sequence[Path] = ()) -> None:
        """Create roots.

        Documents below the folders in `without`, such as Palaver's own home, are refused.
        """
        self._folders = tuple(folder.resolve() for folder in folders)
        self.without = tuple(folder.resolve() for folder in without)

    def find(self, path: Path) -> tuple[Path, Path]:
        """Return a resolved path and its root. Errors do not reveal whether a path outside the roots exists.

        Raises:
            DocumentNotFound: The path does not exist.
            DocumentOutsideRoots: The path is outside all roots, or in a refused folder.
        """
        try:
            plain = path.expanduser().resolve()
        except (OSError, RuntimeError, ValueError):
            raise DocumentNotFound(path) from None
        excluded = any(plain.is_relative_to(folder) for folder in (*self.without, *SYSTEM_FOLDERS))
        if excluded or any(map(is_home, (plain, *plain.parents))):
            raise DocumentOutsideRoots(path, hint="System folders and Palaver's own folders are not indexed.")
        inside = [folder for folder in self._folders if plain.is_relative_to(folder)]
        if not inside:
            raise DocumentOutsideRoots(path)
        try:
            plain.lstat()
        except OSError:
            raise DocumentNotFound(path) from None
        return plain, max(inside, key=lambda folder: len(folder.parts))


def usual_roots(named: Sequence[str] = ()) -> tuple[Path, ...]:
    """Return the folders in which agents can index files: working folder, user's home folder and `document_roots`.

    The root of a file system is never included.
    """
    folders = (Path.cwd(), Path.home(), *(Path(folder).expanduser() for folder in named))
    return tuple(folder for folder in folders if folder.is_absolute() and folder != Path(folder.anchor))


def read(path: Path, root: Path) -> DocumentFile:
    """Return the content of a file below a root. Both arguments must come from `find`, which resolves links.

    Raises `DocumentUnreadable` and the errors of `find`.
    """
    with _opened(path, root) as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DocumentUnreadable(path, "it is not a regular file")
        if found.st_size > BYTES_MAX:
            raise DocumentUnreadable(
                path, f"it is larger than {BYTES_MAX >> 20} MiB", hint="Split it into smaller files."
            )
        with open(descriptor, "rb", closefd=False) as file:
            return DocumentFile(file.read(BYTES_MAX), found.st_mtime_ns // 1_000_000)


@contextmanager
def _opened(path: Path, root: Path) -> Generator[int]:
    """Open a file without following links."""
    *folders, name = path.relative_to(root).parts
    try:
        with ExitStack() as opened:
            at = opened.enter_context(_open(root, _FOLDER))
            for folder in folders:
                at = opened.enter_context(_open(folder, _FOLDER | os.O_NOFOLLOW, at))
            # Open without blocking, because opening a named pipe would wait forever.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            yield opened.enter_context(_open(name, flags, at))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise DocumentNotFound(path) from None
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise DocumentOutsideRoots(path) from None
        reason = error.strerror or str(error)
        raise DocumentUnreadable(path, reason, hint="Check the permissions of the file.") from error


@contextmanager
def _open(name: str | Path, flags: int, folder: int | None = None) -> Generator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
