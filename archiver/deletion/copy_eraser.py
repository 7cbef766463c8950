"""Erasure of lines from the raw copies.

The transaction that records an erasure also records the copies that contain the lines. Therefore, the next ingest run
can finish an interrupted erasure. If new bytes are about to be appended to a copy, the copy is recorded first, because
these bytes may contain erased lines.
"""

from collections.abc import Iterable
from itertools import chain

from ...core.deletion import DeletionState
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.progress import Progress, silent
from ..copies.raw import RawArchive, unreadable
from ..copies.raw_copy import Copy
from ..copies.rewriting import erase_lines, remove, remove_leftovers, updating_checksums
from ..files.compression import DOCUMENT, SUFFIX, as_lines
from ..files.lines import is_blanked, split
from ..formats.registry import all_formats
from ..store import Source, Store
from .ownership import extracted_records, has_subagents, parse_copy, reading_copy, repeats_others
from .suppression import SuppressionList


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
        known, recorded = {each.agent for each in all_formats()}, self._store.tombstones.scheduled_erasures()
        scheduled = [name for name in copies if name not in recorded and name.partition("/")[0] in known]
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
