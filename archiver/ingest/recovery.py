"""Recovery of raw copies that have no row in the database, and re-reading of raw copies.

Recovery is needed, for example, after the database was lost. Run an ordinary ingest first. For files that agents
still have, it finds the copies and records the original paths. The original path of any other copy is unknown, so
recovery stores the path of the copy instead.

Copies are re-read after a change of the redaction rules, if the user excluded their session, or if their lines now
belong to another session. Unchanged exchanges keep their keys and observations.
"""

import time
from typing import Final

from ...core.conversation import ResumePoint, Session, now
from ...core.errors import CopyDamaged, CopyGone, SourceUnreadable
from ...core.reports import IngestReport
from ...core.runtime import Progress, silent
from ..copies.raw_copy import RawArchive, unreadable
from ..copies.verification import copies_without_row
from ..formats import TranscriptFormat
from ..formats.registry import by_agent
from ..reading.parsing import session_in
from ..reading.source_reader import IngestFilters, SourceReader, stored_session, with_parent_mark
from ..redaction import VERSION
from ..redaction.redactor import TranscriptRedactor
from ..store import Source, Store


class Recovery:
    """Ingest of raw copies that have no row in the database.

    The caller must hold the archiver's lease. The ingest can be interrupted between two copies.
    """

    def __init__(self, store: Store, raw: RawArchive, filters: IngestFilters) -> None:
        self._store, self._raw, self._filters = store, raw, filters

    def run(self, progress: Progress = silent) -> IngestReport:
        """Ingest every raw copy without a database row, oldest first, so that originals precede their forks."""
        report = IngestReport()
        waiting = sorted(copies_without_row(self._raw.root, self._store), key=lambda name: (self._modified(name), name))
        for done, archived in enumerate(waiting):
            progress(done, len(waiting))
            report.seen += 1
            try:
                self._ingest(archived, report)
            except SourceUnreadable as problem:
                report.problems.append(problem)
            except OSError as error:
                report.problems.append(unreadable(self._raw.root / archived, error))
        progress(len(waiting), len(waiting))
        return report

    def _ingest(self, archived: str, report: IngestReport) -> None:
        path, transcript_format = self._raw.root / archived, self._format(archived)
        source = self._raw.describe(archived).source(transcript_format.agent, path, archived)
        with self._raw.open(archived) as file:
            session = stored_session(self._store, session_in(transcript_format, path, file, self._filters.redactor))
            reading = SourceReader(transcript_format, session, source, self._store, self._filters)
            reading.run(file)
        with self._store.transaction():
            reading.save()
        reading.count_in(report)

    def _format(self, archived: str) -> TranscriptFormat:
        agent = archived.partition("/")[0]
        try:
            return by_agent(agent)
        except ValueError:
            hint = "It was not changed. If it is your file, move it to another folder."
            raise SourceUnreadable(
                self._raw.root / archived, "its folder is not named after a known agent", hint=hint
            ) from None

    def _modified(self, archived: str) -> int:
        """Return the modification time of a copy in ns, or 0 if it cannot be read."""
        try:
            return self._raw.describe(archived).stat.mtime
        except (OSError, SourceUnreadable):
            return 0


BUDGET: Final = 20.0
"""Maximum seconds of re-reading in one ingest run. The next run continues."""


class Rereading:
    """Re-reading of copies. The caller must hold the archiver's lease.

    Each copy is re-read completely or not at all, even if the process is interrupted.
    """

    def __init__(self, store: Store, raw: RawArchive, filters: IngestFilters) -> None:
        self._store, self._raw, self._filters = store, raw, filters

    def run(self, report: IngestReport, progress: Progress = silent, budget: float | None = BUDGET) -> None:
        """Re-read outdated copies for up to `budget` seconds.

        Without a budget, re-read only copies marked for re-reading. An unreadable copy stays outdated. A damaged copy
        is recorded as damaged.
        """
        marked, end = budget is None, time.monotonic() + (float("inf") if budget is None else budget)
        unread, has_more = set[str](), True
        while has_more:
            has_more, outdated = False, self._store.sources.outdated(scheduled_only=marked)
            waiting = [source for source in outdated if source.archived not in unread]
            for done, source in enumerate(waiting):
                if time.monotonic() > end:
                    report.outdated = len(waiting) - done
                    return
                progress(done, len(waiting))
                try:
                    reading, moved = self._reread(source)
                except SourceUnreadable as problem:
                    report.problems.append(problem)
                    unread.add(source.archived)
                    if isinstance(problem, CopyDamaged):
                        self._record_damage(source, problem)
                    continue
                report.reread += 1
                has_more |= moved
                if reading.later_sources:
                    break  # The order of these copies changed.

    def _reread(self, source: Source) -> tuple[SourceReader, bool]:
        """Re-read a copy. Return its reader, and whether other copies must be re-read as a result."""
        try:
            reading = self._read(source)
        except FileNotFoundError:
            raise CopyGone(self._raw.root / source.archived) from None
        except OSError as error:
            raise unreadable(self._raw.root / source.archived, error) from None
        with self._store.transaction():
            return reading, reading.save()

    def _record_damage(self, source: Source, damage: CopyDamaged) -> None:
        assert source.id is not None
        with self._store.transaction():
            self._store.sources.record_verification(source.id, now(), damage.reason)

    def _read(self, source: Source) -> SourceReader:
        self._raw.verify(source)  # Damaged content must not replace intact content.
        session, transcript_format = self._session(source), by_agent(source.agent)
        source.resume, source.rules = ResumePoint(), VERSION
        with self._raw.open(source.archived) as file:
            reading = SourceReader(transcript_format, session, source, self._store, self._filters)
            reading.run(file)
        return reading

    def _session(self, source: Source) -> Session:
        """Return the stored session, redacted by the current rules.

        If the ID of a sub-agent was taken for that of another parent's sub-agent, return the source's own session.
        """
        assert source.session is not None
        session = TranscriptRedactor(self._filters.redactor).session(self._store.sessions.load(source.session))
        with self._raw.open(source.archived) as file:
            own = session_in(by_agent(source.agent), source.path, file, self._filters.redactor)
        if own.native_id == session.native_id and own.scope and own.scope != session.scope:
            return stored_session(self._store, own)
        session.cwd = session.cwd or own.cwd  # A later version of the format may find the working folder.
        if session.title_rank == 0 and self._store.sources.is_first(source):
            session.title_rank = -1  # The title was taken from the first prompt, and is set again.
        return with_parent_mark(self._store, session)
