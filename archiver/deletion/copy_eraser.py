"""CopyEraser: copies lose what was erased, and what comes along anew with an agent's file is taken out on its way in.

What is to be done is written down in the transaction that decides it, so that whoever archives next finishes it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.home import Home
from ...core.progress import Progress, silent
from ..copies.checksums import verify
from ..copies.raw import Copied, RawArchive, unreadable
from ..copies.raw_copy import Copy
from ..copies.rewriting import erase_lines, remove, remove_leftovers, updating_checksums
from ..files.compression import DOCUMENT, SUFFIX, shown
from ..files.lines import split
from ..formats.registry import all_formats
from ..reading.parsing import Parsed
from ..store import Source, State, Store
from .ownership import parsed, reading
from .suppression import SuppressionList


class CopyEraser:
    """Takes erased lines out of the copies of one archive. Runs under the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._home = Home(raw.root.parent)
        self._key = self._home.key()
        self.known = SuppressionList(store, self._key, erased=True)
        self._expected: set[str] = set()

    def finish(self, progress: Progress = silent) -> list[SourceUnreadable]:
        """Clean every copy that is still to be cleaned; those that could not be, and why: they are tried again."""
        intended, problems = self._store.tombstones.intended(), list[SourceUnreadable]()
        for done, (archived, whole) in enumerate(intended.items()):
            progress(done, len(intended))
            copy = Copy(self._raw.root, archived)
            try:
                self._finish(copy, whole=whole)
            except CopyDamaged as damage:
                hint = "Restore it from a backup, or erase the whole session, which deletes the copy."
                problems.append(
                    SourceUnreadable(damage.path, f"cannot lose what was erased: {damage.reason}", hint=hint)
                )
            except OSError as error:
                problems.append(unreadable(copy.path, error))
        return problems

    def _finish(self, copy: Copy, *, whole: bool) -> None:
        source = self._store.sources.by_archived(copy.archived)
        if whole:
            remove(copy)
        elif copy.exists():
            with updating_checksums(self._store, copy, source, in_place=_keeps_places(copy)):
                self._clean(copy, source)
        remove_leftovers(copy)
        with self._store.transaction():
            self._store.tombstones.cleaned([copy.archived])
            if source is not None and source.id is not None and copy.path.suffix in {DOCUMENT, SUFFIX}:
                # What a document or a compressed file says stands at other bytes now.
                self._store.tombstones.reread([source.id])

    def suspect(self, copies: Iterable[str]) -> None:
        """Write down that these copies, of which no row tells, may hold what was erased: they are looked through."""
        erased = next((each.id for each in self._store.tombstones.all() if each.state is not State.KEPT), None)
        known = {each.agent for each in all_formats()}
        told = [name for name in copies if name.partition("/")[0] in known]
        if erased is not None and told:
            with self._store.transaction():
                self._store.tombstones.intend(erased, dict.fromkeys(told, False))

    def expect(self, copies: Iterable[str]) -> None:
        """Write down, before these copies are written, that what was erased may come along with their files.

        Whoever is killed before it is out again, as `arrived` tells, leaves that to the next pass. A copy that only
        begins goes as a whole then: nobody was told of it.
        """
        tombstones = self._store.tombstones
        erased = next((each.id for each in tombstones.all() if each.state is not State.KEPT), None)
        if erased is None:
            return
        standing = tombstones.intended()
        expected = {name: not Copy(self._raw.root, name).exists() for name in copies if name not in standing}
        self._expected = set(expected)
        if expected:
            with self._store.transaction():
                tombstones.intend(erased, expected)

    def arrived(self, archived: str) -> None:
        """A copy that was expected is clean. The caller opens the transaction."""
        if archived in self._expected:
            self._store.tombstones.cleaned([archived])

    def cleaned(self, path: Path, archived: str, agent: str, copied: Copied) -> Copied:
        """A copy as it may be kept, just after it was made: what was erased came along.

        May be called in another thread. Raises `SourceUnreadable`.
        """
        copy = Copy(self._raw.root, archived)
        try:
            with Store.open(self._home.database) as store:
                known = SuppressionList(store, self._key, erased=True)
                gone = _lines_of(copy, path, known)
            sums = copied.sums
            if gone:
                if sums:
                    with copy.open() as file:
                        verify(file, sums, copy.path)
                erase_lines(copy, gone, _openings(self._parse(archived, agent)))
                sums = copy.checksums() if sums else sums
            head, tail = self._raw.ends(path, copied.stat.size)
        except OSError as error:
            raise unreadable(path, error) from None
        return replace(copied, head=head, tail=tail, sums=sums)

    def take_out(self, source: Source, records: Mapping[str, int]) -> None:
        """Blank the lines of these records in a copy, as far as they were erased."""
        if records and self.known and (gone := self.known.records(records)):
            copy = Copy(self._raw.root, source.archived)
            with updating_checksums(self._store, copy, source, in_place=_keeps_places(copy)):
                erase_lines(copy, gone, _openings(self._parse(source.archived, source.agent)))

    def leave(self, source: Source) -> bool:
        """Whether a new file that says nothing but what was forgotten is left alone: another copy of what is gone.

        What can be had back is not: where the database was lost, nothing else may tell of it. Raises
        `SourceUnreadable`.
        """
        try:
            with self._raw.open(source.archived) as file:
                if len(self.known.lines(source.path, split(file))) < source.lines:
                    return False
            remove(Copy(self._raw.root, source.archived))
        except OSError as error:
            raise unreadable(source.path, error) from None
        with self._store.transaction():
            self.arrived(source.archived)
            self._store.tombstones.keep_emptied(self.known.file(source.path), source.mtime, source.size)
        return True

    def _clean(self, copy: Copy, source: Source | None) -> None:
        agent, path = (source.agent, source.path) if source else (copy.archived.partition("/")[0], copy.path)
        if copy.format_damage():
            copy.decompress()
        found = self._parse(copy.archived, agent)
        # Forks say what was erased in lines of their own.
        gone = _lines_of(copy, path, self.known) | self.known.records(found.records)
        erase_lines(copy, gone, _openings(found))

    def _parse(self, archived: str, agent: str) -> Parsed:
        with reading(self._raw, archived) as file:
            return parsed(file, agent, self._key)


def _keeps_places(copy: Copy) -> bool:
    """Return whether blanking a line leaves every other byte where it is."""
    return copy.path.suffix not in {DOCUMENT, SUFFIX}


def _openings(found: Parsed) -> set[int]:
    """The lines on which exchanges begin."""
    return {exchange.span.start_line for exchange in found.exchanges}


def _lines_of(copy: Copy, path: Path, known: SuppressionList) -> set[int]:
    with shown(copy.open(), copy.path) as file:
        return known.lines(path, split(file))
