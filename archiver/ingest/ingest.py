"""One pass over transcripts: copy, parse, store. What did not change costs one `stat`."""

import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from ...core.conversation import UNINDEXED, ResumePoint, Session
from ...core.errors import CopyDamaged, SourceUnreadable, ValueRefused
from ...core.home import Home
from ...core.progress import Progress, silent
from ...core.report import Pass
from ..copies.forms import Copy
from ..copies.raw import Copied, RawArchive, Stat, unreadable
from ..copies.renewal import before_rewrite, renew
from ..deletion.copy_eraser import CopyEraser
from ..deletion.suppression import SuppressionList
from ..files import lines
from ..files.compression import DOCUMENT, opened
from ..formats import TranscriptFormat
from ..formats.folders import is_gone, is_open
from ..formats.registry import by_agent
from ..reading.exclusion import Exclusion
from ..reading.parsing import place_in
from ..reading.source_reader import Boundaries, Reading
from ..redaction import Redactor
from ..redaction.transcript_redactor import Discretion
from ..store import Source, Store
from .ahead import Ahead, portions
from .container_extraction import Unrolled, Unroller
from .processes import Helpers
from .rereading import BUDGET, Rereading
from .rewrites import loses_nothing
from .storing import Stored, store_reading
from .task import Answer, Task
from .transcripts import Transcript

_COPYING_THREADS = 4
_TOGETHER = 16
"""Readings stored in one transaction: each transaction waits for the disk."""
_AT_THE_END = 4
"""As many of the last ones: what waits for the last one to be parsed is stored by this process alone."""
_LONGEST = 0.3
"""Seconds after which what was read is stored, however little: who is killed every few seconds gets on all the same."""
_WORTH_HELP = 8 << 20
"""From how many bytes on other processes help: less is parsed before they have started."""


class _Job(Struct, frozen=True):
    """A transcript to take up: in which format, under which name, and which source it continues or replaces."""

    path: Path
    format: TranscriptFormat
    archived: str
    size: int
    continued: Source | None = None
    replaced: Source | None = None
    renewed: bool = False
    """Whether what was read before may stand elsewhere now."""


_Copying = tuple[_Job, Future[Copied]]


class _Taken(Struct, frozen=True):
    """A transcript that was read and waits to be stored."""

    job: _Job
    source: Source
    session: Session
    reading: Reading


