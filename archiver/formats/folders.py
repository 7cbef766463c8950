"""Functions that find an agent's files and name their copies in the archive."""

import errno
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from ...core.home import MARKERS, home_of
from ...core.report import Unsearched

_log = logging.getLogger(__name__)
_UNSAFE = re.compile(r'[%\\/:*?"<>|\x00-\x1f\x7f\udc80-\udcff]')


def files(
    root: Path, wanted: Callable[[str], bool], *, without: Collection[str] = (), skipped: Unsearched | None = None
) -> Iterator[Path]:
    """Yield the files below a folder whose names `wanted` accepts, sorted. If the root is a file, yield only the root.

    Folders named in `without` and Palaver homes are skipped. Links to folders are not followed: a target inside the
    root is found anyway, and a target outside does not belong to the agent. Skipped Palaver homes, and links to folders
    outside the root, are added to `skipped`. Each unreadable folder is logged as a warning.
    """
    found = Unsearched() if skipped is None else skipped
    real = Path(os.path.realpath(root))
    if (home := home_of(real)) is not None:
        found.homes.add(home)
    elif root.is_file():
        yield root
    else:
        yield from _walk(root, real, wanted, without, found)


def _walk(
    folder: Path, root: Path, wanted: Callable[[str], bool], without: Collection[str], skipped: Unsearched
) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        _log.warning("skipped %s: %s", os.fsencode(folder), error.strerror)
        return
    if any(entry.name in MARKERS for entry in entries):
        skipped.homes.add(folder)
        return
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:
            if error.errno != errno.ELOOP:  # A cycle of links has no target.
                _log.warning("skipped %s: %s", os.fsencode(path), error.strerror)
            continue
        target = Path(os.path.realpath(path)) if entry.is_symlink() and (is_folder or is_file) else path
        if is_folder and entry.name not in without:
            if target is path:
                yield from _walk(path, root, wanted, without, skipped)
            elif not target.is_relative_to(root):
                skipped.links.add(path)
        elif is_file and wanted(entry.name):
            if target is path or (home := home_of(target)) is None:
                yield path
            else:
                skipped.homes.add(home)


def matching(patterns: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """Yield the existing paths that match patterns.

    Each pattern is a folder and a glob below it, such as `*/state.vscdb`. The paths are sorted within each folder.
    Unlike `Path.glob`, this function raises the first `PermissionError` after yielding every readable path.
    """
    errors: list[PermissionError] = []
    for folder, pattern in patterns:
        yield from sorted(_matching(folder, pattern.split("/"), errors))
    if errors:
        raise errors[0]


def _matching(path: Path, parts: Sequence[str], errors: list[PermissionError]) -> Iterator[Path]:
    try:
        if not parts:
            path.stat()
            yield path
            return
        children = [each for each in path.iterdir() if each.match(parts[0])] if "*" in parts[0] else [path / parts[0]]
    except PermissionError as error:
        errors.append(error)
    except OSError as error:
        _log.debug("nothing at %s: %s", os.fsencode(path), error.strerror)
    else:
        for each in children:
            yield from _matching(each, parts[1:], errors)


def is_unreadable(folder: Path) -> bool:
    """Return whether this user lacks permission to read a folder. Return False if the folder does not exist."""
    try:
        os.scandir(folder).close()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def is_readable(path: Path) -> bool:
    """Return whether a folder exists and can be read."""
    return path.is_dir() and not is_unreadable(path)


def is_gone(path: Path) -> bool:
    """Return whether nothing exists at a path. Return False if a missing permission prevents the check."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def archive_name(path: Path, root: Path) -> str:
    """Return the path relative to the root, with unsafe characters percent-encoded.

    If a file is directly in the root, or outside the root, the result begins with the name of the file's folder.
    Example: `sessions/a.jsonl`.
    """
    parts = path.relative_to(root).parts if path.is_relative_to(root) else (path.name,)
    if len(parts) < 2:
        parts = (path.parent.name or "root", path.name)
    return "/".join(map(safe, parts))


def safe(part: str) -> str:
    """Return a path component with percent-encoding for characters that some file systems do not allow."""
    if part.strip(".") == "":
        return part.replace(".", "%2E") or "%"
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", part)
