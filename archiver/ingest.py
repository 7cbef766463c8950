"""One pass over transcripts: copy, parse, store. What did not change costs one `stat`."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..core.conversation import Note, Session
from ..core.errors import SourceUnreadable, ValueRefused
from ..core.progress import Progress, silent
from ..core.report import Pass
from . import lines
from .formats import Format, by_agent
from .raw import Copied, RawArchive, Stat, unreadable
from .reading import Reading, entitle
from .store import Source, Store
from .transcripts import Transcript

_COPYING_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Job:
    """A transcript to take up: in which format, under which name, and which source it continues or replaces."""

    path: Path
    format: Format
    archived: str
    continued: Source | None = None
    replaced: Source | None = None


class Ingest:
    """Brings transcripts into the store. Interrupt it at any time: each file is taken up whole or not at all."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def run(self, transcripts: Iterable[Transcript], progress: Progress = silent) -> Pass:
        """Take up everything new in these transcripts; files that cannot be read are reported, the others go on.

        What is known already is not looked into again to tell whose it is.
        """
        tally = Pass()
        jobs = self._jobs(transcripts, tally)
        with ThreadPoolExecutor(_COPYING_THREADS) as pool:
            copies = [pool.submit(self._raw.copy, job.path, job.archived) for job in jobs]
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
        jobs = (self._job(transcript, known.get(transcript.path), taken, tally) for _, transcript in changed)
        return [job for job in jobs if job is not None]

    def _job(self, transcript: Transcript, known: Source | None, taken: set[str], tally: Pass) -> _Job | None:
        path = transcript.path
        if known is not None and self._raw.is_continued(known):
            return _Job(path, by_agent(known.agent), known.archived, continued=known)
        try:
            found = transcript.recognise()
        except OSError as error:
            self._report(unreadable(path, error), tally)
            return None
        if found is None:
            tally.foreign += 1
            return None
        archived = self._raw.free_name(transcript.archived(found), taken, path)
        taken.add(archived)
        return _Job(path, found, archived, replaced=known)

    def _take_up(self, job: _Job, copying: Future[Copied], tally: Pass) -> None:
        try:
            copied = copying.result()
            reading = self._read(job, _source(job, copied))
        except SourceUnreadable as problem:
            self._report(problem, tally)
            return
        except ValueRefused as refusal:
            self._report(SourceUnreadable(job.path, str(refusal), hint=refusal.hint), tally)
            return
        tally.changed += 1
        tally.lines += reading.lines
        tally.exchanges += len(reading.exchanges)

    def _read(self, job: _Job, source: Source) -> Reading:
        """Read first and then write, so that nobody waits for the parser."""
        sources, sessions = self._store.sources, self._store.sessions
        with self._raw.open(source.archived) as file:
            session = job.format.identify(source.path, lines.head(file))
            number = sessions.find(session.agent, session.native_id)
            if number is not None:
                session = sessions.load(number)
            reading = Reading(job.format, session, source, sources.places)
            reading.run(file)
        with self._store.transaction():
            if job.replaced is not None:
                sources.supersede(job.replaced)
            self._write(session, source, reading)
            sources.report(source.path, None)
        return reading

    def _write(self, session: Session, source: Source, reading: Reading) -> None:
        number = source.session = self._store.sessions.save(session)
        number_of_source = self._store.sources.save(source)
        self._store.sources.own(number_of_source, reading.records)
        self._store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges)
        self._entitle(reading.titles)

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
        agent=job.format.agent,
        path=job.path,
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
