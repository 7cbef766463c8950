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
from ..copies.raw_copy import Copied, Copy, RawArchive, drop_checksums, unreadable
from ..copies.result_files import ResultFiles
from ..deletion.deletions import CopyEraser
from ..deletion.suppression import SuppressionList
from ..formats import ContainedSession, ContainerFormat, ExtractingFormat, TranscriptFormat, is_extracted
from ..formats.record_reader import is_gone, is_readable
from ..formats.registry import by_agent
from ..formats.transcript_format import SkipReason
from ..reading.lineage import begin_alike, parent_of, start_of
from ..reading.parsing import Exclusion, session_in
from ..reading.source_reader import IngestFilters, SourceReader, stored_session
from ..redaction import Redactor
from ..redaction.redactor import TranscriptRedactor
from ..store import Store
from .ingest_jobs import ContainerExtractor, IngestJob, JobPlanner
from .parallel_parser import ParallelParser, ParsedFile, ParseTask, batches
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


class CopiedTranscript(Struct):
    """Transcript that is copied to the raw archive, but not yet parsed."""

    job: IngestJob
    copied: Callable[[], Copied]
    """Function that waits for the copy. Raises `SourceUnreadable`."""
    ahead: ParsedFile | None = None
    """Content of a new file that a process of the pool parsed."""
    error: OSError | None = None
    """Error while parsing, which `Ingest.read` handles when it continues."""


class ParsedTranscript(Struct, frozen=True):
    """Transcript that is parsed, but not yet stored."""

    job: IngestJob
    reading: SourceReader


