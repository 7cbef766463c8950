"""Deletions: what was selected goes out of the store at once, and tombstones keep it from coming back.

What is only forgotten stays in the copies, where nobody is shown it, until it is undone or its time is over. What is
erased leaves the copies as well (`erasing.py`).
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from ...core.clock import now
from ...core.conversation import UNINDEXED, Milliseconds
from ...core.deletion import NO_SUMMARY, DeletionSummary
from ...core.errors import ChangedMeanwhile, CopyDamaged, InvalidInput, SourceUnreadable
from ...core.home import Home
from ...core.progress import Progress, silent
from ..copies.raw import RawArchive
from ..copies.raw_copy import Copy
from ..files.lines import split
from ..store import Deletion, Source, State, Store
from ..store.source_table import DELETED
from .copy_eraser import CopyEraser
from .deletion_plan import DeletionPlan, Planner
from .ownership import TELLING, Ownership
from .selection import Selection, Selector
from .suppression import SuppressionList

KEPT: Final = 30 * 24 * 3600 * 1000
"""Milliseconds for which what was forgotten can be had back."""


def _nothing() -> None:
    """What nobody has to do besides."""


class Deletions:
    """Forgets in one archive. Everything but planning runs under the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._key = Home(raw.root.parent).key()
        self._suppression, self._ownership = SuppressionList(store, self._key), Ownership(store, raw, self._key)
        self.erasing = CopyEraser(store, raw)

    def plan(self, selector: Selector, selected: Selection, progress: Progress = silent) -> DeletionPlan:
        """Everything that a selection means: the same lines in other copies, and what is known by them, too."""
        return Planner(self._store, self._raw, self._key).plan(selector, selected, progress)

    def token(self, plan: DeletionPlan, *rest: object) -> str:
        """What stands for this set and no other. `rest` is what else the set consists of."""
        selected, sources = plan.selected, plan.selector.sources
        told = (
            sorted(selected.exchanges.values()),
            sorted(selected.sessions),
            [(number, sources[number].size, sources[number].lines) for number in sorted(selected.sources)],
            sorted((number, *sorted(lines)) for number, lines in selected.lines.items()),
            rest,
        )
        return hashlib.blake2b(repr(told).encode("utf-8", "replace"), key=self._key, digest_size=6).hexdigest()

    def forget(self, plan: DeletionPlan, also: Callable[[int], None], besides: DeletionSummary = NO_SUMMARY) -> int:
        """Forget what was planned, together with what `also` does with the number of the forgetting, which is returned.

        `besides` counts what goes with it that was never said. Raises `ChangedMeanwhile`, and changes nothing, when
        some of it changed since it was planned.
        """
        selected, tombstones = plan.selected, self._store.tombstones
        with self._store.transaction():
            if selected.exchanges.keys() & set(self._store.changes.since(plan.seq)):
                raise ChangedMeanwhile
            state = State.ERASING if plan.erases else State.KEPT
            number = tombstones.begin(now(), state, plan.marks, _about(plan, besides))
            if not plan.erases:
                self._store.deleted_rows.keep(number, list(selected.exchanges))
            self._store.exchanges.delete(list(selected.exchanges))
            self._blank_sessions(plan)
            if plan.erases:
                self._erase(plan, number)
            tombstones.reread([source.id for source in plan.sources if source.id is not None])
            also(number)
            self._overtake()
        return number

    def _overtake(self) -> None:
        """What was forgotten before and is erased now cannot be undone, unless memories were put away with it."""
        for number in self._store.tombstones.overtaken():
            forgotten = self._store.tombstones.load(number)
            if forgotten is not None and not forgotten.about.memories:
                self._store.tombstones.become(number, State.ERASING)

    def expired(self, at: Milliseconds) -> list[Deletion]:
        """What was forgotten longer ago than it is kept."""
        return [each for each in self._store.tombstones.all() if each.state is State.KEPT and each.at < at - KEPT]

    def expire(self, number: int, also: Callable[[], None] = _nothing) -> None:
        """It cannot be had back any more: its lines are to go from the copies, together with what `also` does.

        Raises `InvalidInput` as `undo` does.
        """
        forgotten = self._kept(number)
        sources = self._store.sources.all()
        told = [source for source in sources if not TELLING.isdisjoint(source.coverage)]
        gone = [
            source for source in told if source.coverage.keys() == {DELETED} and not self._is_kept(source, forgotten)
        ]
        with self._store.transaction():
            self._store.tombstones.become(forgotten.id, State.ERASING)
            copies = {source.archived: source in gone for source in told}
            self._store.tombstones.intend(forgotten.id, copies)
            for source in told:
                self._erase_records(source, forgotten)
            self._drop(gone, sources)
            also()

    def drop_empty(self) -> list[SourceUnreadable]:
        """Remove files of which only erased lines are left: a database restored from a backup told of them again.

        Those that could not be removed are returned, and tried again by the next pass.
        """
        number = next((each.id for each in self._store.tombstones.all() if each.state is State.ERASING), None)
        sources = self._store.sources.all()
        gone = [each for each in sources if self._is_erased(each)]
        if number is not None and gone:
            with self._store.transaction():
                self._store.tombstones.intend(number, {source.archived: True for source in gone})
                self._drop(gone, sources)
            return self.erasing.finish()
        return []

    def _drop(self, gone: Sequence[Source], sources: Sequence[Source]) -> None:
        """Remove the rows of these sources, and of sessions that no other of all `sources` tells of."""
        whole = [source.id for source in gone if source.id is not None]
        left = {source.session for source in sources if source not in gone}
        sessions = {source.session for source in gone if source.session is not None} - left
        self._store.tombstones.erase_rows(sessions, whole, [])

    def _is_erased(self, source: Source) -> bool:
        if not Copy(self._raw.root, source.archived).exists():
            records = self._store.sources.records_of(source.id or 0)
            return bool(records) and self.erasing.known.records(records) == set(records.values())
        if source.coverage.keys() != {DELETED}:
            return False
        try:
            with self._raw.open(source.archived) as file:
                return len(self.erasing.known.lines(source.path, split(file))) == source.lines
        except (CopyDamaged, OSError):
            return False  # `finish` tells of it; all other copies are looked at

    def _is_kept(self, source: Source, forgotten: Deletion) -> bool:
        """Whether something of a source was forgotten at another time, and can still be had back."""
        others = [each for each in self._store.tombstones.all() if each.state is State.KEPT and each.id != forgotten.id]
        try:
            marks = {mark for _, mark in self._ownership.marked(source)}
            marks |= set(map(self._suppression.record, self._ownership.records(source)))
        except (CopyDamaged, OSError):
            return True  # what cannot be told is not deleted
        return any(self._store.tombstones.known(marks, of=each.id) for each in others)

    def _erase_records(self, source: Source, forgotten: Deletion) -> None:
        """Remove the ids of the records of a source that were forgotten at one time."""
        marks = {self._suppression.record(each): each for each in self._store.sources.records_of(source.id or 0)}
        known = self._store.tombstones.known(marks, of=forgotten.id)
        self._store.tombstones.erase_records([marks[mark] for mark in known])

    def undo(self, number: int, also: Callable[[], None] = _nothing) -> None:
        """Restore what was forgotten, with every ID and all that was extracted; `also` runs in the same transaction.

        Raises `InvalidInput` when it was
        erased, undone before, or never existed.
        """
        with self._store.transaction():
            self._kept(number)
            self._store.deleted_rows.restore(number)
            self._store.tombstones.undo(number)
            told = [each.id for each in self._store.sources.all() if each.coverage.get(DELETED) and each.id]
            self._store.tombstones.reread(told)
            also()

    def _kept(self, number: int) -> Deletion:
        found = self._store.tombstones.load(number)
        if found is None or found.state is not State.KEPT:
            said = "was erased, and nothing is left of it" if found else "was never made"
            if self._store.tombstones.was_undone(number):
                said = "was undone before"
            raise InvalidInput(f"Deletions {number} {said}", hint="`palaver forget --list` names what can be undone.")
        return found

    def _blank_sessions(self, plan: DeletionPlan) -> None:
        """What a session is called may come from what goes; it is told anew when its copies are read again."""
        self._store.summaries.drop(plan.sessions)
        for number in plan.sessions:
            session = self._store.sessions.load(number)
            links = {name: value for name, value in session.links.items() if name == UNINDEXED}
            self._store.sessions.save(
                replace(session, title="", title_rank=-1, branch="", cwd="", started=None, ended=None, links=links)
            )

    def _erase(self, plan: DeletionPlan, number: int) -> None:
        selected, sources = plan.selected, plan.selector.sources
        partly = {number for number, lines in selected.lines.items() if lines} | plan.shared.keys()
        copies = {sources[each].archived: False for each in partly} | {
            sources[each].archived: True for each in selected.sources
        }
        self._store.tombstones.intend(number, copies)
        for each, lines in selected.lines.items():
            records = self._store.sources.records_of(each)
            self._store.tombstones.erase_records([record for record, line in records.items() if line in lines])
        for each in {*selected.sources, *selected.lines, *plan.shared}:
            self._store.deleted_rows.erase(each, partial(plan.goes, sources[each]))
        self._store.tombstones.erase_rows(selected.sessions, selected.sources, list(selected.exchanges))


def _about(plan: DeletionPlan, besides: DeletionSummary) -> DeletionSummary:
    """What is told of it later: while it can be undone, enough to know it again."""
    sessions = [plan.selector.sessions[number] for number in plan.sessions]
    counted = replace(
        besides,
        sessions=len(sessions),
        exchanges=len(plan.selected.exchanges),
        agents=tuple(sorted({each.agent for each in sessions})),
    )
    if plan.erases:
        return counted
    times = [each.at for each in plan.selected.exchanges.values() if each.at is not None]
    projects = tuple(sorted({each.project for each in sessions if each.project}))
    return replace(counted, projects=projects, first=min(times, default=None), last=max(times, default=None))
