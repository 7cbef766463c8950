"""Planning, execution, undo and completion of deletions.

A deletion removes rows from the store and adds tombstones in one transaction. The copies stay unchanged while undo is
possible. An erasure also removes the lines from the copies (`copy_eraser.py`).
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from ...core.clock import now
from ...core.conversation import UNINDEXED, Milliseconds
from ...core.deletion import UNDO_PERIOD, Deletion, DeletionRequest, DeletionState, DeletionSummary
from ...core.errors import ChangedMeanwhile, InvalidInput
from ...core.progress import Progress, silent
from ..copies.raw import RawArchive
from ..store import Store
from ..store.source_table import DELETED
from .deletion_plan import DeletionPlan, Planner
from .ownership import repeats_others
from .selector import Selector
from .suppression import SuppressionList

_NO_COUNTS: Final = DeletionSummary()


def _nothing(_number: int = 0) -> None:
    pass


class Deletions:
    """Deletions in one archive. Except for planning, the caller must hold the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._key = store.home.key()
        self._suppression = SuppressionList(store, self._key)

    def plan(self, request: DeletionRequest, progress: Progress = silent) -> DeletionPlan:
        """Return the plan for a request.

        Raises:
            InvalidInput: A name in the request is unknown or ambiguous.
            CopyDamaged: Only some lines of a damaged copy are selected.
        """
        selector = Selector(self._store, self._raw, request)
        planner = Planner(self._store, self._raw, self._key)
        return planner.plan(selector, selector.select(), erase=request.erase, progress=progress)

    def token(self, plan: DeletionPlan, *rest: object) -> str:
        """Return a token that identifies exactly this plan.

        `rest` contains other values that the token depends on, such as the files that the deletion changes.
        """
        selection, sources = plan.selection, plan.selector.sources
        content = (
            sorted(selection.exchanges.values()),
            sorted(selection.sessions),
            [(number, sources[number].size, sources[number].lines) for number in sorted(selection.sources)],
            sorted((number, *sorted(lines)) for number, lines in selection.lines.items()),
            rest,
        )
        return hashlib.blake2b(repr(content).encode("utf-8", "replace"), key=self._key, digest_size=6).hexdigest()

    def delete(
        self, plan: DeletionPlan, callback: Callable[[int], None] = _nothing, extra: DeletionSummary = _NO_COUNTS
    ) -> int:
        """Carry out a plan, and return the ID of the deletion.

        Args:
            plan: The plan to carry out.
            callback: Function that is called with the ID in the same transaction.
            extra: Number of observations and memories that the callback removes.

        Raises:
            ChangedMeanwhile: The content changed after it was planned. Nothing is deleted.
        """
        selection, tombstones = plan.selection, self._store.tombstones
        with self._store.transaction():
            if selection.exchanges.keys() & set(self._store.changes.since(plan.seq)):
                raise ChangedMeanwhile
            state = DeletionState.ERASING if plan.erase else DeletionState.KEPT
            number = tombstones.insert(now(), state, plan.hashes, _summary(plan, extra))
            if not plan.erase:
                self._store.deleted_rows.keep(number, list(selection.exchanges))
            self._store.exchanges.delete(list(selection.exchanges))
            self._clear_sessions(plan)
            if plan.erase:
                self._erase(plan, number)
            self._store.sources.outdate(plan.changed_sources)
            callback(number)
            self._end_erased()
        return number

    def expired(self, at: Milliseconds) -> list[Deletion]:
        """Return the deletions whose undo period has ended at the time `at`, but whose content is not erased yet."""
        past = self._store.tombstones.all()
        return [each for each in past if each.state is DeletionState.KEPT and each.at < at - UNDO_PERIOD]

    def expire(self, number: int, callback: Callable[[], None] = _nothing) -> None:
        """Begin to erase the content of a deletion, and call `callback` in the same transaction.

        Raises:
            InvalidInput: The deletion does not exist, or was already undone or erased.
        """
        deletion = self._undoable(number)
        with self._store.transaction():
            self._store.tombstones.set_state(deletion.id, DeletionState.ERASING)
            copies = {source.archived: False for source in self._store.sources.all() if repeats_others(source)}
            self._store.tombstones.schedule_erasure(deletion.id, copies)
            callback()

    def undo(self, number: int, callback: Callable[[], None] = _nothing) -> None:
        """Restore the content of a deletion under the same IDs, and call `callback` in the same transaction.

        Raises:
            InvalidInput: The deletion does not exist, or was already undone or erased.
        """
        with self._store.transaction():
            self._undoable(number)
            self._store.deleted_rows.restore(number)
            self._store.tombstones.undo(number)
            deleted = [each.id for each in self._store.sources.all() if DELETED in each.coverage]
            self._store.sources.outdate([each for each in deleted if each is not None])
            callback()

    def _undoable(self, number: int) -> Deletion:
        found = self._store.tombstones.load(number)
        if found is None or found.state is not DeletionState.KEPT:
            problem = "was erased" if found else "was undone or never existed"
            raise InvalidInput(f"Deletion {number} {problem}", hint="Run `palaver forget --list` to see all deletions.")
        return found

    def _clear_sessions(self, plan: DeletionPlan) -> None:
        """Clear the titles and dates of the affected sessions, because they can come from deleted lines.

        The next reading of the copies sets them again.
        """
        self._store.summaries.drop(plan.sessions)
        for number in plan.sessions:
            session = self._store.sessions.load(number)
            links = {name: value for name, value in session.links.items() if name == UNINDEXED}
            self._store.sessions.save(
                replace(session, title="", title_rank=-1, branch="", cwd="", started=None, ended=None, links=links)
            )

    def _erase(self, plan: DeletionPlan, number: int) -> None:
        selection, sources = plan.selection, plan.selector.sources
        partly = {each for each, lines in selection.lines.items() if lines} | plan.repeats.keys()
        copies = {sources[each].archived: False for each in partly}
        copies |= {sources[each].archived: True for each in selection.sources}
        self._store.tombstones.schedule_erasure(number, copies)
        for each in selection.sources | selection.lines.keys() | plan.repeats.keys():
            self._store.deleted_rows.erase(each, partial(plan.includes, sources[each]))
        for source in map(sources.__getitem__, selection.sources):
            self._store.tombstones.record_erased_file(self._suppression.file(source.path), source.mtime, source.size)
        self._store.tombstones.erase_rows(selection.sources, selection.sessions)
        self._store.tombstones.erase_calls(selection.exchanges.keys())

    def _end_erased(self) -> None:
        """Mark each deletion as being erased if other deletions have already erased all of its lines.

        A deletion that also removed memories is not marked.
        """
        for number in self._store.tombstones.fully_erased():
            deletion = self._store.tombstones.load(number)
            if deletion is not None and not deletion.summary.memories:
                self._store.tombstones.set_state(number, DeletionState.ERASING)


def _summary(plan: DeletionPlan, extra: DeletionSummary) -> DeletionSummary:
    sessions = [plan.selector.sessions[number] for number in plan.sessions]
    return replace(
        extra,
        sessions=len(sessions),
        exchanges=len(plan.selection.exchanges),
        agents=tuple(sorted({each.agent for each in sessions})),
        projects=() if plan.erase else tuple(sorted({each.project for each in sessions if each.project})),
    )
