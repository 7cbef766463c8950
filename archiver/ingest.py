"""One pass over transcripts: copy, parse, store. What did not change costs one `stat`."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..core.conversation import Note
from ..core.errors import SourceUnreadable
from ..core.report import Pass
from .lines import HEAD_BYTES
from .raw import Copied, RawArchive, Stat
from .reading import Reading, entitle
from .store import Source, Store
from .transcripts import Transcript

_COPYING_THREADS = 4

Progress = Callable[[int, int], None]
"""Called with how many of how many are done."""


def silent(_done: int, _total: int) -> None:
    """The progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A transcript to take up: under which name, and which source it continues or replaces."""

    transcript: Transcript
    archived: str
    continued: Source | None = None
    replaced: Source | None = None


class Ingest:
    """Brings transcripts into the store. Interrupt it at any time: each file is taken up whole or not at all."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def run(self, transcripts: Iterable[Transcript], progress: Progress = silent) -> Pass:
        """Take up everything new in these transcripts; files that cannot be read are reported, the others go on."""
        tally = Pass()
        jobs = self._jobs(transcripts, tally)
        with ThreadPoolExecutor(_COPYING_THREADS) as pool:
            copies = [pool.submit(self._raw.copy, job.transcript.path, job.archived) for job in jobs]
            try:
                for done, (job, copy) in enumerate(zip(jobs, copies, strict=True)):
                    progress(done, len(jobs))
                    self._take_up(job, copy, tally)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        progress(len(jobs), len(jobs))
        self._forget_gone()
        return tally

    def _jobs(self, transcripts: Iterable[Transcript], tally: Pass) -> list[_Job]:
        """What is new or not what it was, oldest first, so that originals come before their forks."""
        known = self._store.sources.by_path()
        taken = self._store.sources.archived_names()
        changed: list[tuple[int, Transcript]] = []
        for transcript in {each.path: each for each in transcripts}.values():
            tally.seen += 1
            try:
                stat = Stat.of(transcript.path)
            except OSError as error:
                self._report(SourceUnreadable(transcript.path, error.strerror or str(error)), tally)
                continue
            source = known.get(transcript.path)
            if source is None or not self._raw.is_unchanged(source, stat):
                changed.append((stat.mtime, transcript))
        changed.sort(key=lambda pair: (pair[0], pair[1].path))
        return [self._job(transcript, known.get(transcript.path), taken) for _, transcript in changed]

    def _job(self, transcript: Transcript, known: Source | None, taken: set[str]) -> _Job:
        if known is not None and self._raw.is_continued(known):
            return _Job(transcript, known.archived, continued=known)
        archived = self._raw.free_name(transcript.archived, taken, transcript.path)
        taken.add(archived)
        return _Job(transcript, archived, replaced=known)

    def _take_up(self, job: _Job, copying: Future[Copied], tally: Pass) -> None:
        try:
            copied = copying.result()
        except SourceUnreadable as problem:
            self._report(problem, tally)
            return
        self._raw.sync_folders(job.archived)
        source = _source(job, copied)
        with self._store.transaction():
            if job.replaced is not None:
                self._store.sources.supersede(job.replaced)
            reading = self._read(job, source)
            self._store.sources.report(source.path, None)
        tally.changed += 1
        tally.lines += reading.lines
        tally.exchanges += len(reading.exchanges)

    def _read(self, job: _Job, source: Source) -> Reading:
        sources, sessions = self._store.sources, self._store.sessions
        with self._raw.open(source.archived) as file:
            session = job.transcript.format.identify(source.path, file.read(HEAD_BYTES))
            number = sessions.find(session.agent, session.native_id)
            if number is not None:
                session = sessions.load(number)
            number = source.session = sessions.save(session)
            number_of_source = sources.save(source)
            reading = Reading(job.transcript.format, session, source, sources.places)
            reading.run(file)
        sessions.save(session)
        sources.save(source)
        sources.own(number_of_source, reading.records)
        sources.note_copies(number_of_source, self._sessions_of(reading.copied) - {number})
        self._store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges)
        self._entitle(reading.titles)
        return reading

    def _sessions_of(self, sources: Iterable[int]) -> set[int]:
        found = (self._store.sources.session_of(source) for source in sources)
        return {number for number in found if number is not None}

    def _entitle(self, titles: Sequence[Note]) -> None:
        """Give titles to the sessions that hold the records they name; those of unknown records tell nothing."""
        places = self._store.sources.places({title.about for title in titles})
        for title in titles:
            number = self._store.sources.session_of(places[title.about][0]) if title.about in places else None
            if number is not None:
                session = self._store.sessions.load(number)
                entitle(session, title)
                self._store.sessions.save(session)

    def _report(self, problem: SourceUnreadable, tally: Pass) -> None:
        tally.problems.append(problem)
        with self._store.transaction():
            self._store.sources.report(problem.path, problem.reason)

    def _forget_gone(self) -> None:
        """A file that is no longer there was told of in its pass and is nobody's problem any more."""
        gone = [path for path, _ in self._store.sources.problems() if _is_gone(path)]
        if gone:
            with self._store.transaction():
                for path in gone:
                    self._store.sources.report(path, None)


def _is_gone(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _source(job: _Job, copied: Copied) -> Source:
    """The source as it is after copying."""
    before, stat = job.continued, copied.stat
    source = Source(
        agent=job.transcript.format.agent,
        path=job.transcript.path,
        archived=job.archived,
        device=stat.device,
        inode=stat.inode,
        mtime=stat.mtime,
        size=stat.size,
        head=copied.head,
        tail=copied.tail,
    )
    if before is not None:
        source.id, source.session, source.resume = before.id, before.session, before.resume
    return source
