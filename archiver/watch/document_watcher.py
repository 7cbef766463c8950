"""Watcher that keeps the documents of the watched folders indexed.

File events announce most changes. The regular scan finds every change.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...core.document import DocumentFolder
from ..documents.document_scan import DocumentChanges, DocumentScan
from ..store import Store
from .file_events import Changes, FileEvents
from .transcript_scan import watched_folder
from .transcript_watcher import SCAN

_POLL: Final = 1.0
"""Seconds between two scans if changes can happen without an event, or if deleted files are still indexed."""
_SHARE: Final = 20
"""Minimum delay until the next scan, as a multiple of the duration of the last scan."""
_EVENT_SHARE: Final = 4
"""Minimum delay until a scan that an event requests, as a multiple of the duration of the last scan."""


class DocumentWatcher:
    """Watcher that queues changed documents. The index worker reads them."""

    def __init__(
        self, store: Store, scan: DocumentScan, events: FileEvents, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._scan, self._events, self._clock = store, scan, events, clock
        self._folders: list[DocumentFolder] = []
        self._next_scan = self._earliest_scan = 0.0

    def step(self) -> DocumentChanges | None:
        """Wait up to one second for a change, scan if a scan is due, and queue changed documents.

        Return None if nothing changed.
        """
        folders = self._store.document_folders.all()
        if not folders and not self._folders:
            return None
        changes = self._events.wait() if folders == self._folders else Changes(lost=True)
        if changes.lost or any(self._is_document(path) for path in changes.paths):
            self._next_scan = min(self._next_scan, self._earliest_scan)
        if folders != self._folders:
            self._folders, self._next_scan = folders, 0.0
        if self._clock() < self._next_scan:
            return None
        found = self._run()
        return found if found.queued or found.gone else None

    def _run(self) -> DocumentChanges:
        start = self._clock()
        # Listen first, because changes before listening begins cause no event.
        watched = {watched_folder(folder.path) for folder in self._folders}
        self._events.follow([folder for folder in watched if folder is not None])
        found = self._scan.run()
        end = self._clock()
        often = self._events.may_miss_changes or found.waiting
        self._earliest_scan = end + _EVENT_SHARE * (end - start)
        self._next_scan = end + max(_POLL if often else SCAN, _SHARE * (end - start))
        return found

    def _is_document(self, path: Path) -> bool:
        """Return whether a path is in a watched folder and not below a hidden folder, such as `.git`."""
        inside = (path.relative_to(each.path) for each in self._folders if path.is_relative_to(each.path))
        return any(not any(part.startswith(".") for part in place.parts[:-1]) for place in inside)
