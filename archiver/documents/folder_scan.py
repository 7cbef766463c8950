"""Scan of a folder for documents and source code."""

import os
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from ...core.errors import DocumentUnreadable
from ...core.home import MARKERS
from .document_formats import SUFFIXES
from .document_roots import SYSTEM_FOLDERS
from .generated_files import VENDORED_FOLDERS, reason_by_name
from .ignore_rules import IgnoreRules


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
    found = FolderScan()
    errors: list[OSError] = []
    rules = {folder: IgnoreRules.of(folder)}
    for top, folders, names in os.walk(folder, onerror=errors.append):
        current = Path(top)
        own = rules.pop(current)
        if not MARKERS.isdisjoint(names) or ("pyvenv.cfg" in names and current != folder):
            folders.clear()
            continue
        for name in sorted(names):
            _add_file(found, current / name, own)
        kept = [current / name for name in sorted(folders) if recursive and not _is_hidden(name)]
        wanted = [path for path in kept if path not in (*without, *SYSTEM_FOLDERS) and _is_wanted(found, path, own)]
        rules |= {path: own.enter(path) for path in wanted}
        folders[:] = [path.name for path in wanted]
    for error in errors:
        found.add_problem(error, Path(error.filename))
    return found


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _add_file(found: FolderScan, path: Path, rules: IgnoreRules) -> None:
    if _is_hidden(path.name):
        return
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        found.add_problem(error, path)
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if path.suffix.lower() not in SUFFIXES:
        found.skipped["unsupported"] += 1
    elif rules.match(path):
        found.skipped["ignored"] += 1
    elif reason := reason_by_name(path, status.st_size):
        found.skipped[reason] += 1
    else:
        found.files.append(path)


def _is_wanted(found: FolderScan, folder: Path, rules: IgnoreRules) -> bool:
    """Return whether a subfolder is scanned. Links are never followed."""
    if os.path.islink(folder):  # noqa: PTH114 - `Path.is_symlink` raises an error in an unreadable folder
        return False
    reason = "vendored" if folder.name in VENDORED_FOLDERS else "ignored" * rules.match(folder, is_folder=True)
    if reason:
        found.skipped[reason] += 1
    return not reason
