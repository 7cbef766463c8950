"""Ingest of transcripts while agents write them.

File events announce most changes. The regular scan finds every change.
"""

import time
from collections.abc import Callable
from typing import Final

from ...core.errors import LeaseHeld
from ...core.progress import Progress, silent
from ...core.report import Compression, IngestReport
from ..copies.compressor import CopyCompressor
from ..copies.raw import RawArchive
from ..ingest.ingest import Ingest
from ..reading.exclusion import Exclusion
from ..store import ARCHIVER, Store
from .file_events import Changes, FileEvents
from .transcript_scan import ScannedTranscript, TranscriptScan, WatchedFolder

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