class Ingest:
    """Brings transcripts into the store. Interrupt it at any time: each file is taken up whole or not at all."""

    def __init__(
        self,
        store: Store,
        raw: RawArchive,
        exclusion: Exclusion | None = None,
        *,
        helpers: Helpers | None = None,
    ) -> None:
        """`helpers` may have been started already."""
        self._store, self._raw = store, raw
        home = Home(raw.root.parent)
        self._key = home.key()
        suppression = SuppressionList(store, self._key)
        self._boundaries = Boundaries(home.root, Redactor(self._key), exclusion or Exclusion(), suppression)
        self._suppression, self._erasing = suppression, CopyEraser(store, raw)
        self._helpers = helpers or Helpers()
        self._may_hold_erased = False
        self._waiting: list[_Taken] = []
        self._names = set[str]()  # of all copies, those that are not stored yet included: each is given once
        self._stored = 0.0
        """When something was stored last, on the monotonic clock."""

    def run(
        self,
        transcripts: Iterable[Transcript],
        progress: Progress = silent,
        *,
        budget: float | None = BUDGET,
        stored: Callable[[], None] = lambda: None,
    ) -> Pass:
        """Take up everything new in these transcripts; files that cannot be read are reported, the others go on.

        What is known already is not looked into again to tell whose it is. Outdated copies are read again for
        `budget` seconds (`Rereading.run`). `stored` is called from time to time, when the store has more than before.
        """
        tally = Pass(still_archived=self._excluded_sessions())
        tally.problems += self._erasing.finish()
        self._may_hold_erased = bool(self._erasing.known)
        found = list(transcripts)
        jobs = self._jobs((each for each in found if each.held_by is None), tally)
        self._erasing.expect(job.archived for job in jobs)
        self._waiting = []
        with ThreadPoolExecutor(_COPYING_THREADS) as pool:
            copying = [(job, pool.submit(self._copy, job)) for job in jobs]
            try:
                with closing(self._parsed_ahead(copying)) as parsed:
                    for done, (job, copy, answer) in enumerate(parsed):
                        progress(done, len(jobs))
                        self._take_up(job, copy.result, answer, tally)
                        if len(self._waiting) >= max(_AT_THE_END, len(jobs) - done):
                            self._store_waiting(tally)
                        if not self._waiting:
                            stored()
                self._take_up_containers({each.path: each for each in found}.values(), len(jobs), progress, tally)
            finally:
                self._helpers.close()
                pool.shutdown(wait=True, cancel_futures=True)
                self._store_waiting(tally)
        progress(len(jobs), len(jobs))
        Rereading(self._store, self._raw, self._boundaries).run(tally, progress, budget)
        self._forget_gone({problem.path for problem in tally.problems})
        return tally

    def _excluded_sessions(self) -> int:
        """How many sessions were archived before the settings excluded them."""
        exclusion = self._boundaries.exclusion
        return sum(map(exclusion.covers, self._store.sessions.places())) if exclusion else 0

    def _parsed_ahead(self, copying: Sequence[_Copying]) -> Generator[tuple[_Job, Future[Copied], Answer | None]]:
        """Each transcript in order, with what another process found in it, if one did."""
        for portion in portions(copying, lambda each: each[0].size):
            worth = sum(job.size for job, _ in portion) >= _WORTH_HELP
            tasks = {
                job.archived: (Task(job.format, job.path, self._raw.root, job.archived, self._key), copy)
                for job, copy in portion
                if worth and job.continued is None
            }
            helpers = self._helpers.start(len(tasks) - 1) if tasks else ()
            with Ahead(tasks, helpers) as ahead:
                for job, copy in portion:
                    yield job, copy, ahead.take(job.archived)

    def _jobs(self, transcripts: Iterable[Transcript], tally: Pass) -> list[_Job]:
        """What is new or not what it was, oldest first, so that originals come before their forks."""
        known = self._store.sources.by_path()
        self._names = self._store.sources.archived_names()
        changed: list[tuple[Stat, Transcript]] = []
        for transcript in {each.path: each for each in transcripts}.values():
            tally.seen += 1
            try:
                stat = Stat.of(transcript.path)
            except OSError as error:
                self._report(SourceUnreadable(transcript.path, error.strerror or str(error)), tally)
                continue
            source = known.get(transcript.path)
            if source is None and self._store.tombstones.is_emptied(
                self._suppression.file(transcript.path), stat.mtime, stat.size
            ):
                continue
            if source is None or not self._raw.is_unchanged(source, stat):
                changed.append((stat, transcript))
        changed.sort(key=lambda pair: (pair[0].mtime, pair[1].path))
        found = [self._job(each, stat.size, known.get(each.path), tally) for stat, each in changed]
        jobs = list(filter(None, found))
        before_rewrite(self._store, (job.continued for job in jobs if job.renewed))
        return jobs

    def _job(self, transcript: Transcript, size: int, known: Source | None, tally: Pass) -> _Job | None:
        path = transcript.path
        continued = known if known is not None and self._raw.is_continued(known) else None
        try:
            found = by_agent(continued.agent) if continued else transcript.recognise()
            excluded = found is not None and self._is_excluded(transcript, found)
        except OSError as error:
            self._report(unreadable(path, error), tally)
            return None
        if found is None or excluded:
            tally.excluded += excluded
            tally.foreign += not excluded
            return None
        if continued is not None:
            return _Job(path, found, continued.archived, size, continued=continued)
        if known is not None and self._says_all(known, found, path):
            return _Job(path, found, known.archived, size, continued=known, renewed=True)
        wanted = self._boundaries.redactor.redact_name(transcript.archived(found))
        archived = self._raw.free_name(wanted, self._names, path)
        self._names.add(archived)
        return _Job(path, found, archived, size, replaced=known)

    def _is_excluded(self, transcript: Transcript, found: TranscriptFormat) -> bool:
        """Whether the settings keep the transcript out, by its own folder or by the one that its first lines name."""
        exclusion = self._boundaries.exclusion
        if not exclusion:
            return False
        if exclusion.covers(str(transcript.found.parent)):
            return True
        with opened(transcript.path) as file:
            return exclusion.covers(place_in(found, transcript.path, lines.head(file)))

    def _says_all(self, known: Source, found: TranscriptFormat, path: Path) -> bool:
        """Whether a document that its agent wrote anew still says all that its copy says."""
        if path.suffix != DOCUMENT or known.agent != found.agent:
            return False
        try:
            with self._raw.open(known.archived) as before, opened(path) as after:
                return loses_nothing(found, Session(known.agent, ""), before, after)
        except (OSError, CopyDamaged):
            return False

    def _copy(self, job: _Job) -> Copied:
        if job.renewed:
            try:
                renew(Copy(self._raw.root, job.archived), job.path)
            except OSError as error:
                raise unreadable(job.path, error) from None
        copied = self._raw.copy(job.path, job.archived, None if job.renewed else job.continued)
        if not self._may_hold_erased:
            return copied
        return self._erasing.cleaned(job.path, job.archived, job.format.agent, copied)

    def _take_up_containers(self, found: Iterable[Transcript], done: int, progress: Progress, tally: Pass) -> None:
        """Take up what containers hold, each conversation as a transcript of its own."""
        kept = dict[Path, int]()

        def complete(path: Path) -> None:
            self._complete(lambda each: each.source.path == path, tally)  # two exports may hold one conversation

        redactor = self._boundaries.redactor
        unroller = Unroller(self._store, self._raw.root, self._names, redactor, complete, self._erasing.known)
        for container, known in ((each, each.held_by) for each in found):
            if known is None:
                continue
            try:
                state = unroller.changed(container, known)
                for unrolled in unroller.run(container, known) if state is not None else (None,):
                    tally.seen += 1
                    progress(done, done + 1)
                    if unrolled is not None:
                        done += 1
                        self._take_up_unrolled(unrolled, tally)
            except SourceUnreadable as problem:
                self._report(problem, tally)
            else:
                kept |= {container.path: state} if state is not None else {}
        self._store_waiting(tally)
        with self._store.transaction():
            for path, state in kept.items():
                self._store.containers.keep(path, state)
                self._store.sources.report(path, None)

    def _take_up_unrolled(self, found: Unrolled, tally: Pass) -> None:
        copied = found.copied
        job = _Job(found.path, found.format, found.archived, copied.stat.size, found.continued, None, not found.grown)
        self._take_up(job, lambda: copied, None, tally)

    def _take_up(self, job: _Job, copied: Callable[[], Copied], answer: Answer | None, tally: Pass) -> None:
        try:
            taken = self._read(job, _source(job, copied()), answer, tally)
            is_new = taken.source.id is None and job.replaced is None
            if taken.reading.says_nothing and is_new and self._erasing.leave(taken.source):
                return
        except SourceUnreadable as problem:
            self._report(problem, tally)
            return
        self._waiting.append(taken)
        if len(self._waiting) >= _TOGETHER or time.monotonic() - self._stored > _LONGEST:
            self._store_waiting(tally)

    def _read(self, job: _Job, source: Source, answer: Answer | None, tally: Pass) -> _Taken:
        """Read first and write later, so that nobody waits for the parser."""
        with self._raw.open(source.archived) as file:
            session, parsed = answer or (self._identify(job, file), None)
            session = self._session(session, tally)

            def complete(records: Collection[str]) -> None:
                self._complete(lambda each: not each.reading.records.keys().isdisjoint(records), tally)

            stored = Stored(self._store, complete)
            reading = Reading(job.format, session, source, stored, self._boundaries)
            reading.run(file, parsed)
        self._erasing.take_out(source, reading.forgotten)
        return _Taken(job, source, session, reading)

    def _identify(self, job: _Job, file: BinaryIO) -> Session:
        told = job.format.identify(job.path, lines.head(file))
        return Discretion(self._boundaries.redactor).session(told)

    def _session(self, told: Session, tally: Pass) -> Session:
        """The session as it is stored, which may need what waits to be stored first."""
        name = told.agent, told.native_id
        self._complete(lambda each: (each.session.agent, each.session.native_id) == name, tally)
        number = self._store.sessions.find(told.agent, told.native_id)
        session = told if number is None else self._store.sessions.load(number)
        if self._store.sessions.is_unindexed(session.agent, session.parent_id):
            session.links[UNINDEXED] = "yes"
        return session

    def _complete(self, concerns: Callable[[_Taken], bool], tally: Pass) -> None:
        """Store what waits where some of it is concerned."""
        if any(map(concerns, self._waiting)):
            self._store_waiting(tally)

    def _store_waiting(self, tally: Pass) -> None:
        waiting, self._waiting = self._waiting, []
        self._stored = time.monotonic()
        if not waiting:
            return
        with self._store.transaction():
            self._store.tombstones.accept(self._key)
            for taken in waiting:
                self._erasing.arrived(taken.job.archived)
                try:
                    with self._store.step():
                        self._store_one(taken)
                except ValueRefused as refusal:
                    self._refuse(SourceUnreadable(taken.job.path, str(refusal), hint=refusal.hint), tally)
                else:
                    tally.changed += 1
                    tally.lines += taken.reading.lines
                    tally.exchanges += len(taken.reading.exchanges)

    def _store_one(self, taken: _Taken) -> None:
        sources, source = self._store.sources, taken.source
        if taken.job.replaced is not None:
            sources.supersede(taken.job.replaced)
        store_reading(self._store, source, taken.session, taken.reading)
        sources.report(source.path, None)

    def _report(self, problem: SourceUnreadable, tally: Pass) -> None:
        with self._store.transaction():
            self._refuse(problem, tally)

    def _refuse(self, problem: SourceUnreadable, tally: Pass) -> None:
        tally.problems.append(problem)
        self._store.sources.report(problem.path, problem.reason)

    def _forget_gone(self, told: Collection[Path]) -> None:
        """What is no longer there, and a folder that is open again, is nobody's problem any more: of those that were
        `told` of in this pass a folder still is, as one that stands where a file was.
        """
        problems = [path for path, _ in self._store.sources.problems()]
        gone = [path for path in problems if is_gone(path) or (path not in told and is_open(path))]
        if gone:
            with self._store.transaction():
                for path in gone:
                    self._store.sources.report(path, None)


def _source(job: _Job, copied: Copied) -> Source:
    """The source as it is after copying."""
    before = job.continued
    source = copied.source(job.format.agent, job.path, job.archived)
    if before is not None:
        source.id, source.session = before.id, before.session
        source.resume = ResumePoint() if job.renewed or before.rules != source.rules else before.resume
    return source