class Ingest:
    """Ingest of transcripts, one run at a time. After an interruption, each file is stored completely or not at all.

    `run` takes three steps for each transcript: `read` copies it, `parse` parses the copy, `store` stores the result.
    """

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
        self._unstored: list[ParsedTranscript] = []
        self._stored_at = 0.0
        self.report = IngestReport()
        """Result of the run so far."""

    def run(
        self, transcripts: Iterable[Transcript], progress: Progress = silent, *, budget: float | None = BUDGET
    ) -> IngestReport:
        """Ingest new content of these transcripts, as described for `read`."""
        with closing(self.read(transcripts, progress, budget=budget)) as copies:
            for copy in copies:
                self.store(self.parse(copy))
        return self.report

    def read(
        self, transcripts: Iterable[Transcript], progress: Progress = silent, *, budget: float | None = BUDGET
    ) -> Generator[CopiedTranscript]:
        """Copy new content of these transcripts, and yield each copy. The caller parses and stores it before the next.

        Unreadable files are reported, and the run continues with the other files. Afterwards, outdated copies are read
        again for up to `budget` seconds. If `budget` is None, all copies that are scheduled to be read again are read,
        and no other copies.

        The order matters: checksums of copies that are about to be rewritten are dropped first, so a killed run
        leaves no wrong ones. Copies are scheduled for erasure before bytes are appended, because these may contain
        erased lines. Sub-agents are extracted last, from complete transcripts.
        """
        report, filters = IngestReport(still_archived=self._excluded_sessions()), self._filters
        self.report = report
        erased = self._store.tombstones.has_deletions(erased=True)
        self._eraser = CopyEraser(self._store, self._raw) if erased else None
        unique = {transcript.path: transcript for transcript in transcripts}.values()
        planner = JobPlanner(self._store, self._raw, filters.redactor, filters.exclusion, self._deleted)
        jobs = planner.jobs((transcript for transcript in unique if transcript.container_format is None), report)
        drop_checksums(self._store, (job.continued for job in jobs if job.rewritten))
        if self._eraser:
            self._eraser.schedule(job.archived for job in jobs)
        try:
            yield from self._read_files(jobs, progress)
            for transcript in unique:
                if transcript.container_format is not None:
                    yield from self._read_container(transcript.path, transcript.container_format, planner, progress)
        finally:
            if self._pool is not None:
                self._pool.close()
            self._store_all()
        progress(len(jobs), len(jobs))
        self._record_problems(report.problems)
        if self._eraser:
            report.problems += self._eraser.finish()
        if self._store.sources.outdated(scheduled_only=budget is None):
            Rereading(self._store, self._raw, filters).run(report, progress, budget)
        yield from self._read_subagents(planner)
        self._store_all()

    def _excluded_sessions(self) -> int:
        """Return the number of sessions that were archived before the settings excluded them."""
        exclusion = self._filters.exclusion
        return sum(map(exclusion.covers, self._store.sessions.folders())) if exclusion else 0

    def _read_files(self, jobs: Sequence[IngestJob], progress: Progress) -> Generator[CopiedTranscript]:
        with ThreadPoolExecutor(_COPYING_THREADS) as threads:
            copies = [(job, threads.submit(self._copy, job)) for job in jobs]
            try:
                with closing(self._parsed_ahead(copies)) as transcripts:
                    for done, transcript in enumerate(transcripts):
                        progress(done, len(jobs))
                        yield transcript
                        if transcript.error:
                            raise transcript.error
            finally:
                threads.shutdown(wait=True, cancel_futures=True)

    def _copy(self, job: IngestJob) -> Copied:
        copied = self._raw.copy(job.path, job.archived, job.continued, rewrite=job.rewritten)
        try:
            ResultFiles(job.path, Copy(self._raw.root, job.archived)).update()
        except OSError as error:
            raise unreadable(Path(error.filename or job.path), error) from None
        return copied

    def _parsed_ahead(self, copies: Sequence[tuple[IngestJob, Future[Copied]]]) -> Generator[CopiedTranscript]:
        """Yield each transcript in order. If the new files are large, processes of a pool parse them ahead."""
        if sum(job.size for job, _ in copies if job.continued is None) < _PARALLEL:
            yield from (CopiedTranscript(job, copy.result) for job, copy in copies)
            return
        self._pool = pool = self._pool or ParserPool()
        for batch in batches(copies, lambda pair: pair[0].size):
            new = {
                job.archived: (ParseTask(job.format, job.path, self._raw.root, job.archived, self._key), copy)
                for job, copy in batch
                if job.continued is None
            }
            parser = ParallelParser(pool, new if len(new) > 1 and pool.size else {})
            yield from (CopiedTranscript(job, copy.result, parser.take(job.archived)) for job, copy in batch)

    def _read_container(
        self, path: Path, container_format: ContainerFormat, planner: JobPlanner, progress: Progress
    ) -> Generator[CopiedTranscript]:
        """Yield each session of a container like a separate transcript."""
        report, extractor = self.report, self._extractor(planner)
        problem: SourceUnreadable | None = None
        unread: PartlyRead | None = None
        state = 0
        try:
            changed = extractor.changed_state(path, container_format)
            if changed is None:
                report.seen += 1
                return
            state = changed
            for session in container_format.sessions(path):
                report.seen += 1
                progress(report.changed, report.changed + 1)
                try:
                    yield from self._extracted(session, container_format, extractor)
                except SourceUnreadable as unreadable_session:
                    _log.warning("%s", unreadable_session)
                    problem = SourceUnreadable(path, unreadable_session.reason, hint=unreadable_session.hint)
        except PartlyRead as partly:
            unread = partly
        except SourceUnreadable as unreadable_container:
            problem = unreadable_container
        except OSError as error:
            problem = SourceUnreadable(path, error.strerror or str(error))
        if problem is not None:
            report.problems.append(problem)
            return
        self._store_all()
        report.problems += [unread] if unread is not None else []
        with self._store.transaction():
            self._store.containers.keep(path, state)  # Another attempt would not read more of an unsupported form.
            self._store.sources.report(path, unread.reason if unread is not None else None)

    def _read_subagents(self, planner: JobPlanner) -> Generator[CopiedTranscript]:
        """Yield the sub-agents whose messages are in transcripts of their parents, including transcripts read again.

        A sub-agent with a transcript of its own is omitted.
        """
        for source in self._store.sources.unextracted(SkipReason.SUBAGENT):
            transcript_format, name = by_agent(source.agent), source.archived.partition("/")[2]
            if not isinstance(transcript_format, ExtractingFormat):
                continue
            try:
                copy = partial(self._raw.open, source.archived)
                for session, contained in transcript_format.extracted(source.path, name, source.parsed, copy):
                    if not self._has_transcript(self._redactor.session(session)):
                        self.report.seen += 1
                        yield from self._extracted(contained, transcript_format, self._extractor(planner))
            except SourceUnreadable as problem:
                self.report.problems.append(problem)
                continue
            except OSError as error:
                self.report.problems.append(unreadable(self._raw.root / source.archived, error))
                continue
            self._store_all()
            with self._store.transaction():
                self._store.containers.keep(Path(source.archived), source.parsed)

    def _has_transcript(self, session: Session) -> bool:
        """Return whether the agent wrote a transcript of this session."""
        number = self._store.sessions.find(session.agent, session.native_id, session.scope)
        return number is not None and any(not is_extracted(path) for path in self._store.sources.paths(number))

    def _extractor(self, planner: JobPlanner) -> ContainerExtractor:
        erased = self._eraser.suppressed if self._eraser else None
        return ContainerExtractor(self._store, self._raw.root, planner.names, self._filters.redactor, erased)

    def _extracted(
        self, session: ContainedSession, transcript_format: TranscriptFormat, extractor: ContainerExtractor
    ) -> Generator[CopiedTranscript]:
        if any(parsed.reading.source.path == session.path for parsed in self._unstored):
            self._store_all()  # Two exports may contain the same session.
        extracted = extractor.extract(session, transcript_format)
        if extracted is not None:
            job, copied = extracted
            yield (transcript := CopiedTranscript(job, lambda: copied))
            if transcript.error:
                raise transcript.error

    def parse(self, transcript: CopiedTranscript) -> ParsedTranscript | None:
        """Parse a copied transcript. Return None if it cannot be read.

        The store is read, but not written, so that no other process has to wait for the parser. However, transcripts
        that are not yet stored are stored first if this transcript may repeat one of them.
        """
        job, ahead = transcript.job, transcript.ahead
        try:
            source = job.source(transcript.copied())
            with self._raw.open(source.archived) as copy:
                session = ahead[0] if ahead else session_in(job.format, job.path, copy, self._filters.redactor)
                if any(parsed.reading.session.native_id == session.native_id for parsed in self._unstored):
                    self._store_all()
                session = stored_session(self._store, session)
                reading = SourceReader(job.format, session, source, self._store, self._filters)
                reading.parse(copy, ahead[1] if ahead else None)
                if any(_is_related(parsed.reading, reading) for parsed in self._unstored):
                    self._store_all()
                reading.resolve(copy)
        except SourceUnreadable as problem:
            self.report.problems.append(problem)
            return None
        except OSError as error:
            transcript.error = error
            return None
        return ParsedTranscript(job, reading)

    def store(self, parsed: ParsedTranscript | None) -> bool:
        """Store a parsed transcript, together with the next ones in one transaction. Return True if nothing waits."""
        if parsed is not None:
            if self._eraser and parsed.reading.has_deleted:
                self._eraser.schedule([parsed.job.archived])
            self._unstored.append(parsed)
            if len(self._unstored) >= _TRANSACTION or time.monotonic() - self._stored_at > _UNSTORED:
                self._store_all()
        return not self._unstored

    def _store_all(self) -> None:
        """Store all parsed transcripts in one transaction."""
        waiting, self._unstored = self._unstored, []
        self._stored_at = time.monotonic()
        if not waiting:
            return
        with self._store.transaction():
            self._store.tombstones.accept_key(self._key)
            for parsed in waiting:
                job, reading = parsed.job, parsed.reading
                if self._eraser and not reading.has_deleted:
                    self._eraser.unschedule(job.archived)
                try:
                    with self._store.step():
                        if job.replaced is not None:
                            self._store.sources.supersede(job.replaced)
                        reading.save()
                        self._store.sources.report(reading.source.path, None)
                except ValueRefused as refusal:
                    self.report.problems.append(SourceUnreadable(job.path, str(refusal), hint=refusal.hint))
                else:
                    reading.count_in(self.report)

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


def _is_related(unstored: SourceReader, reading: SourceReader) -> bool:
    """Return whether a parsed file may repeat a transcript that is not yet stored, or the reverse."""
    other, session, parsed = unstored.session, reading.session, reading.parsed
    began = start_of(parsed.exchanges)
    return (
        not unstored.records.keys().isdisjoint(parsed.records)
        or other.native_id == parent_of(session, parsed.notes)
        or (other.parent_id == session.native_id and bool(unstored.exchanges))
        or (began is not None and other.started == began and begin_alike(unstored.exchanges, parsed.exchanges))
    )
