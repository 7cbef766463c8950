"""Ownership: whose a line is. What a fork or a resumed session repeats belongs to the session that said it first.

So it is also where that was forgotten since: forgetting the fork neither takes it away for good nor brings it back.
"""

import io
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from typing import BinaryIO, Final

from ...core.conversation import ResumePoint, Session
from ...core.errors import CopyDamaged
from ..copies.compressed_file import CompressedFile
from ..copies.raw import RawArchive, matches
from ..copies.raw_copy import COMPRESSED_SUFFIX, Copy
from ..files.compression import opened
from ..files.lines import REPEATED, split
from ..formats.registry import by_agent
from ..reading.parsing import Parsed, parse
from ..redaction import Redactor
from ..store import Source, Store
from ..store.source_table import DELETED
from .suppression import SuppressionList

TELLING: Final = {REPEATED, DELETED}
"""The outcomes of lines that may repeat what others said; no other file is looked into."""


class Ownership:
    """Tells it in one archive, by the copies; where `files`, by what agents still have of a copy that is lost."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes, *, files: bool = False) -> None:
        self._store, self._raw, self._key, self._files = store, raw, key, files
        self._suppression = SuppressionList(store, key)

    def repeated(self, source: Source, stays: Callable[[int, int], bool]) -> set[int]:
        """The lines of a copy that repeat what stands first on an earlier line, or on one of another source that stays.

        `stays` is asked with the source's number and the line.
        """
        if source.coverage.keys().isdisjoint(TELLING):
            return set()
        alone = self._parsed(source)
        places = self._store.sources.places(alone.records)
        first = {record: owner for record, (owner, line) in places.items() if owner != source.id and stays(owner, line)}
        kept: set[int] = set()
        for owner in map(self._store.sources.load, set(first.values())):
            again = self._said_elsewhere(owner)
            kept |= {mark for line, mark in self._left_of(owner) if line not in again and stays(owner.id or 0, line)}
        found = self._same(source, kept, stays)
        if first:
            told = zip(self._parsed(source, first.keys()).outcomes, alone.outcomes, strict=True)
            found |= {line for line, (outcome, before) in enumerate(told, 1) if outcome == REPEATED != before}
        return found

    def _said_elsewhere(self, owner: Source) -> set[int]:
        """The lines of a copy that repeat others themselves, as far as it can be read: two copies of a session may each
        have said first what the other says again.
        """
        with suppress(CopyDamaged):
            records = self.records(owner)
            places = self._store.sources.places(records)
            return {line for record, line in records.items() if record in places and places[record][0] != owner.id}
        return set()

    def _left_of(self, owner: Source) -> Iterator[tuple[int, int]]:
        """The marks of a copy that others repeat; what of it is lost, its records still tell."""
        try:
            with reading(self._raw, owner.archived) as file:
                yield from self._marks(owner, file)
        except CopyDamaged:
            with suppress(CopyDamaged), reading_file(owner) as file:
                yield from self._marks(owner, file)

    def _same(self, source: Source, kept: Collection[int], stays: Callable[[int, int], bool]) -> set[int]:
        """The lines that have one of these marks, or stood before in the same copy."""
        found, before = set[int](), dict[int, int]()
        for line, mark in self.marked(source):
            if mark in kept or (before.setdefault(mark, line) != line and stays(source.id or 0, before[mark])):
                found.add(line)
        return found

    def records(self, source: Source) -> dict[str, int]:
        """The records of a copy, whoever said them first, with their lines; none of one that repeats nothing."""
        if source.coverage.keys().isdisjoint(TELLING):
            return {}
        return self._parsed(source).records

    def marked(self, source: Source, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        """Yield every line of a copy with each of its marks.

        `everywhere` adds those of its place in the copy. Raises `CopyDamaged`, also where the copy is missing.
        """
        with self.reading(source) as file:
            yield from self._marks(source, file, everywhere=everywhere)

    def reading(self, source: Source) -> AbstractContextManager[BinaryIO]:
        """The lines of a copy, or of the agent's file; raises `CopyDamaged` where they cannot be read."""
        return reading_file(source) if self._files else reading(self._raw, source.archived)

    def _marks(self, source: Source, file: BinaryIO, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        paths = [source.path, self._raw.root / source.archived] if everywhere else [source.path]
        for line in split(file):
            for mark in self._suppression.line(paths, line):
                yield line.number, mark

    def remnants(self, source: Source) -> set[int]:
        """The marks of what can still be read of a copy that is damaged or gone, and of the agent's file.

        None where some of it may be another's: which lines those are cannot be told any more.
        """
        if not source.coverage.keys().isdisjoint(TELLING):
            return set()
        copy, found = Copy(self._raw.root, source.archived), set[int]()
        with suppress(CopyDamaged), reading_file(source) as file:
            found |= self._marks_in(source, file)
        for path in (copy.compressed_path, *copy.damaged_files()):
            with suppress(OSError, CopyDamaged), CompressedFile(path) as compressed:
                found |= self._marks_in(source, io.BytesIO(compressed.intact_lines()))
            with suppress(OSError), path.open("rb") as file:
                found |= self._marks_in(source, file) if COMPRESSED_SUFFIX not in path.name else set[int]()
        return found

    def _marks_in(self, source: Source, file: BinaryIO) -> set[int]:
        return {mark for _, mark in self._marks(source, file)}

    def _parsed(self, source: Source, repeated: Collection[str] = frozenset()) -> Parsed:
        with self.reading(source) as file:
            return parsed(file, source.agent, self._key, repeated)


def is_left(raw: RawArchive, archived: str) -> bool:
    """Whether there is anything of a copy, in whatever state."""
    copy = Copy(raw.root, archived)
    return copy.exists() or bool(copy.damaged_files())


@contextmanager
def reading(raw: RawArchive, archived: str) -> Generator[BinaryIO]:
    """The lines of a copy; raises `CopyDamaged`, here or where they are read, also where there is no copy any more."""
    try:
        file = raw.open(archived)
    except FileNotFoundError:
        copy = Copy(raw.root, archived)
        left = ", ".join(path.name for path in copy.damaged_files())
        reason = f"it is gone; only {left} is left of it" if left else "it is gone"
        raise CopyDamaged(
            copy.path, reason, hint="Restore it from a backup, or name its whole session: that can be forgotten."
        ) from None
    with file:
        yield file


@contextmanager
def reading_file(source: Source) -> Generator[BinaryIO]:
    """The lines of an agent's file that were archived; raises `CopyDamaged` where it is gone, or another by now."""
    told = list[bytes]()
    with suppress(OSError), source.path.open("rb") as file:
        if matches(source, file):
            with opened(source.path) as lines:
                told = [line.data + b"\n" for line in islice(split(lines), source.lines)]
    if not told:
        raise CopyDamaged(source.path, "it is not what was archived any more")
    yield io.BytesIO(b"".join(told))


def parsed(file: BinaryIO, agent: str, key: bytes, repeated: Collection[str] = frozenset()) -> Parsed:
    """What the lines of a copy say, whatever was said before elsewhere, but for `repeated` records."""
    return parse(by_agent(agent), Session(agent, ""), ResumePoint(), file, Redactor(key), repeated)
