"""Roots: the folders from which documents may be taken up, and how nobody is followed out of them.

A path is resolved first, must then lie in a root, and is opened folder by folder without following a link: who puts a
link in its place meanwhile gains nothing (CVE-2025-53109 and 53110 are what happens otherwise).
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.home import MARKERS, is_home

BYTES_MAX: Final = 64 << 20
"""A larger file is refused."""
_SYSTEM: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOT_OURS: Final = {"__pycache__", "node_modules", "site-packages"}
"""Folders whose files nobody here wrote. Those with a hidden name are skipped too, and environments, and homes."""
_MOVED: Final = {errno.ELOOP, errno.ENOTDIR}


class Read(Struct, frozen=True):
    """A file's bytes and when it was last changed, in milliseconds."""

    data: bytes
    at: int


class Walk(Struct):
    """The files of a folder that were found so far, and the folders that could not be looked into."""

    folder: Path
    problems: list[DocumentUnreadable] = field(default_factory=list[DocumentUnreadable])
    _ahead: dict[Path, None] = field(default_factory=dict[Path, None])
    """Folders that were found and not looked into yet."""

    def files(self, *, recursive: bool, without: Sequence[Path] = ()) -> Iterator[Path]:
        """Yield every regular file, in order of name. Links are not followed, and hidden files are skipped."""
        try:
            yield from self._walk(recursive, without)
        except OSError as error:  # `os.fwalk` reports no folder that it cannot even open
            self._note(error)

    def _walk(self, recursive: bool, without: Sequence[Path]) -> Iterator[Path]:
        for top, folders, files, descriptor in os.fwalk(self.folder, onerror=self._note, follow_symlinks=False):
            place = Path(top)
            self._ahead.pop(place, None)
            if not MARKERS.isdisjoint(files) or ("pyvenv.cfg" in files and place != self.folder):
                folders.clear()
                continue
            yield from (place / name for name in sorted(files) if _is_document(name, descriptor))
            kept = sorted(name for name in folders if name not in _NOT_OURS and not name.startswith("."))
            folders[:] = [name for name in kept if recursive and place / name not in (*without, *_SYSTEM)]
            self._ahead.update(dict.fromkeys(place / name for name in folders))

    def _note(self, error: OSError) -> None:
        # Folders are opened by name alone, the deepest first.
        name = os.fsdecode(error.filename or "")
        path = next((path for path in reversed(self._ahead) if path.name == name), self.folder)
        self._ahead.pop(path, None)
        self.problems.append(DocumentUnreadable(path, error.strerror or str(error), hint="Check the rights of it."))


class Roots:
    """Says which paths may be read, and reads them."""

    def __init__(self, folders: Sequence[Path], without: Sequence[Path] = ()) -> None:
        """`without` are folders that nothing is taken up from, such as Palaver's own home."""
        self._folders = tuple(folder.resolve() for folder in folders)
        self.without = tuple(folder.resolve() for folder in without)

    def find(self, path: Path) -> tuple[Path, Path]:
        """The path without any link, and its root; raises `DocumentNotFound` or `DocumentOutsideRoots`.

        What lies outside is never looked at, so nothing can be probed: whether it is there is not told.
        """
        try:
            plain = path.expanduser().resolve()
        except (OSError, RuntimeError, ValueError):
            raise DocumentNotFound(path) from None
        excluded = any(plain.is_relative_to(folder) for folder in (*self.without, *_SYSTEM))
        if excluded or any(map(is_home, (plain, *plain.parents))):
            raise DocumentOutsideRoots(path, hint="Nothing is taken up from the system's folders or Palaver's own.")
        inside = [folder for folder in self._folders if plain.is_relative_to(folder)]
        if not inside:
            raise DocumentOutsideRoots(path)
        try:
            plain.lstat()
        except OSError:
            raise DocumentNotFound(path) from None
        return plain, max(inside, key=lambda folder: len(folder.parts))


def read(path: Path, root: Path) -> Read:
    """A file below a root, neither of which is a link any more; raises `DocumentUnreadable` and those of `find`."""
    with _opened(path, root) as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DocumentUnreadable(path, "it is not a regular file")
        if found.st_size > BYTES_MAX:
            raise DocumentUnreadable(path, f"it is larger than {BYTES_MAX >> 20} MiB", hint="Index it in parts.")
        with open(descriptor, "rb", closefd=False) as file:
            return Read(file.read(BYTES_MAX), found.st_mtime_ns // 1_000_000)


@contextmanager
def _opened(path: Path, root: Path) -> Generator[int]:
    """A descriptor of the file, reached without following a link."""
    *folders, name = path.relative_to(root).parts
    try:
        with ExitStack() as opened:
            at = opened.enter_context(_open(root, _FOLDER))
            for folder in folders:
                at = opened.enter_context(_open(folder, _FOLDER | os.O_NOFOLLOW, at))
            # Not blocking: what became a pipe meanwhile would never open.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            yield opened.enter_context(_open(name, flags, at))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise DocumentNotFound(path) from None
        if error.errno in _MOVED:
            raise DocumentOutsideRoots(path) from None
        reason = error.strerror or str(error)
        raise DocumentUnreadable(path, reason, hint="Check the rights of the file.") from error


@contextmanager
def _open(name: str | Path, flags: int, folder: int | None = None) -> Generator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_document(name: str, folder: int) -> bool:
    try:
        return not name.startswith(".") and stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
