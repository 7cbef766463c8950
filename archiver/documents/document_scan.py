"""Scan of the watched folders for new, changed and deleted documents. The scan queues files, but does not read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ...core.document import DocumentFilter, DocumentFolder
from ..copies.raw import Stat
from ..store import QueuedFile, Store
from .document_removal import removed
from .folder_scan import scan

_Files: TypeAlias = dict[Path, Stat]


class DocumentChanges(Struct):
    """Number of queued files and of deleted files. A moved file counts as both.

    `waiting` is true if deleted files stay indexed until all queued files are read. A moved file can then keep its
    chunks.
    """

    queued: int = 0
    gone: int = 0
    waiting: bool = False


class DocumentScan:
    """Scanner that remembers the state of each file in the watched folders, and finds the changes."""

    def __init__(self, store: Store, without: Sequence[Path]) -> None:
        """Create a scanner. Files below the folders in `without`, such as Palaver's home, are skipped."""
        self._store, self._without = store, without
        self._known: dict[DocumentFolder, _Files] = {}

    def run(self) -> DocumentChanges:
        """Queue new and changed files, and remove deleted files from the index.

        A folder that does not exist, such as one on an unmounted disk, keeps its documents.
        """
        done, folders = DocumentChanges(), self._store.document_folders.all()
        self._known = {folder: files for folder, files in self._known.items() if folder in folders}
        for folder in folders:
            if folder.path.is_dir():
                self._run(folder, folders, done)
        return done

    def _run(self, folder: DocumentFolder, watched: Sequence[DocumentFolder], done: DocumentChanges) -> None:
        found = scan(folder.path, recursive=folder.recursive, without=self._without)
        states = {path: state for path in found.files if (state := _state(path)) is not None}
        documents, wanted = self._store.documents, DocumentFilter((folder.namespace,), under=folder.path)
        stored = documents.modified(wanted)
        known = self._known.get(folder)
        changed = [
            path
            for path, state in states.items()
            # The first scan compares with the index, because files may have changed while nothing watched them.
            if (known.get(path) != state if known is not None else stored.get(path) != state.mtime // 1_000_000)
        ]
        failed = [each.file for each in documents.failed(wanted)]
        gone = removed([*stored, *failed], folder, found, watched)
        if changed:
            with self._store.transaction():
                documents.queue(QueuedFile(path, folder.namespace, folder.path) for path in changed)
            done.queued += len(changed)
        self._known[folder] = states
        if gone and documents.count_queued():
            done.waiting = True
        elif gone:
            with self._store.transaction():
                documents.delete(DocumentFilter((folder.namespace,), tuple(gone)))
            done.gone += len(stored.keys() & gone)


def _state(path: Path) -> Stat | None:
    try:
        return Stat.of(path)
    except OSError:
        return None
