"""Choice of the transcripts that an ingest run has to copy and parse."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from ...core.conversation import ResumePoint, Session, Turn
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.report import IngestReport, OmittedFile
from ..copies.raw import Copied, RawArchive, Stat, unreadable
from ..deletion.suppression import SuppressionList
from ..files import lines
from ..files.compression import DOCUMENT, opened
from ..formats import TranscriptFormat
from ..formats.registry import by_agent
from ..reading.exclusion import Exclusion
from ..reading.parsing import folder_in
from ..redaction import Redactor
from ..store import Source, Store
from .transcripts import Transcript


class IngestJob(Struct, frozen=True):
    """Transcript to ingest: its format, the name of its raw copy, and the source that it continues or replaces."""

    path: Path
    format: TranscriptFormat
    archived: str
    size: int
    continued: Source | None = None
    replaced: Source | None = None
    rewritten: bool = False
    """True if lines that were read before may have other line numbers now, so that the whole file is read again."""

    def source(self, copied: Copied) -> Source:
        """Return the state of the source after copying."""
        before, source = self.continued, copied.source(self.format.agent, self.path, self.archived)
        if before is not None:
            source.id, source.session = before.id, before.session
            source.resume = ResumePoint() if self.rewritten or before.rules != source.rules else before.resume
        return source


class JobPlanner:
    """Planner of one ingest run. It compares transcripts with their stored state to find new and changed ones."""

    def __init__(
        self, store: Store, raw: RawArchive, redactor: Redactor, exclusion: Exclusion, deleted: SuppressionList
    ) -> None:
        self._store, self._raw, self._redactor, self._exclusion = store, raw, redactor, exclusion
        self._deleted = deleted
        self.names = store.sources.archived_names()
        """Names of existing raw copies and of copies to be created."""

    def jobs(self, transcripts: Iterable[Transcript], report: IngestReport) -> list[IngestJob]:
        """Return a job for each new or changed transcript, oldest first, so that originals precede their forks.

        Omitted transcripts are counted in `report`. An unchanged transcript costs one `stat` call.
        """
        known = self._store.sources.by_path()
        changed: list[tuple[Stat, Transcript]] = []
        for transcript in transcripts:
            report.seen += 1
            try:
                stat = Stat.of(transcript.path)
            except OSError as error:
                report.problems.append(SourceUnreadable(transcript.path, error.strerror or str(error)))
                continue
            if self._is_changed(transcript.path, stat, known.get(transcript.path)):
                changed.append((stat, transcript))
        changed.sort(key=lambda pair: (pair[0].mtime, pair[1].path))
        found = [self._job(each, stat.size, known.get(each.path), report) for stat, each in changed]
        return [job for job in found if job is not None]

    def _is_changed(self, path: Path, stat: Stat, known: Source | None) -> bool:
        if known is not None:
            return not self._raw.is_unchanged(known, stat)
        erased = self._deleted and self._store.tombstones.is_erased_file(
            self._deleted.file(path), stat.mtime, stat.size
        )
        return not erased

    def _job(self, transcript: Transcript, size: int, known: Source | None, report: IngestReport) -> IngestJob | None:
        path = transcript.path
        continued = known if known is not None and self._raw.is_continued(known) else None
        try:
            found = by_agent(continued.agent) if continued else transcript.recognise()
            excluded = found is not None and self._is_excluded(transcript, found)
        except OSError as error:
            report.problems.append(unreadable(path, error))
            return None
        if found is None or excluded:
            report.excluded += excluded
            report.foreign += not excluded
            reason = "excluded by config.toml" if excluded else "not a transcript of a supported agent"
            report.omitted.append(OmittedFile(path, reason))
            return None
        if continued is not None:
            return IngestJob(path, found, continued.archived, size, continued=continued)
        if known is not None and self._keeps_everything(known, found, path):
            return IngestJob(path, found, known.archived, size, continued=known, rewritten=True)
        wanted = self._redactor.redact_name(transcript.archived(found))
        archived = self._raw.free_name(wanted, self.names, path)
        self.names.add(archived)
        return IngestJob(path, found, archived, size, replaced=known)

    def _is_excluded(self, transcript: Transcript, transcript_format: TranscriptFormat) -> bool:
        """Return whether the settings exclude the transcript's folder or the working folder in its first lines."""
        if not self._exclusion:
            return False
        if self._exclusion.covers(str(transcript.found.parent)):
            return True
        with opened(transcript.path) as file:
            return self._exclusion.covers(folder_in(transcript_format, transcript.path, lines.head(file)))

    def _keeps_everything(self, source: Source, transcript_format: TranscriptFormat, path: Path) -> bool:
        """Return whether a rewritten document still contains all content of its copy."""
        if path.suffix != DOCUMENT or source.agent != transcript_format.agent:
            return False
        try:
            with self._raw.open(source.archived) as before, opened(path) as after:
                return loses_nothing(transcript_format, Session(source.agent, ""), before, after)
        except (OSError, CopyDamaged):
            return False


def loses_nothing(transcript_format: TranscriptFormat, session: Session, before: BinaryIO, after: BinaryIO) -> bool:
    """Return whether `after` contains every turn of `before` in the same order.

    A turn in `after` may be longer than in `before`, as long as it begins with the earlier text.
    """
    later = _turns(transcript_format, session, after)
    return all(any(_continues(new, old) for new in later) for old in _turns(transcript_format, session, before))


def _turns(known: TranscriptFormat, session: Session, file: BinaryIO) -> Iterator[Turn]:
    events = known.reader(session, shorten=False).read(lines.split(file))
    return (event for event in events if isinstance(event, Turn))


def _continues(new: Turn, old: Turn) -> bool:
    return (new.speaker, new.kind) == (old.speaker, old.kind) and new.text.startswith(old.text)
