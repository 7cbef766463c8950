"""The background archiver, which ingests new transcript lines within seconds and starts their indexing soon after.

Ingest runs in this process. Another process, the index worker, extracts observations, embeds texts and publishes the
index, so that ingest never waits for indexing.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.documents.document_ingest import DocumentScan
from ...archiver.reading.parsing import Exclusion
from ...archiver.store import ARCHIVER, WATCHER, Store
from ...archiver.watch.file_events import FileEvents, TranscriptScan
from ...archiver.watch.watchers import DocumentWatcher, TranscriptWatcher
from ...core.config import Config
from ...core.errors import LeaseHeld, PalaverError
from ...core.home import Home
from ...core.reports import IngestReport
from ...search.index.generation import Generations
from ..deletion.erasure import erase_expired, finish, is_unfinished
from .index_worker import IndexWorker, WorkerResult
from .schedule import IndexSchedule, ModelResult, ModelSchedule

_MAINTENANCE: Final = 3600.0
"""Seconds between two runs that compress copies and erase expired deletions."""
_HEARTBEAT: Final = 60.0
"""Seconds between two heartbeats, which record in the database that the archiver is running."""
_PATIENCE: Final = 60.0
"""Seconds to wait at the start for another ingest process."""
_RETRY: Final = (1.0, 60.0)
"""Seconds until the first retry after a failure, and the maximum delay of later retries."""

Listener = Callable[[str, Mapping[str, object]], None]
"""Callback that receives the name and the counts of each event, but never archived content."""


class BackgroundArchiver:
    """Background archiver of one home. A second archiver for the same home raises `LeaseHeld`."""

    def __init__(
        self,
        home: Home,
        events: FileEvents,
        listener: Listener,
        settings: Callable[[], Config] = Config,
        model_command: Callable[[Config], Sequence[str]] = lambda _: (),
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        check_stop: Callable[[], None] = lambda: None,
        document_events: FileEvents | None = None,
    ) -> None:
        """Prepare to archive. `settings` returns the current settings and is called in each step.

        `document_events` announces changes in the watched folders of documents. Without it, they are polled.

        `model_command` returns the command that sends quiet sessions to the language model, or nothing. `check_stop` is
        called often, and raises KeyboardInterrupt if the archiver must stop.

        Raises:
            ConfigInvalid: The settings are invalid.
        """
        self._home, self._events, self._listener = home, events, listener
        self._document_events = document_events or FileEvents(poll=True, seconds=0.0)
        self._settings, self._clock, self._wait, self._check_stop = settings, clock, wait, check_stop
        self._excluded = settings().exclude
        self._exclusion = Exclusion(self._excluded)
        self._scan, self._worker = TranscriptScan(), IndexWorker(home)
        self._model_schedule = ModelSchedule(lambda: model_command(settings()), clock)
        self._retry = _RETRY[0]
        self._next_heartbeat = self._next_maintenance = 0.0
        self._holds_lease = False
        self._failures = dict[str, str]()
        """The last reported failure of each failing stage."""

    def run(self) -> None:
        """Archive until interrupted. Failures, such as a full disk, are reported and retried."""
        try:
            while True:
                try:
                    self._watch()
                except (PalaverError, OSError) as problem:
                    if isinstance(problem, LeaseHeld) and not self._holds_lease:
                        raise
                    self._report_failure("watch", problem, self._retry)
                    self._check_stop()
                    self._wait(self._retry)
                    self._retry = min(self._retry * 2, _RETRY[1])
        finally:
            self._worker.stop()
            self._model_schedule.stop()
            self._events.close()
            self._document_events.close()

    def _watch(self) -> None:
        self._holds_lease = False
        self._home.make()
        self._scan.mark_changed()
        with Store.create(self._home.database) as store, store.leases.hold(WATCHER, patience=1.0):
            self._holds_lease = True
            raw = RawArchive(self._home.archive)
            self._erase(store, _PATIENCE)
            report = store.leases.reporter(ARCHIVER, lambda _stage, _done, _total: self._check_stop())
            watcher = TranscriptWatcher(
                store,
                raw,
                self._scan,
                self._events,
                self._clock,
                self._exclusion,
                progress=partial(report, "Archiving"),
            )
            scan = DocumentScan(store, without=[self._home.root.resolve()])
            documents = DocumentWatcher(store, scan, self._document_events, self._clock)
            schedule = IndexSchedule(store, self._worker, self._model, self._clock)
            if "watch" not in self._failures:
                self._listener("watching", {})
            while True:
                self._check_stop()
                self._step(store, watcher, documents, schedule)
                self._retry = _RETRY[0]
                if self._failures.pop("watch", None):
                    self._listener("watching", {})

    def _step(
        self, store: Store, watcher: TranscriptWatcher, documents: DocumentWatcher, schedule: IndexSchedule
    ) -> None:
        self._home.check()
        self._apply_settings(watcher)
        ingested = watcher.step()
        if ingested is not None:
            self._report_ingest(ingested)
            if ingested.exchanges:
                self._model_schedule.note_ingest()
        changes = documents.step()
        if changes is not None:
            self._listener("documents", {"changed": changes.queued, "deleted": changes.gone})
        result = schedule.step()
        if result is not None:
            self._report_index(store, result, schedule.next_in)
        extracted = self._model_schedule.step()
        if extracted is not None:
            self._report_extraction(extracted)
        now = self._clock()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + _HEARTBEAT
            store.stages.note("watch")
            Generations(self._home.index).sweep()
        if now >= self._next_maintenance and schedule.quiet:
            self._maintain(store, watcher, now)

    def _model(self) -> str | None:
        return self._settings().model

    def _apply_settings(self, watcher: TranscriptWatcher) -> None:
        excluded = self._settings().exclude
        if excluded != self._excluded:
            self._excluded, self._exclusion = excluded, Exclusion(excluded)
            watcher.apply_settings(self._exclusion)
            self._listener("settings", {"exclude": len(excluded)})

    def _maintain(self, store: Store, watcher: TranscriptWatcher, now: float) -> None:
        done = watcher.compress()
        if done is None:
            return
        if not done.waiting:
            self._next_maintenance = now + _MAINTENANCE
            self._erase(store)
        if done.compressed or done.problems:
            self._listener("compressed", {"files": done.compressed, "problems": len(done.problems)})
        store.stages.note("compress", done.problems)

    def _erase(self, store: Store, patience: float = 0.0) -> None:
        """Erase expired deletions, and finish interrupted erasures.

        If another process ingests or builds an index, the erasure waits for the next call. Failures are reported and
        retried.
        """
        if not store.tombstones.has_deletions():
            return
        try:
            with suppress(LeaseHeld), store.leases.hold(ARCHIVER, patience):
                erase_expired(self._home, store)
                unfinished = is_unfinished(store)
                problems = finish(self._home, store, self._exclusion, self._model()).problems if unfinished else ()
                failing = {f"erase {problem.path}": problem for problem in problems}
                for stage in [stage for stage in self._failures if stage.startswith("erase") and stage not in failing]:
                    del self._failures[stage]
                for stage, problem in failing.items():
                    self._report_failure(stage, problem, _MAINTENANCE)
        except (PalaverError, OSError) as problem:
            self._report_failure("erase", problem, _MAINTENANCE)

    def _report_failure(self, stage: str, problem: PalaverError | OSError, again_in: float) -> None:
        """Report a failure and its remedy, unless this stage reported the same failure last time."""
        message = problem.full_message if isinstance(problem, PalaverError) else str(problem)
        if self._failures.get(stage) != message:
            self._failures[stage] = message
            self._listener("failed", {"problem": message, "again_in": round(again_in)})

    def _report_ingest(self, done: IngestReport) -> None:
        if done.changed or done.problems:
            numbers = {"files": done.changed, "lines": done.lines, "exchanges": done.exchanges}
            self._listener("ingested", {**numbers, "problems": len(done.problems)})

    def _report_extraction(self, result: ModelResult | PalaverError) -> None:
        if isinstance(result, PalaverError):
            self._report_failure("model", result, self._model_schedule.next_in)
            return
        self._failures.pop("model", None)
        if result.cards:
            self._listener("extracted", {"sessions": result.cards, "observations": result.observations})

    def _report_index(self, store: Store, result: WorkerResult | PalaverError, again_in: float) -> None:
        store.stages.note("learn", [result] if isinstance(result, PalaverError) else [])
        if isinstance(result, PalaverError):
            self._report_failure("learn", result, again_in)
            return
        self._failures.pop("learn", None)
        if result.observed or result.embedded:
            numbers = {"observed": result.observed, "embedded": result.embedded, "behind": result.lag}
            self._listener("indexed", numbers)
        if result.reindexed:
            self._listener("reindexed", {"made_by": "another version of Palaver"})
        if result.verified.repaired or result.verified.damaged:
            done = result.verified
            self._listener("verified", {"copies": done.checked, "repaired": done.repaired, "damaged": done.damaged})
