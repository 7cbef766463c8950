"""Plan of a deletion: the selected content, its tombstones, and the copies that repeat some of its lines.

If other sessions repeat deleted lines, the preview counts their copies, not their exchanges. If one of these copies
loses an exchange, undo restores the exchange under a new ID.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from msgspec import Struct

from ...core.errors import CopyDamaged
from ...core.progress import Progress, silent
from ..copies.raw import RawArchive
from ..files.lines import split
from ..reading.lineage import origins
from ..store import Source, Store
from ..store.source_table import DELETED
from .ownership import Ownership, has_files, repeats_others
from .repeat_filter import RepeatFilter
from .selector import Selection, Selector
from .suppression import SuppressionList


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
        sessions = store.sessions.several({sources[each].session or 0 for each in touched}).values()
        later = [number for session in sessions for number in store.sessions.descendants(session)]
        partly = {number for number, source in sources.items() if DELETED in source.coverage}
        found = store.repetitions.repeating(touched).union(store.sources.of_sessions(later), partly)
        return [sources[number] for number in sorted(found & sources.keys())]

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

        Copies that `repeat_filter` excludes are not hashed.
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
