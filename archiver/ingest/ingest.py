"""The ingest run, which copies, parses and stores every new or changed transcript."""

import logging
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.conversation import Session
from ...core.errors import PartlyRead, SourceUnreadable, ValueRefused
from ...core.home import Home
from ...core.reports import IngestReport
from ...core.runtime import Progress, silent
from .. import lines
from ..copies.raw_copy import Copied, Copy, RawArchive, drop_checksums, unreadable
from ..copies.result_files import ResultFiles
from ..deletion.deletions import CopyEraser
from ..deletion.suppression import SuppressionList
from ..formats import ContainedSession, ContainerFormat, ExtractingFormat, TranscriptFormat, is_extracted
from ..formats.record_reader import is_gone, is_readable
from ..formats.registry import by_agent
from ..formats.transcript_format import SkipReason
from ..reading.lineage import begin_alike, parent_of, start_of
from ..reading.parsing import Exclusion, ParsedLines, parse
from ..reading.source_reader import IngestFilters, SourceReader
from ..redaction import Redactor
from ..redaction.redactor import TranscriptRedactor
from ..store import Source, Store
from .container_extraction import ContainerExtractor
from .ingest_jobs import (
    IngestJob,
    JobPlanner,
    ParallelParser,
    ParsedFile,
    ParseTask,
    batches,
    store_reading,
    stored_session,
)
from .parser_pool import ParserPool
from .recovery import BUDGET, Rereading
from .transcripts import Transcript

_COPYING_THREADS: Final = 4
_TRANSACTION: Final = 16
"""Number of parsed transcripts per transaction. Larger transactions are faster, because each one waits for the disk."""
_UNSTORED: Final = 0.3
"""Seconds after which parsed transcripts are stored, even if fewer than `_TRANSACTION` are waiting.

Therefore, a process that is killed often still makes progress.
"""
_PARALLEL: Final = 8 << 20
"""Total size of new files, in bytes, above which a pool of parser processes saves time."""
_log = logging.getLogger(__name__)


class _Ingested(Struct, frozen=True):
    """Transcript that is parsed but not yet stored."""

    job: IngestJob
    source: Source
    session: Session
    reading: SourceReader


