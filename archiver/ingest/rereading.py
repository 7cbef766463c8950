"""Rereading: copies read again by newer rules for secrets, because a session is to be in the copies alone, or because
another session turned out to have said it first.

Exchanges that say the same as before keep their keys and all that was learned from them.
"""

import time
from typing import Final

from ...core.clock import now
from ...core.conversation import UNINDEXED, ResumePoint, Session
from ...core.errors import CopyDamaged, CopyGone, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Pass
from ..copies.raw import RawArchive, unreadable
from ..formats.registry import by_agent
from ..reading.source_reader import Boundaries, Reading
from ..redaction import VERSION
from ..redaction.transcript_redactor import Discretion
from ..store import Source, Store
from .storing import StoredRecords, store_reading

BUDGET: Final = 20.0
"""Seconds that one pass spends on it; what is left waits for the next."""


class Rereading:
    """Runs under the archiver's lease. Interrupt it at any time: each copy is read again whole or not at all."""

    def __init__(self, store: Store, raw: RawArchive, boundaries: Boundaries) -> None:
        self._store, self._raw, self._boundaries = store, raw, boundaries
        self._discretion = Discretion(boundaries.redactor)

    def run(self, tally: Pass, progress: Progress = silent, budget: float | None = BUDGET) -> None:
        """Read outdated copies again for `budget` seconds; without a budget all that are marked for it, and no others.

        A copy that cannot be read stays outdated, and counts as damaged where it is.
        """
        marked, end = budget is None, time.monotonic() + (float("inf") if budget is None else budget)
        unread, again = set[str](), True
        while again:
            again, outdated = False, self._store.sources.outdated(marked=marked)
            waiting = [each for each in outdated if each.archived not in unread]
            for done, source in enumerate(waiting):
                if time.monotonic() > end:
                    tally.outdated = len(waiting) - done
                    return
                progress(done, len(waiting))
                try:
                    reading, others = self._reread(source)
                except SourceUnreadable as problem:
                    tally.problems.append(problem)
                    unread.add(source.archived)
                    if isinstance(problem, CopyDamaged):
                        self._note(source, problem)
                    continue
                tally.reread += 1
                again |= others
                if reading.preceded:
                    break  # of the others some come before the next

    def _reread(self, source: Source) -> tuple[Reading, bool]:
        """What was read, and whether others are to be read again for it."""
        try:
            session, reading = self._read(source)
        except FileNotFoundError:
            raise CopyGone(self._raw.root / source.archived) from None
        except OSError as error:
            raise unreadable(self._raw.root / source.archived, error) from None
        with self._store.transaction():
            return reading, store_reading(self._store, source, session, reading)

    def _note(self, source: Source, damage: CopyDamaged) -> None:
        assert source.id is not None
        with self._store.transaction():
            self._store.sources.inspected(source.id, now(), damage.reason)

    def _read(self, source: Source) -> tuple[Session, Reading]:
        self._raw.verify(source)  # a damaged copy never replaces what was read of a whole one
        session = self._session(source)
        source.resume, source.rules = ResumePoint(), VERSION
        with self._raw.open(source.archived) as file:
            reading = Reading(by_agent(source.agent), session, source, StoredRecords(self._store), self._boundaries)
            reading.run(file)
        return session, reading

    def _session(self, source: Source) -> Session:
        """The session as it was told, without what newer rules forbid."""
        assert source.session is not None
        session = self._discretion.session(self._store.sessions.load(source.session))
        if session.title_rank == 0 and self._store.sources.is_first(source):
            session.title_rank = -1  # made from the first prompt, and cut; it is made again
        if self._store.sessions.is_unindexed(session.agent, session.parent_id):
            session.links[UNINDEXED] = "yes"
        return session
