"""Recovery: copies that no row tells of, as after a lost database, are sources again.

What their agents still have is taken up by an ordinary pass, which should come first: it knows where files lie. Of the
others the copy itself is all that is left, and stands in the place of the agent's file.
"""

from ...core.conversation import UNINDEXED, Session
from ...core.errors import SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Pass
from ..formats import TranscriptFormat
from ..formats.registry import FORMATS
from ..intake.storing import Stored, store_reading
from ..parse import lines
from ..parse.reading import Boundaries, Reading
from ..privacy.discretion import Discretion
from ..store import Source, Store
from .inspection import Inspection
from .raw import RawArchive, unreadable


class Recovery:
    """Runs under the archiver's lease. Interrupt it at any time: each copy is taken up whole or not at all."""

    def __init__(self, store: Store, raw: RawArchive, boundaries: Boundaries) -> None:
        self._store, self._raw, self._boundaries = store, raw, boundaries

    def run(self, progress: Progress = silent) -> Pass:
        """Take up every copy without a row, oldest first, so that originals come before their forks."""
        tally = Pass()
        waiting = sorted(Inspection(self._store, self._raw).strays(), key=lambda name: (self._age(name), name))
        for done, archived in enumerate(waiting):
            progress(done, len(waiting))
            tally.seen += 1
            try:
                self._take_up(archived, tally)
            except SourceUnreadable as problem:
                tally.problems.append(problem)
            except OSError as error:
                tally.problems.append(unreadable(self._raw.root / archived, error))
        progress(len(waiting), len(waiting))
        return tally

    def _take_up(self, archived: str, tally: Pass) -> None:
        known = self._format(archived)
        source = self._source(archived, known)
        with self._raw.open(archived) as file:
            session = self._session(source, known, lines.head(file))
            reading = Reading(known, session, source, Stored(self._store), self._boundaries)
            reading.run(file)
        with self._store.transaction():
            store_reading(self._store, source, session, reading)
        tally.changed += 1
        tally.lines += reading.lines
        tally.exchanges += len(reading.exchanges)

    def _format(self, archived: str) -> TranscriptFormat:
        agent = archived.partition("/")[0]
        known = next((each for each in FORMATS if each.agent == agent), None)
        if known is None:
            path = self._raw.root / archived
            raise SourceUnreadable(
                path, "of no known agent", hint="It was left alone; move it elsewhere if it is yours."
            )
        return known

    def _source(self, archived: str, known: TranscriptFormat) -> Source:
        return self._raw.known(archived).source(known.agent, self._raw.root / archived, archived)

    def _session(self, source: Source, known: TranscriptFormat, head: bytes) -> Session:
        told = Discretion(self._boundaries.redactor).session(known.identify(source.path, head))
        number = self._store.sessions.find(told.agent, told.native_id)
        session = told if number is None else self._store.sessions.load(number)
        if self._store.sessions.is_unindexed(session.agent, session.parent_id):
            session.links[UNINDEXED] = "yes"
        return session

    def _age(self, archived: str) -> int:
        try:
            return self._raw.known(archived).stat.mtime
        except (OSError, SourceUnreadable):
            return 0