class Ingest:
    """Ingest of transcripts, one run at a time. After an interruption, each file is stored completely or not at all."""

    def __init__(
        self, store: Store, raw: RawArchive, exclusion: Exclusion | None = None, *, pool: ParserPool | None = None
    ) -> None:
        """Prepare runs. The caller must hold the archiver's lease. `pool` may already be running. Raises `KeyLost`."""
        self._store, self._raw, self._pool = store, raw, pool
        home = Home(raw.root.parent)
        self._key = home.key()
        self._deleted = SuppressionList(store, self._key)
        self._filters = IngestFilters(home.root, Redactor(self._key), exclusion or Exclusion(), self._deleted)
        self._redactor = TranscriptRedactor(self._filters.redactor)
        self._eraser: CopyEraser | None = None
        self._unstored: list[_Ingested] = []
        self._stored_at = 0.0

    def run(
        self,
        transcripts: Iterable[Transcript],
        progress: Progress = silent,
        *,
        budget: float | None = BUDGET,
        stored: Callable[[], None] = lambda: None,
    ) -> IngestReport:
        """Ingest new content of these transcripts. Report unreadable files, and continue with the other files.

        Afterwards, outdated copies are read again for up to `budget` seconds. If `budget` is None, all copies that are
        scheduled to be read again are read, and no other copies. `stored` is called each time new content was stored.
        """
        report, filters = IngestReport(still_archived=self._excluded_sessions()), self._filters
        erased = self._store.tombstones.has_deletions(erased=True)
        self._eraser = CopyEraser(self._store, self._raw) if erased else None
        found = {each.path: each for each in transcripts}.values()
        planner = JobPlanner(self._store, self._raw, filters.redactor, filters.exclusion, self._deleted)
        jobs = planner.jobs((each for each in found if each.container_format is None), report)
        drop_checksums(self._store, (job.continued for job in jobs if job.rewritten))
        if self._eraser:
            self._eraser.schedule(job.archived for job in jobs)
        try:
            self._ingest_files(jobs, progress, stored, report)
            for container, known in ((each.path, each.container_format) for each in found):
                if known is not None:
                    self._ingest_container(container, known, planner.names, progress, report)
        finally:
            if self._pool is not None:
                self._pool.close()
            self._store_all(report)
        progress(len(jobs), len(jobs))
        self._record_problems(report.problems)
        if self._eraser:
            report.problems += self._eraser.finish()
        if self._store.sources.outdated(scheduled_only=budget is None):
            Rereading(self._store, self._raw, filters).run(report, progress, budget)
        self._ingest_extracted(planner.names, report)
        return report

    def _excluded_sessions(self) -> int:
        """Return the number of sessions that were archived before the settings excluded them."""
        exclusion = self._filters.exclusion
        return sum(map(exclusion.covers, self._store.sessions.folders())) if exclusion else 0

    def _ingest_files(
        self, jobs: Sequence[IngestJob], progress: Progress, stored: Callable[[], None], report: IngestReport
    ) -> None:
        with ThreadPoolExecutor(_COPYING_THREADS) as threads:
            copies = [(job, threads.submit(self._copy, job)) for job in jobs]
            try:
                with closing(self._parsed(copies)) as parsed:
                    for done, (job, copy, file) in enumerate(parsed):
                        progress(done, len(jobs))
                        self._ingest(job, copy.result, file, report)
                        if not self._unstored:
                            stored()
            finally:
                threads.shutdown(wait=True, cancel_futures=True)

    def _copy(self, job: IngestJob) -> Copied:
        copied = self._raw.copy(job.path, job.archived, job.continued, rewrite=job.rewritten)
        try:
            ResultFiles(job.path, Copy(self._raw.root, job.archived)).update()
        except OSError as error:
            raise unreadable(Path(error.filename or job.path), error) from None
        return copied

    def _parsed(
        self, copies: Sequence[tuple[IngestJob, Future[Copied]]]
    ) -> Generator[tuple[IngestJob, Future[Copied], ParsedFile | None]]:
        """Yield each job in order, with the parsed content of its file if a pool process parsed it."""
        if sum(job.size for job, _ in copies if job.continued is None) < _PARALLEL:
            yield from ((job, copy, None) for job, copy in copies)
            return
        self._pool = pool = self._pool or ParserPool()
        for batch in batches(copies, lambda each: each[0].size):
            new = {
                job.archived: (ParseTask(job.format, job.path, self._raw.root, job.archived, self._key), copy)
                for job, copy in batch
                if job.continued is None
            }
            if len(new) < 2 or not pool.size:
                yield from ((job, copy, None) for job, copy in batch)
                continue
            parser = ParallelParser(pool, new)
            yield from ((job, copy, parser.take(job.archived)) for job, copy in batch)

    def _ingest_container(
        self, path: Path, transcript_format: ContainerFormat, names: set[str], progress: Progress, report: IngestReport
    ) -> None:
        """Ingest each session of a container like a separate transcript."""
        erased = self._eraser.suppressed if self._eraser else None
        extractor = ContainerExtractor(self._store, self._raw.root, names, self._filters.redactor, erased)
        problem: SourceUnreadable | None = None
        unread: PartlyRead | None = None
        state = 0
        try:
            changed = extractor.changed_state(path, transcript_format)
            if changed is None:
                report.seen += 1
                return
            state = changed
            for session in transcript_format.sessions(path):
                report.seen += 1
                progress(report.changed, report.changed + 1)
                try:
                    self._ingest_contained(session, transcript_format, extractor, report)
                except SourceUnreadable as found:
                    _log.warning("%s", found)
                    problem = SourceUnreadable(path, found.reason, hint=found.hint)
        except PartlyRead as found:
            unread = found
        except SourceUnreadable as found:
            problem = found
        except OSError as error:
            problem = SourceUnreadable(path, error.strerror or str(error))
        if problem is not None:
            report.problems.append(problem)
            return
        self._store_all(report)
        report.problems += [unread] if unread is not None else []
        with self._store.transaction():
            self._store.containers.keep(path, state)  # Another attempt would not read more of an unsupported form.
            self._store.sources.report(path, unread.reason if unread is not None else None)

    def _ingest_extracted(self, names: set[str], report: IngestReport) -> None:
        """Ingest the sub-agents whose messages are in transcripts of their parents, including transcripts read again.

        A sub-agent with a transcript of its own is omitted.
        """
        erased = self._eraser.suppressed if self._eraser else None
        extractor = ContainerExtractor(self._store, self._raw.root, names, self._filters.redactor, erased)
        for source in self._store.sources.unextracted(SkipReason.SUBAGENT):
            known, name = by_agent(source.agent), source.archived.partition("/")[2]
            if not isinstance(known, ExtractingFormat):
                continue
            try:
                opened = partial(self._raw.open, source.archived)
                for session, contained in known.extracted(source.path, name, source.parsed, opened):
                    if not self._has_transcript(self._redactor.session(session)):
                        report.seen += 1
                        self._ingest_contained(contained, known, extractor, report)
            except SourceUnreadable as problem:
                report.problems.append(problem)
                continue
            except OSError as error:
                report.problems.append(unreadable(self._raw.root / source.archived, error))
                continue
            self._store_all(report)
            with self._store.transaction():
                self._store.containers.keep(Path(source.archived), source.parsed)

    def _has_transcript(self, session: Session) -> bool:
        """Return whether the agent wrote a transcript of this session."""
        number = self._store.sessions.find(session.agent, session.native_id, session.scope)
        return number is not None and any(not is_extracted(path) for path in self._store.sources.paths(number))

    def _ingest_contained(
        self, session: ContainedSession, known: TranscriptFormat, extractor: ContainerExtractor, report: IngestReport
    ) -> None:
        if any(each.source.path == session.path for each in self._unstored):
            self._store_all(report)  # Two exports may contain the same session.
        extracted = extractor.extract(session, known)
        if extracted is not None:
            job, copied = extracted
            self._ingest(job, lambda: copied, None, report)

    def _ingest(
        self, job: IngestJob, copied: Callable[[], Copied], file: ParsedFile | None, report: IngestReport
    ) -> None:
        try:
            ingested = self._read(job, job.source(copied()), file, report)
        except SourceUnreadable as problem:
            report.problems.append(problem)
            return
        if self._eraser and ingested.reading.has_deleted:
            self._eraser.schedule([job.archived])
        self._unstored.append(ingested)
        if len(self._unstored) >= _TRANSACTION or time.monotonic() - self._stored_at > _UNSTORED:
            self._store_all(report)

    def _read(self, job: IngestJob, source: Source, file: ParsedFile | None, report: IngestReport) -> _Ingested:
        """Read a copy without writing to the store, so that no other process has to wait for the parser."""
        with self._raw.open(source.archived) as copy:
            session = file[0] if file else self._redactor.session(job.format.identify(job.path, lines.head(copy)))
            parsed = file[1] if file else None
            if any(each.session.native_id == session.native_id for each in self._unstored):
                self._store_all(report)
            session = stored_session(self._store, session)
            if parsed is None:
                parsed = parse(job.format, session, source.resume, copy, self._filters.redactor)
            if any(_is_related(each, session, parsed) for each in self._unstored):
                self._store_all(report)
            reading = SourceReader(job.format, session, source, self._store, self._filters)
            reading.run(copy, parsed)
        return _Ingested(job, source, session, reading)

    def _store_all(self, report: IngestReport) -> None:
        """Store all parsed transcripts in one transaction."""
        waiting, self._unstored = self._unstored, []
        self._stored_at = time.monotonic()
        if not waiting:
            return
        with self._store.transaction():
            self._store.tombstones.accept_key(self._key)
            for each in waiting:
                if self._eraser and not each.reading.has_deleted:
                    self._eraser.unschedule(each.job.archived)
                try:
                    with self._store.step():
                        self._store_one(each)
                except ValueRefused as refusal:
                    report.problems.append(SourceUnreadable(each.job.path, str(refusal), hint=refusal.hint))
                else:
                    report.changed += 1
                    report.lines += each.reading.lines
                    report.repeated += len(each.reading.repetitions)
                    report.exchanges += len(each.reading.exchanges)

    def _store_one(self, ingested: _Ingested) -> None:
        if ingested.job.replaced is not None:
            self._store.sources.supersede(ingested.job.replaced)
        store_reading(self._store, ingested.source, ingested.session, ingested.reading)
        self._store.sources.report(ingested.source.path, None)

    def _record_problems(self, problems: Sequence[SourceUnreadable]) -> None:
        """Record unreadable files, and clear records of files that are deleted or readable again."""
        current = {problem.path: problem.reason for problem in problems if not is_gone(problem.path)}
        before = [path for path, _ in self._store.sources.problems()]
        solved = [path for path in before if path not in current and (is_gone(path) or is_readable(path))]
        if not current and not solved:
            return
        with self._store.transaction():
            for path, reason in current.items():
                self._store.sources.report(path, reason)
            for path in solved:
                self._store.sources.report(path, None)


def _is_related(unstored: _Ingested, session: Session, parsed: ParsedLines) -> bool:
    """Return whether a parsed file may repeat a transcript that is not yet stored, or the reverse."""
    other, began = unstored.session, start_of(parsed.exchanges)
    return (
        not unstored.reading.records.keys().isdisjoint(parsed.records)
        or other.native_id == parent_of(session, parsed.notes)
        or (other.parent_id == session.native_id and bool(unstored.reading.exchanges))
        or (began is not None and other.started == began and begin_alike(unstored.reading.exchanges, parsed.exchanges))
    )
