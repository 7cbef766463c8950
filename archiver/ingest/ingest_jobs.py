"""Choice of the transcripts that an ingest run copies and parses, parallel parsing, and storage of the results.

Many new files are parsed in this process and in the processes of a pool. One parsed source is stored in the caller's
transaction.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar

from msgspec import MsgspecError, Struct, msgpack

from ...core.conversation import UNINDEXED, Note, ResumePoint, Session, Turn
from ...core.errors import CopyDamaged, PalaverError, SourceUnreadable
from ...core.reports import IngestReport, OmittedFile
from .. import lines
from ..copies.raw_copy import Copied, RawArchive, Stat, unreadable
from ..deletion.suppression import SuppressionList
from ..formats import TranscriptFormat
from ..formats.registry import by_agent
from ..lines import DOCUMENT, head, opened
from ..reading.parsing import Exclusion, ParsedLines, folder_in, parse
from ..reading.source_reader import SourceReader, apply_title
from ..redaction import Redactor
from ..redaction.redactor import TranscriptRedactor
from ..store import Source, Store
from .parser_pool import ParserPool
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


def stored_session(store: Store, session: Session) -> Session:
    """Return the stored version of a session, or the given session if it is new.

    If the stored version has no working folder, it gets the folder of the given session. If the parent session is
    marked as excluded from the index, the returned session gets the same mark.
    """
    number = store.sessions.find(session.agent, session.native_id, session.scope)
    if number is not None:
        known = store.sessions.load(number)
        known.cwd = known.cwd or session.cwd
        session = known
    return with_parent_mark(store, session)


def with_parent_mark(store: Store, session: Session) -> Session:
    """Mark a session as excluded from the index if its parent session is excluded. Return the session."""
    if store.sessions.is_unindexed(session.agent, session.parent_id):
        session.links[UNINDEXED] = "yes"
    return session


def store_reading(store: Store, source: Source, session: Session, reading: SourceReader) -> bool:
    """Save a source, its session and its exchanges. Unchanged exchanges keep their keys, even in another source.

    Return whether other sources must be re-read because the owner of some lines changed.
    """
    number, before = store.sessions.save(session), source.session
    source.session = number
    number_of_source = store.sources.save(source)
    if reading.tombstones:
        store.tombstones.extend(reading.tombstones)
    if reading.moved:
        store.sources.remove_records((each.first, each.line) for each in reading.moved)
    store.sources.add_records(number_of_source, reading.records)
    moved = store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges, reading.moved)
    if not reading.first or all(each.ended != session.ended for each in reading.exchanges):
        # The first or the last exchange may have disappeared, for example because a prompt was withdrawn.
        store.sessions.update_dates(number)
    if before is not None and before != number:
        store.exchanges.set_session(number_of_source, before, number)
        store.sessions.update_dates(before)
    store.repetitions.record(number_of_source, reading.repetitions, replace=reading.is_whole)
    store.subagent_calls.record(number_of_source, reading.subagents, replace=reading.is_whole)
    changed = {*reading.later_sources, number_of_source} if moved else {*reading.later_sources}
    if changed:
        store.sources.outdate(reading.later_sources)
        store.repetitions.outdate(changed)
    store.sources.outdate(reading.less_detailed)
    _apply_titles(store, reading.titles)
    return bool(changed or reading.less_detailed)


def _apply_titles(store: Store, titles: Sequence[Note]) -> None:
    """Set the titles of sessions. A title belongs to the session that contains the record `Note.about`.

    Titles with an unknown record are ignored.
    """
    places = store.sources.locate({title.about for title in titles})
    for title in titles:
        number = store.sources.session_of(places[title.about][0]) if title.about in places else None
        if number is not None:
            session = store.sessions.load(number)
            apply_title(session, title)
            store.sessions.save(session)


ParsedFile: TypeAlias = tuple[Session, ParsedLines]
_T = TypeVar("_T")
_BATCH: Final = 64 << 20
"""Maximum total size in bytes of the files that are parsed before the first of them is stored."""
_DECODER: msgpack.Decoder[ParsedFile | None] = msgpack.Decoder(ParsedFile | None)


class ParseTask(Struct, frozen=True):
    """New file to parse: its format, its path, and its copy in the archive at `root`."""

    format: TranscriptFormat
    path: Path
    root: Path
    archived: str
    key: bytes
    """Key for the placeholders of secrets."""

    def run(self) -> ParsedFile | None:
        """Return the file's session and lines, or None if the copy cannot be read.

        The caller then reads the copy itself and reports the problem.
        """
        redactor = Redactor(self.key)
        try:
            with opened(self.root / self.archived) as file:
                session = TranscriptRedactor(redactor).session(self.format.identify(self.path, head(file)))
                return session, parse(self.format, session, ResumePoint(), file, redactor)
        except (OSError, PalaverError):
            return None


class ParallelParser:
    """Parser that sends copied files to a pool of processes. While it waits, it parses other files in this process."""

    def __init__(self, pool: ParserPool, tasks: Mapping[str, tuple[ParseTask, Future[Copied]]]) -> None:
        """Start each task as soon as its raw copy is written.

        `tasks` is ordered: the caller must call `take` in the same order.
        """
        self._pool = pool
        self._tasks = {name: task for name, (task, _) in tasks.items()}
        self._lock = threading.RLock()
        self._uncopied, self._ready = set(tasks), deque[str]()
        self._active = 0
        self._submitted = dict[str, Future[bytes]]()
        self._parsed = dict[str, ParsedFile | None]()
        for name, (_, copy) in tasks.items():
            copy.add_done_callback(partial(self._add, name))

    def take(self, name: str) -> ParsedFile | None:
        """Return the parsed content of a file, or None if parsing was not started or failed."""
        with self._lock:
            self._uncopied.discard(name)
            if name in self._ready:
                self._ready.remove(name)
            future = self._submitted.pop(name, None)
        if future is None:
            return self._parsed.pop(name, None)
        while not future.done() and (other := self._next()) is not None:
            self._parsed[other] = self._tasks[other].run()
        try:
            return _DECODER.decode(future.result())
        except (OSError, RuntimeError, MemoryError, MsgspecError):  # A RuntimeError means that the process died.
            return None

    def _add(self, name: str, copy: Future[Copied]) -> None:
        with self._lock:
            if name in self._uncopied and not copy.cancelled() and copy.exception() is None:
                self._uncopied.remove(name)
                self._ready.append(name)
                self._submit()

    def _submit(self) -> None:
        """Submit tasks until the pool has one more task than processes. `take` parses other tasks in this process."""
        with self._lock:
            while self._active <= self._pool.size and (name := self._next()) is not None:
                self._active += 1
                self._submitted[name] = future = self._pool.submit(_run, self._tasks[name])
                future.add_done_callback(self._done)

    def _done(self, future: Future[bytes]) -> None:
        with self._lock:
            if not future.cancelled() and future.exception() is None:  # Otherwise the pool is broken.
                self._active -= 1
                self._submit()

    def _next(self) -> str | None:
        with self._lock:
            return self._ready.popleft() if self._ready else None


def batches(items: Sequence[_T], size: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Split items into lists with a total size of at most 64 MiB. A list has at least one item."""
    batch: list[_T] = []
    total = 0
    for item in items:
        if batch and total + size(item) > _BATCH:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def _run(task: ParseTask) -> bytes:
    return msgpack.encode(task.run())
