"""Deletions: plan and preview, execution, undo, and erasure of lines from the raw copies.

A deletion removes rows from the store and adds tombstones in one transaction. The copies stay unchanged while undo is
possible. An erasure also removes the lines from the copies. Its transaction records the copies that contain the
lines, so the next ingest run can finish an interrupted erasure. If new bytes are about to be appended to a copy, the
copy is recorded first, because these bytes may contain erased lines.

If other sessions repeat deleted lines, the preview counts their copies, not their exchanges. If one of these copies
loses an exchange, undo restores the exchange under a new ID.

An archive or a project without sessions is explained if the user deleted them all.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import UNINDEXED, Milliseconds, now
from ...core.deletion import UNDO_PERIOD, Deletion, DeletionRequest, DeletionState, DeletionSummary
from ...core.errors import ChangedMeanwhile, CopyDamaged, InvalidInput, SourceUnreadable
from ...core.reports import many
from ...core.runtime import Progress, silent
from ..copies.raw_copy import Copy, RawArchive, erase_lines, remove, remove_leftovers, unreadable, updating_checksums
from ..copies.result_files import ResultFiles
from ..formats.registry import all_formats
from ..lines import DOCUMENT, SUFFIX, as_lines, is_blanked, split
from ..reading.lineage import origins
from ..store import Source, Store
from ..store.source_table import DELETED
from ..store.sync_table import copy_id
from .suppression import (
    Ownership,
    RepeatFilter,
    Selection,
    Selector,
    SuppressionList,
    extracted_records,
    has_files,
    has_subagents,
    parse_copy,
    reading_copy,
    repeats_others,
)


class DeletionPlan(Struct, frozen=True):
    """Content that a deletion removes.

    Attributes:
        selector: Selector with the sources, sessions and exchanges that were stored when the plan was made.
        selection: The selected content.
        hashes: Tombstones to store: keyed hashes.
        repeats: Lines of other copies that repeat deleted lines, by source ID.
        unreadable: Names of damaged copies, which can contain deleted lines.
        kept_lines: Number of lines of deleted copies that are kept because another session contained them first.
        seq: Number of the last entry in the change log when the plan was made.
        erase: True if the lines are also erased from the copies.
    """

    selector: Selector
    selection: Selection
    hashes: frozenset[int]
    repeats: Mapping[int, AbstractSet[int]]
    unreadable: tuple[str, ...]
    kept_lines: int
    seq: int
    erase: bool

    def includes(self, source: Source, line: int) -> bool:
        """Return whether a line of a copy is deleted."""
        number = source.id or 0
        return self.selection.has(number, line) or line in self.repeats.get(number, ())

    @property
    def sources(self) -> list[Source]:
        """Sources that are deleted completely or in part, in ID order."""
        touched = self.selection.sources | {number for number, lines in self.selection.lines.items() if lines}
        return [self.selector.sources[number] for number in sorted(touched)]

    @property
    def changed_sources(self) -> set[int]:
        """IDs of sources whose exchanges change.

        These are the selected sources and the sources with exchanges on repeated lines.
        """
        selected = {source.id for source in self.sources if source.id is not None}
        return selected | {
            each.source
            for each in self.selector.outlines
            if not self.repeats.get(each.source, frozenset[int]()).isdisjoint(range(each.start_line, each.end_line + 1))
        }

    @property
    def sessions(self) -> set[int]:
        """IDs of the sessions that lose content."""
        return self.selection.sessions | {source.session for source in self.sources if source.session is not None}


class Planner:
    """Planner of deletions in one archive. A plan lists exactly what a deletion would remove."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes) -> None:
        self._store = store
        self._raw, self._suppression = raw, SuppressionList(store, key)
        self._copies, self._originals = Ownership(store, raw, key), Ownership(store, raw, key, originals=True)

    def plan(
        self, selector: Selector, selection: Selection, *, erase: bool, progress: Progress = silent
    ) -> DeletionPlan:
        """Return the plan for a selection.

        Raises:
            CopyDamaged: Only some lines of a damaged copy are selected. Damaged copies can only be deleted completely.
        """
        seq, unreadable = self._store.changes.last(), set(selection.unreadable)
        hashes, kept, repeat_filter = set[int](), 0, RepeatFilter()
        for number in selection.sources | selection.lines.keys():
            source, whole = selector.sources[number], number in selection.sources
            try:
                found, others = self._hashes(source, selection, self._copies, erase=erase)
            except CopyDamaged:
                if not whole:
                    raise
                found, others = self._hashes_of_damaged(source, selection, unreadable, erase=erase)
            hashes |= found
            kept += others if whole else 0
            self._add_lines(repeat_filter, source, selector, partial(selection.has, number))
        self._add_copies(selector, selection, hashes, repeat_filter)
        repeats = self._repeats(selector, selection, hashes, repeat_filter, unreadable, progress)
        return DeletionPlan(
            selector, selection, frozenset(hashes), repeats, tuple(sorted(unreadable)), kept, seq, erase
        )

    def _add_lines(
        self, repeat_filter: RepeatFilter, source: Source, selector: Selector, is_selected: Callable[[int], bool]
    ) -> None:
        """Add the selected lines of a copy to a filter."""
        session = selector.sessions.get(source.session or 0)
        try:
            with self._copies.reading(source) as file:
                lines = (line for line in split(file) if is_selected(line.number))
                paths = source.path, self._raw.root / source.archived
                repeat_filter.add(paths, session.native_id if session else "", lines)
        except CopyDamaged:
            repeat_filter.excludes_nothing = True

    def _hashes(
        self, source: Source, selection: Selection, ownership: Ownership, *, erase: bool
    ) -> tuple[set[int], int]:
        """Return keyed hashes of the selected lines that a copy owns. Also count its lines that other copies own.

        Unless `erase` is true, omit lines that were deleted earlier, because undo must not restore them.
        """
        number = source.id or 0
        others = ownership.repeated(source, lambda owner, line: not selection.has(owner, line))
        omitted = others if erase else others | ownership.deleted(source)

        def is_deleted(line: int) -> bool:
            return selection.has(number, line) and line not in omitted

        hashes = {line_hash for line, line_hash in ownership.hashes(source, everywhere=True) if is_deleted(line)}
        records = self._store.sources.records_of(number).items()
        hashes |= {self._suppression.record(record) for record, line in records if is_deleted(line)}
        return hashes | self._contents(source, ownership, is_deleted), len(others)

    def _contents(self, source: Source, ownership: Ownership, is_deleted: Callable[[int], bool]) -> set[int]:
        """Return keyed hashes of the contents of deleted exchanges that no remaining exchange shares."""
        name = self._store.sources.native_id(source.id or 0)
        deleted, remaining = set[int](), set[int]()
        for content, lines in self._suppression.contents(ownership.exchanges(source), [name]):
            (deleted if all(map(is_deleted, lines)) else remaining).add(content)
        return deleted - remaining

    def _add_copies(
        self, selector: Selector, selection: Selection, hashes: set[int], repeat_filter: RepeatFilter
    ) -> None:
        """Add keyed hashes of the lines of forks that repeat deleted content under other IDs or times."""
        touched = selection.sources | selection.lines.keys()
        for source in self._forks(selector, touched):
            if source.id not in selection.sources and source.session is not None:
                names = origins(self._store, self._store.sessions.load(source.session))
                with suppress(CopyDamaged):
                    contents = self._suppression.contents(self._copies.exchanges(source), names)
                    lines = {number for content, numbers in contents if content in hashes for number in numbers}
                    if lines:
                        hashes |= self._hashes_of_lines(source, lines)
                        self._add_lines(repeat_filter, source, selector, lines.__contains__)

    def _forks(self, selector: Selector, touched: AbstractSet[int]) -> list[Source]:
        """Return the sources that repeat content of these sources, or repeated it before it was deleted."""
        store, sources = self._store, selector.sources
        sessions = store.sessions.several({sources[number].session or 0 for number in touched}).values()
        later = [number for session in sessions for number in store.sessions.descendants(session)]
        partly = {number for number, source in sources.items() if DELETED in source.coverage}
        repeating = store.repetitions.repeating(touched).union(store.sources.of_sessions(later), partly)
        return [sources[number] for number in sorted(repeating & sources.keys())]

    def _hashes_of_lines(self, source: Source, lines: AbstractSet[int]) -> set[int]:
        records = self._copies.records(source).items()
        hashes = {line_hash for line, line_hash in self._copies.hashes(source, everywhere=True) if line in lines}
        return hashes | {self._suppression.record(record) for record, line in records if line in lines}

    def _hashes_of_damaged(
        self, source: Source, selection: Selection, unreadable: set[str], *, erase: bool
    ) -> tuple[set[int], int]:
        """Return the result of `_hashes` for a damaged copy.

        Read the agent's own file instead. If it is missing or changed, use the database and the readable rest of the
        copy.
        """
        try:
            return self._hashes(source, selection, self._originals, erase=erase)
        except CopyDamaged:
            unreadable |= {source.archived} if repeats_others(source) else set()
            records = self._store.sources.records_of(source.id or 0)
            return self._copies.salvaged_hashes(source) | set(map(self._suppression.record, records)), 0

    def _repeats(
        self,
        selector: Selector,
        selection: Selection,
        hashes: AbstractSet[int],
        repeat_filter: RepeatFilter,
        unreadable: set[str],
        progress: Progress,
    ) -> dict[int, set[int]]:
        """Return the lines with these hashes in other copies of the same agents. Add damaged copies to `unreadable`.

        Copies that contain no repeated line are not hashed.
        """
        agents = {selector.sources[number].agent for number in selection.sources | selection.lines.keys()}
        others = [
            (number, source)
            for number, source in selector.sources.items()
            if number not in selection.sources and source.agent in agents
        ]
        found = dict[int, set[int]]()
        for done, (number, source) in enumerate(others):
            progress(done, len(others))
            try:
                if not repeats_others(source):
                    with self._copies.reading(source) as file:
                        if not repeat_filter.may_match(source.path, file):
                            continue
                lines = {line for line, line_hash in self._copies.hashes(source) if line_hash in hashes}
                records = (self._copies.records(source) | self._copies.extracted_records(source)).items()
            except CopyDamaged:
                unreadable |= {source.archived} if has_files(self._raw, source.archived) else set()
                continue
            lines |= {line for record, line in records if self._suppression.record(record) in hashes}
            if lines := lines - selection.lines.get(number, set()):
                found[number] = lines
        progress(len(others), len(others))
        return found


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

    def token(self, plan: DeletionPlan, *context: object) -> str:
        """Return a token that identifies exactly this plan.

        `rest` contains other values that the token depends on, such as the files that the deletion changes.
        """
        selection, sources = plan.selection, plan.selector.sources
        content = (
            sorted(selection.exchanges.values()),
            sorted(selection.sessions),
            [(number, sources[number].size, sources[number].lines) for number in sorted(selection.sources)],
            sorted((number, *sorted(lines)) for number, lines in selection.lines.items()),
            context,
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
            self._store.sync.note_lines(number, _lines(plan))
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
        return [
            deletion for deletion in past if deletion.state is DeletionState.KEPT and deletion.at < at - UNDO_PERIOD
        ]

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
        deletion = self._store.tombstones.load(number)
        if deletion is None or deletion.state is not DeletionState.KEPT:
            problem = "was erased" if deletion else "was undone or never existed"
            raise InvalidInput(f"Deletion {number} {problem}", hint="Run `palaver forget --list` to see all deletions.")
        return deletion

    def _clear_sessions(self, plan: DeletionPlan) -> None:
        """Clear the titles and dates of the affected sessions, because they can come from deleted lines.

        The next reading of the copies sets them again.
        """
        self._store.summaries.drop(plan.sessions)
        self._store.session_labels.drop_dismissals(plan.sessions)
        for number in plan.sessions:
            session = self._store.sessions.load(number)
            links = {name: value for name, value in session.links.items() if name == UNINDEXED}
            self._store.sessions.save(
                replace(session, title="", title_rank=-1, branch="", cwd="", started=None, ended=None, links=links)
            )

    def _erase(self, plan: DeletionPlan, number: int) -> None:
        selection, sources = plan.selection, plan.selector.sources
        partly = {source_id for source_id, lines in selection.lines.items() if lines} | plan.repeats.keys()
        copies = {sources[source_id].archived: False for source_id in partly}
        copies |= {sources[source_id].archived: True for source_id in selection.sources}
        self._store.tombstones.schedule_erasure(number, copies)
        for source_id in selection.sources | selection.lines.keys() | plan.repeats.keys():
            self._store.deleted_rows.erase(source_id, partial(plan.includes, sources[source_id]))
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


def _lines(plan: DeletionPlan) -> dict[str, AbstractSet[int]]:
    """Return the lines that a plan deletes, by the ID of the copy."""
    sources, selection = plan.selector.sources, plan.selection
    numbers = selection.sources | selection.lines.keys() | plan.repeats.keys()
    return {
        copy_id(sources[number].archived): (
            {*range(1, sources[number].lines + 1)}
            if number in selection.sources
            else selection.lines.get(number, set[int]()) | plan.repeats.get(number, set[int]())
        )
        for number in numbers
    }


def _summary(plan: DeletionPlan, partial: DeletionSummary) -> DeletionSummary:
    """Add the sessions and exchanges of a plan to a summary. An erasure keeps no names of projects."""
    sessions = [plan.selector.sessions[number] for number in plan.sessions]
    return replace(
        partial,
        sessions=len(sessions),
        exchanges=len(plan.selection.exchanges),
        agents=tuple(sorted({each.agent for each in sessions})),
        projects=() if plan.erase else tuple(sorted({each.project for each in sessions if each.project})),
    )


_MOST: Final = 3
"""Maximum number of deletions that the explanation names."""


def explain_deletions(store: Store, projects: Collection[str] = ()) -> str:
    """Return what was deleted and how to undo it, if the archive contains no session of these projects.

    Without `projects`, any session counts. The result is empty if sessions are left or if none were deleted.
    """
    left = {each.name for each in store.sessions.totals_by_project()}
    missing = set(projects) - left
    if left and not missing:
        return ""
    deletions = [each for each in store.tombstones.all() if each.summary.sessions]
    if left:
        deletions = [each for each in deletions if not missing.isdisjoint(each.summary.projects)]
    undoable = [each.id for each in deletions if each.state is DeletionState.KEPT]
    count = sum(each.summary.sessions for each in deletions)
    if not count:
        return ""
    fact = f"{many(count, 'session')} {'was' if count == 1 else 'were'} deleted"
    if not undoable:
        return f"{fact} permanently. `palaver forget --list` lists the deletions."
    commands = ", ".join(f"`palaver forget --undo {number}`" for number in undoable[:_MOST])
    return f"{fact}. Restore with {commands}; `palaver forget --list` lists all deletions."


class CopyEraser:
    """Eraser of deleted lines in the copies of one archive. The caller must hold the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._key = store.home.key()
        self.suppressed = SuppressionList(store, self._key, erased=True)
        self._scheduled = set[str]()

    def schedule(self, copies: Iterable[str]) -> None:
        """Schedule an erasure in copies that may contain erased lines, now or after the next append."""
        erased = next((each.id for each in self._store.tombstones.all() if each.state is not DeletionState.KEPT), None)
        agents, recorded = {each.agent for each in all_formats()}, self._store.tombstones.scheduled_erasures()
        scheduled = [name for name in copies if name not in recorded and name.partition("/")[0] in agents]
        if erased is not None and scheduled:
            self._scheduled |= set(scheduled)
            with self._store.transaction():
                self._store.tombstones.schedule_erasure(erased, dict.fromkeys(scheduled, False))

    def unschedule(self, archived: str) -> None:
        """Cancel the erasure in a copy whose new lines contain no deleted line. The caller opens the transaction."""
        # If a damaged file was kept, earlier lines were copied again and may contain erased lines.
        if archived in self._scheduled and not Copy(self._raw.root, archived).damaged_files():
            self._store.tombstones.complete_erasure(archived)

    def finish(self, progress: Progress = silent) -> list[SourceUnreadable]:
        """Erase the lines from every scheduled copy, and return the problems. A copy with a problem stays scheduled."""
        scheduled, problems = self._store.tombstones.scheduled_erasures(), list[SourceUnreadable]()
        for done, (archived, whole) in enumerate(scheduled.items()):
            progress(done, len(scheduled))
            copy = Copy(self._raw.root, archived)
            try:
                self._finish(copy, whole=whole)
            except CopyDamaged as damage:
                hint = "Restore it from a backup, or erase the whole session, which deletes the copy."
                problems.append(SourceUnreadable(damage.path, f"cannot erase lines: {damage.reason}", hint=hint))
            except OSError as error:
                problems.append(unreadable(copy.path, error))
        return problems

    def _finish(self, copy: Copy, *, whole: bool) -> None:
        source = self._store.sources.by_archived(copy.archived)
        if not whole:
            whole = self._erase_lines(copy, source) if copy.exists() else source is not None and self._is_erased(source)
        if whole:
            remove(copy)
        remove_leftovers(copy)
        ResultFiles(source.path if source else copy.path, copy).prune()
        tombstones = self._store.tombstones
        with self._store.transaction():
            tombstones.complete_erasure(copy.archived)
            if source is None or source.id is None:
                return
            records = self._store.sources.records_of(source.id)
            if whole:
                tombstones.erase_rows([source.id], [source.session] if source.session is not None else [])
                tombstones.record_erased_file(self.suppressed.file(source.path), source.mtime, source.size)
                return
            gone = self.suppressed.records(records)
            tombstones.erase_records([record for record, line in records.items() if line in gone])
            if not _keeps_offsets(copy):
                self._store.sources.outdate([source.id])

    def _erase_lines(self, copy: Copy, source: Source | None) -> bool:
        """Erase the deleted lines from a copy. Return True if the copy then consists of erased lines only."""
        agent, path = (source.agent, source.path) if source else (copy.archived.partition("/")[0], copy.path)
        if copy.format_damage():
            copy.decompress()
        with as_lines(copy.open(), copy.path) as file:
            gone = self.suppressed.lines(path, split(file), blanked=False)
        if gone or source is None or repeats_others(source) or has_subagents(source):
            with reading_copy(self._raw, copy.archived) as file:
                parsed = parse_copy(file, agent, path, self._key)
                # Forks and transcripts of parents repeat erased records on different lines.
                gone |= self.suppressed.records(parsed.records | extracted_records(file, agent))
            if gone:
                with updating_checksums(self._store, copy, source, in_place=_keeps_offsets(copy)):
                    erase_lines(copy, gone, {exchange.span.start_line for exchange in parsed.exchanges})
        with as_lines(copy.open(), copy.path) as file:
            lines = split(file)
            first = next(lines, None)
            return first is not None and all(is_blanked(line.data) for line in chain([first], lines))

    def _is_erased(self, source: Source) -> bool:
        """Return whether every record of a source was erased."""
        records = self._store.sources.records_of(source.id or 0)
        return bool(records) and self.suppressed.records(records) == set(records.values())


def _keeps_offsets(copy: Copy) -> bool:
    """Return whether overwriting a line keeps the offsets of all other bytes."""
    return copy.path.suffix not in {DOCUMENT, SUFFIX}
