"""Folders of documents: the allowed roots, the scan for files, `.gitignore` rules, and skipped files.

A path is resolved and checked against the roots, then opened folder by folder without following links. Therefore,
replacing a folder with a link after the check gives no access to other folders (see CVE-2025-53109 and
CVE-2025-53110).

Rules of `.gitignore` files have the semantics of git. Binary, generated, minified and vendored files are recognised.
"""

import codecs
import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, field

from ...core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable
from ...core.home import MARKERS, is_home
from .code_chunks import CODE_LANGUAGES
from .document_formats import SUFFIXES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise DocumentUnreadable(path, "it is not a regular file")
        if state.st_size > BYTES_MAX:
            raise DocumentUnreadable(
                path, f"it is larger than {BYTES_MAX >> 20} MiB", hint="Split it into smaller files."
            )
        with open(descriptor, "rb", closefd=False) as file:
            return DocumentFile(file.read(BYTES_MAX), state.st_mtime_ns // 1_000_000)


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


VENDORED_FOLDERS: Final = frozenset(
    {"node_modules", "site-packages", "bower_components", "third_party", "vendor", "Pods"}
)
"""Names of folders that contain third-party packages."""
CODE_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of a code file in a scanned folder. Larger files are usually bundles or data."""
_GENERATED_NAME: Final = re.compile(r".*\.(?:min|bundle)\.\w+|.*[._]pb2?(?:_grpc)?\.\w+")
_GENERATED_HEADER: Final = re.compile(
    rb"^[^\w\n]*(?:@generated\b|code generated\b.{0,200}\bdo not edit|(?:this file (?:is|was) )?auto-?generated\b)",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER: Final = 1_500
"""Number of bytes at the beginning of a file in which a "generated" comment is searched."""
_MINIFIED_BYTES: Final = 2_000
_MINIFIED_LINE: Final = 300
"""Minimum size, and minimum average bytes per line, of minified code."""
_SAMPLE: Final = 8_000
_WITH_NUL: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Beginnings of texts that contain NUL bytes: the byte order marks of UTF-16."""
_NOT_TEXT: Final = frozenset({".docx", ".pdf"})
"""Suffixes of formats that are not text. A file without text in them is damaged, and its reader reports that."""


def reason_by_name(path: Path, size: int) -> str:
    """Return the reason to skip a file, judged by its name and size, or an empty string to read the file."""
    if _GENERATED_NAME.fullmatch(path.name):
        return "generated"
    if size > CODE_BYTES_MAX and path.suffix.lower() in CODE_LANGUAGES:
        return "too large"
    return ""


def reason_by_content(path: Path, data: bytes) -> str:
    """Return the reason to skip a file, judged by its content, or an empty string to index the file."""
    suffix = path.suffix.lower()
    if suffix not in _NOT_TEXT and b"\0" in data[:_SAMPLE] and not data.startswith(_WITH_NUL):
        return "binary"
    if suffix not in CODE_LANGUAGES:
        return ""
    if _GENERATED_HEADER.search(data, 0, _HEADER):
        return "generated"
    minified = len(data) > _MINIFIED_BYTES and len(data) > _MINIFIED_LINE * (data.count(b"\n") + 1)
    return "minified" if minified else ""


_NAME: Final = ".gitignore"
_BYTES_MAX: Final = 1 << 20
"""Maximum size of a file with rules. A larger file is ignored."""


class _Rules(NamedTuple):
    """Rules of one file, and the folder to which their patterns are relative."""

    folder: Path
    spec: "GitIgnoreSpec"


class IgnoreRules:
    """Rules that apply in one folder: its own `.gitignore` and those of its parents."""

    def __init__(self, rules: tuple[_Rules, ...] = ()) -> None:
        self._rules = rules

    @classmethod
    def of(cls, folder: Path) -> "IgnoreRules":
        """Return the rules of the repository that apply in a folder.

        If the repository ignores the folder itself, no rule of its parents applies, because the user chose this folder.
        """
        inside = [folder, *folder.parents]
        top = next((index for index, parent in enumerate(inside) if os.access(parent / ".git", os.F_OK)), 0)
        rules = cls(_load(inside[top], inside[top] / ".git" / "info" / "exclude"))
        for parent in reversed(inside[1 : top + 1]):
            rules = rules.enter(parent)
        return (cls() if rules.match(folder, is_folder=True) else rules).enter(folder)

    def enter(self, folder: Path) -> "IgnoreRules":
        """Return the rules of a subfolder: these rules and those of its own `.gitignore`."""
        rules = _load(folder, folder / _NAME)
        return IgnoreRules(self._rules + rules) if rules else self

    def match(self, path: Path, *, is_folder: bool = False) -> bool:
        """Return whether a path is ignored.

        If rules of several files match, the innermost file decides. Within a file, the last matching rule decides.
        """
        for rules in reversed(self._rules):
            if not path.is_relative_to(rules.folder):
                continue
            result = rules.spec.check_file(f"{path.relative_to(rules.folder).as_posix()}{'/' if is_folder else ''}")
            if result.include is not None:
                return result.include
        return False


def _load(folder: Path, file: Path) -> tuple[_Rules, ...]:
    """Return the rules of a file, or nothing if it is missing, unreadable, a link or too large."""
    try:
        state = file.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > _BYTES_MAX:
            return ()
        lines = os.fsdecode(file.read_bytes()).splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec

    try:
        return (_Rules(folder, GitIgnoreSpec.from_lines(lines)),)
    except ValueError:  # Like git, skip the invalid lines only.
        return (_Rules(folder, GitIgnoreSpec.from_lines(filter(_is_valid, lines))),)


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


class FolderScan(Struct):
    """Files to index in a folder, sorted by name.

    `skipped` counts, by reason, the files and folders that are skipped on purpose. Links, hidden files, caches, virtual
    environments and Palaver homes are left out without a count. `problems` has an error for each unreadable folder, and
    for each file whose state cannot be read.
    """

    files: list[Path] = field(default_factory=list[Path])
    skipped: Counter[str] = field(default_factory=Counter[str])
    problems: list[DocumentUnreadable] = field(default_factory=list[DocumentUnreadable])

    @property
    def is_empty(self) -> bool:
        """True if the scan found nothing: no file to index, no skipped file and no unreadable file."""
        return not self.files and not self.skipped and not self.problems

    def add_problem(self, error: OSError, path: Path) -> None:
        """Report a file or folder that cannot be read."""
        self.problems.append(DocumentUnreadable(path, error.strerror or str(error), hint="Check its permissions."))


def scan(folder: Path, *, recursive: bool, without: Sequence[Path] = ()) -> FolderScan:
    """Return the files to index in a folder. Folders in `without` are left out."""
    result = FolderScan()
    errors: list[OSError] = []
    rules = {folder: IgnoreRules.of(folder)}
    for top, folders, names in os.walk(folder, onerror=errors.append):
        current = Path(top)
        own = rules.pop(current)
        if not MARKERS.isdisjoint(names) or ("pyvenv.cfg" in names and current != folder):
            folders.clear()
            continue
        for name in sorted(names):
            _add_file(result, current / name, own)
        kept = [current / name for name in sorted(folders) if recursive and not _is_hidden(name)]
        entered = [path for path in kept if path not in (*without, *SYSTEM_FOLDERS) and _is_wanted(result, path, own)]
        rules |= {path: own.enter(path) for path in entered}
        folders[:] = [path.name for path in entered]
    for error in errors:
        result.add_problem(error, Path(error.filename))
    return result


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _add_file(result: FolderScan, path: Path, rules: IgnoreRules) -> None:
    if _is_hidden(path.name):
        return
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        result.add_problem(error, path)
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if path.suffix.lower() not in SUFFIXES:
        result.skipped["unsupported"] += 1
    elif rules.match(path):
        result.skipped["ignored"] += 1
    elif reason := reason_by_name(path, status.st_size):
        result.skipped[reason] += 1
    else:
        result.files.append(path)


def _is_wanted(result: FolderScan, folder: Path, rules: IgnoreRules) -> bool:
    """Return whether a subfolder is scanned. Links are never followed."""
    if os.path.islink(folder):  # noqa: PTH114 - `Path.is_symlink` raises an error in an unreadable folder
        return False
    reason = "vendored" if folder.name in VENDORED_FOLDERS else "ignored" * rules.match(folder, is_folder=True)
    if reason:
        result.skipped[reason] += 1
    return not reason
