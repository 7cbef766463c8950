"""Re-reading of raw copies, for example after a change of the redaction rules.

Copies are also re-read if the user excluded their session, or if their lines now belong to another session. Unchanged
exchanges keep their keys and observations.
"""

import time
from typing import Final

from ...core.clock import now
from ...core.conversation import ResumePoint, Session
from ...core.errors import CopyDamaged, CopyGone, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import IngestReport
from ..copies.raw import RawArchive, unreadable
from ..files.lines import head
from ..formats.registry import by_agent
from ..reading.source_reader import IngestFilters, SourceReader
from ..redaction import VERSION
from ..redaction.transcript_redactor import TranscriptRedactor
from ..store import Source, Store
from .storing import store_reading, stored_session, with_parent_mark

BUDGET: Final = 20.0
"""Maximum seconds of re-reading in one ingest run. The next run continues."""


class Rereading:
    """Re-reading of copies. The caller must hold the archiver's lease.

    Each copy is re-read completely or not at all, even if the process is interrupted.
    """

    def __init__(self, store: Store, raw: RawArchive, filters: IngestFilters) -> None:
        self._store, self._raw, self._filters = store, raw, filters
        self._redactor = TranscriptRedactor(filters.redactor)

    def run(self, report: IngestReport, progress: Progress = silent, budget: float | None = BUDGET) -> None:
        """Re-read outdated copies for up to `budget` seconds.

        Without a budget, re-read only copies marked for re-reading. An unreadable copy stays outdated. A damaged copy
        is recorded as damaged.
        """
        marked, end = budget is None, time.monotonic() + (float("inf") if budget is None else budget)
        unread, again = set[str](), True
        while again:
            again, outdated = False, self._store.sources.outdated(scheduled_only=marked)
            waiting = [each for each in outdated if each.archived not in unread]
            for done, source in enumerate(waiting):
                if time.monotonic() > end:
                    report.outdated = len(waiting) - done
                    return
                progress(done, len(waiting))
                try:
                    reading, others = self._reread(source)
                except SourceUnreadable as problem:
                    report.problems.append(problem)
                    unread.add(source.archived)
                    if isinstance(problem, CopyDamaged):
                        self._record_damage(source, problem)
                    continue
                report.reread += 1
                again |= others
                if reading.later_sources:
                    break  # The order of these copies changed.

    def _reread(self, source: Source) -> tuple[SourceReader, bool]:
        """Re-read a copy. Return its reader, and whether other copies must be re-read as a result."""
        try:
            session, reading = self._read(source)
        except FileNotFoundError:
            raise CopyGone(self._raw.root / source.archived) from None
        except OSError as error:
            raise unreadable(self._raw.root / source.archived, error) from None
        with self._store.transaction():
            return reading, store_reading(self._store, source, session, reading)

    def _record_damage(self, source: Source, damage: CopyDamaged) -> None:
        assert source.id is not None
        with self._store.transaction():
            self._store.sources.record_verification(source.id, now(), damage.reason)

    def _read(self, source: Source) -> tuple[Session, SourceReader]:
        self._raw.verify(source)  # Damaged content must not replace intact content.
        session, known = self._session(source), by_agent(source.agent)
        source.resume, source.rules = ResumePoint(), VERSION
        with self._raw.open(source.archived) as file:
            reading = SourceReader(known, session, source, self._store, self._filters)
            reading.run(file)
        return session, reading

    def _session(self, source: Source) -> Session:
        """Return the stored session, redacted by the current rules.

        If the ID of a sub-agent was taken for that of another parent's sub-agent, return the source's own session.
        """
        assert source.session is not None
        session = self._redactor.session(self._store.sessions.load(source.session))
        with self._raw.open(source.archived) as file:
            own = self._redactor.session(by_agent(source.agent).identify(source.path, head(file)))
        if own.native_id == session.native_id and own.scope and own.scope != session.scope:
            return stored_session(self._store, own)
        session.cwd = session.cwd or own.cwd  # A later version of the format may find the working folder.
        if session.title_rank == 0 and self._store.sources.is_first(source):
            session.title_rank = -1  # The title was taken from the first prompt, and is set again.
        return with_parent_mark(self._store, session)
