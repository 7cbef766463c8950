"""Selection of the documents to remove from the index after a scan of their folder."""

from collections.abc import Iterable
from pathlib import Path

from ...core.document import DocumentFolder
from ..formats.folders import is_gone
from .folder_scan import FolderScan


def removed(
    known: Iterable[Path], folder: DocumentFolder, found: FolderScan, watched: Iterable[DocumentFolder]
) -> list[Path]:
    """Return the known files of a folder that its scan did not find.

    Some files are kept:

    - Files in unreadable folders.
    - Files in another watched folder below this one, unless they were deleted.
    - Every file, if the scan found no file at all, because the folder can be an empty mount point.
    """
    if found.is_empty:
        return []
    files, unreadable = frozenset(found.files), frozenset(problem.path for problem in found.problems)
    inner = [each for each in watched if each.namespace == folder.namespace and folder.path in each.path.parents]
    return [
        path
        for path in known
        if path not in files
        and folder.contains(path)
        and unreadable.isdisjoint((path, *path.parents))
        and (is_gone(path) or not any(each.contains(path) for each in inner))
    ]
