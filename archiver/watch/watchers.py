"""Watchers that ingest transcripts while agents write them, and keep documents of watched folders indexed.

File events announce most changes. The regular scan finds every change.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...core.document import DocumentFolder
from ...core.errors import LeaseHeld
from ...core.reports import Compression, IngestReport
from ...core.runtime import Progress, silent
from ..copies.raw_copy import RawArchive
from ..copies.verification import CopyCompressor
from ..documents.document_ingest import DocumentChanges, DocumentScan
from ..ingest.ingest import Ingest
from ..reading.parsing import Exclusion
from ..store import ARCHIVER, Store
from .file_events import Changes, FileEvents, ScannedTranscript, TranscriptScan, WatchedFolder, watched_folder

SCAN: Final = 15.0
"""Seconds between two full scans."""
_POLL: Final = 1.0
"""Seconds between two full scans if changes can happen without an event."""
_SHARE: Final = 20
"""Minimum delay until the next full scan, as a multiple of the duration of the last scan."""
_EVENT_SHARE: Final = 4
"""Minimum delay until a full scan that an event requests, as a multiple of the duration of the last scan."""
_RETRY: Final = 60.0
"""Seconds between attempts to read files that could not be read."""
_RECHECK: Final = 3600.0
"""Seconds after which every transcript is compared with the archive again."""
_LEASE_WAIT: Final = 0.5
"""Maximum seconds to wait for another ingest process to finish."""
_COMPRESSION: Final = 1.0
"""Maximum seconds of one compression step."""


class TranscriptWatcher:
    """Watcher that ingests changed transcripts of the current user into one store."""

    def __init__(
        self,
        store: Store,
        raw: RawArchive,
        scan: TranscriptScan,
        events: FileEvents,
        clock: Callable[[], float] = time.monotonic,
        exclusion: Exclusion | None = None,
        progress: Progress = silent,
    ) -> None:
        self._store, self._raw, self._scan, self._events, self._clock = store, raw, scan, events, clock
        self._progress = progress
        self._ingest, self._compressor = Ingest(store, raw, exclusion), CopyCompressor(store, raw)
        self._folders = frozenset[WatchedFolder]()
        self._failed = list[ScannedTranscript]()
        self._next_scan = self._earliest_scan = self._next_retry = 0.0
        self._next_recheck = clock() + _RECHECK

    def apply_settings(self, exclusion: Exclusion) -> None:
        """Apply new settings, and scan all transcripts again."""
        self._ingest = Ingest(self._store, self._raw, exclusion)
        self._scan.mark_changed()
        self._next_scan = 0.0

    def step(self) -> IngestReport | None:
        """Wait up to one second for a change, and ingest changed transcripts. Return None if nothing changed."""
        changes = self._events.wait() if self._next_scan else Changes()
        changed = self._changed(changes)
        return self._run(changed) if changed else None

    def compress(self) -> Compression | None:
        """Compress some copies that have not changed for a long time. Return None if another process is ingesting."""
        try:
            with self._store.leases.hold(ARCHIVER):
                return self._compressor.run(budget=_COMPRESSION)
        except LeaseHeld:
            return None

    def _changed(self, changes: Changes) -> list[ScannedTranscript]:
        if changes.lost or self._clock() >= self._next_scan:
            return self._scan_all()
        if not changes.paths:
            return []
        changed, complete = self._scan.changed_among(changes.paths)
        if not complete:
            self._next_scan = min(self._next_scan, self._earliest_scan)
            if self._clock() >= self._next_scan:
                return self._scan_all()
        return changed

    def _scan_all(self) -> list[ScannedTranscript]:
        start = self._clock()
        if start >= self._next_recheck:
            self._scan.mark_changed()
            self._next_recheck = start + _RECHECK
        if start >= self._next_retry:
            self._scan.mark_changed(each.transcript.path for each in self._failed)
            self._failed, self._next_retry = [], start + _RETRY
        changed = self._scan.all_changed()
        end = self._clock()
        self._earliest_scan = end + _EVENT_SHARE * (end - start)
        self._next_scan = end + max(_POLL if self._events.may_miss_changes else SCAN, _SHARE * (end - start))
        folders = self._scan.folders()
        if folders != self._folders:
            self._folders = folders
            self._events.follow(folders)
            self._next_scan = end  # Changes before listening begins cause no event.
        return changed

    def _run(self, changed: list[ScannedTranscript]) -> IngestReport | None:
        try:
            with self._store.leases.hold(ARCHIVER, _LEASE_WAIT):
                report = self._ingest.run((each.transcript for each in changed), self._progress)
        except LeaseHeld:
            self._next_scan = self._clock() + _POLL
            return None
        self._scan.mark_ingested(changed)
        failed = {problem.path for problem in report.problems}
        self._failed += [each for each in changed if each.transcript.path in failed]
        self._store.stages.note("archive", report.problems)
        return report


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
        report = self._run()
        return report if report.queued or report.gone else None

    def _run(self) -> DocumentChanges:
        start = self._clock()
        # Listen first, because changes before listening begins cause no event.
        watched = {watched_folder(folder.path) for folder in self._folders}
        self._events.follow([folder for folder in watched if folder is not None])
        changed = self._scan.run()
        end = self._clock()
        often = self._events.may_miss_changes or changed.waiting
        self._earliest_scan = end + _EVENT_SHARE * (end - start)
        self._next_scan = end + max(_POLL if often else SCAN, _SHARE * (end - start))
        return changed

    def _is_document(self, path: Path) -> bool:
        """Return whether a path is in a watched folder and not below a hidden folder, such as `.git`."""
        inside = (path.relative_to(each.path) for each in self._folders if path.is_relative_to(each.path))
        return any(not any(part.startswith(".") for part in place.parts[:-1]) for place in inside)
