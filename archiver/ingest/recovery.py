"""Recovery of raw copies that have no row in the database, for example after the database was lost.

Run an ordinary ingest first. For files that agents still have, it finds the copies and records the original paths. The
original path of any other copy is unknown, so recovery stores the path of the copy instead.
"""

from ...core.conversation import Session
from ...core.errors import SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import IngestReport
from ..copies.copy_verification import copies_without_row
from ..copies.raw import RawArchive, unreadable
from ..files import lines
from ..formats import TranscriptFormat
from ..formats.registry import by_agent
from ..reading.source_reader import IngestFilters, SourceReader
from ..redaction.transcript_redactor import TranscriptRedactor
from ..store import Source, Store
from .storing import store_reading, stored_session


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
        path, known = self._raw.root / archived, self._format(archived)
        source = self._raw.describe(archived).source(known.agent, path, archived)
        with self._raw.open(archived) as file:
            session = self._session(source, known, lines.head(file))
            reading = SourceReader(known, session, source, self._store, self._filters)
            reading.run(file)
        with self._store.transaction():
            store_reading(self._store, source, session, reading)
        report.changed += 1
        report.lines += reading.lines
        report.repeated += len(reading.repetitions)
        report.exchanges += len(reading.exchanges)

    def _format(self, archived: str) -> TranscriptFormat:
        agent = archived.partition("/")[0]
        try:
            return by_agent(agent)
        except ValueError:
            hint = "It was not changed. If it is your file, move it to another folder."
            raise SourceUnreadable(
                self._raw.root / archived, "its folder is not named after a known agent", hint=hint
            ) from None

    def _session(self, source: Source, known: TranscriptFormat, head: bytes) -> Session:
        session = TranscriptRedactor(self._filters.redactor).session(known.identify(source.path, head))
        return stored_session(self._store, session)

    def _modified(self, archived: str) -> int:
        """Return the modification time of a copy in ns, or 0 if it cannot be read."""
        try:
            return self._raw.describe(archived).stat.mtime
        except (OSError, SourceUnreadable):
            return 0
