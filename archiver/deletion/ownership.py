"""Ownership of lines: a line that a fork or resumed session repeats belongs to the session that contained it first.

Deleting a session therefore deletes its own lines, also where others repeat them, and leaves the lines it repeats.
"""

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
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
from ..reading.parsing import ParsedLines, parse
from ..redaction import Redactor
from ..store import Source, Store
from ..store.source_table import DELETED
from .suppression import SuppressionList

_SHARED: Final = {REPEATED, DELETED}
"""Outcomes of lines that may repeat another file."""


class Ownership:
    """Reads the marks and records of copies, and finds the lines that belong to other sessions."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes, *, originals: bool = False) -> None:
        """With `originals`, read the agents' own files instead of the copies."""
        self._store, self._raw, self._key, self._originals = store, raw, key, originals
        self._suppression = SuppressionList(store, key)

    def repeated(self, source: Source, stays: Callable[[int, int], bool]) -> set[int]:
        """Return the lines of a copy that repeat a line that stays, in another copy or earlier in this one.

        `stays` is called with the id of a source and a line. Lines with a record id are compared by it, others by
        content, and only with copies that own some of the records. Raises `CopyDamaged`.
        """
        if not repeats_others(source):
            return set()
        records = self.records(source)
        found, owners = set[int](), set[int]()
        for record, (owner, line) in self._store.sources.places(records).items():
            if (owner, line) != (source.id, records[record]) and stays(owner, line):
                found.add(records[record])
                owners.add(owner)
        theirs = set[int]()
        for owner in owners - {source.id}:
            with suppress(CopyDamaged):
                theirs |= {mark for line, mark in self.marks(self._store.sources.load(owner)) if stays(owner, line)}
        with_record, first = set(records.values()), dict[int, int]()
        for line, mark in self.marks(source):
            earlier = first.setdefault(mark, line)
            if (line not in with_record and mark in theirs) or (earlier != line and stays(source.id or 0, earlier)):
                found.add(line)
        return found

    def records(self, source: Source) -> dict[str, int]:
        """Return all records of a copy that repeats others, with their lines; nothing for any other copy."""
        if not repeats_others(source):
            return {}
        with self.reading(source) as file:
            return parse_copy(file, source.agent, self._key).records

    def marks(self, source: Source, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        """Yield every line of a copy with each of its marks; `everywhere` adds those of its place in the copy.

        Raises `CopyDamaged`.
        """
        paths = [source.path, self._raw.root / source.archived] if everywhere else [source.path]
        with self.reading(source) as file:
            for line in split(file):
                for mark in self._suppression.marks(paths, line):
                    yield line.number, mark

    def salvaged_marks(self, source: Source) -> set[int]:
        """Return the marks of what can still be read of a damaged or missing copy.

        Nothing for a copy that repeats others: its own lines cannot be told from theirs any more.
        """
        copy, found = Copy(self._raw.root, source.archived), set[int]()
        for form in (copy.path, copy.compressed_path, *copy.damaged_files()) if not repeats_others(source) else ():
            with suppress(OSError, CopyDamaged):
                if COMPRESSED_SUFFIX in form.name:
                    with CompressedFile(form) as compressed:
                        data = compressed.intact_lines()
                else:
                    data = form.read_bytes()
                for line in split(io.BytesIO(data)):
                    found |= self._suppression.marks([source.path], line)
        return found

    def deleted(self, source: Source) -> set[int]:
        """Return the lines of a copy that were deleted before. Raises `CopyDamaged`."""
        if not repeats_others(source):
            return set()
        with self.reading(source) as file:
            return self._suppression.lines(source.path, split(file)) | self._suppression.records(self.records(source))

    @contextmanager
    def reading(self, source: Source) -> Generator[BinaryIO]:
        """Open the content of a copy, or of the agent's own file. Raises `CopyDamaged`, here or where it is read."""
        with reading_original(source) if self._originals else reading_copy(self._raw, source.archived) as file:
            yield file


def repeats_others(source: Source) -> bool:
    """Return whether a copy contains lines that repeat others, or may, because they were deleted."""
    return not source.coverage.keys().isdisjoint(_SHARED)


def is_left(raw: RawArchive, archived: str) -> bool:
    """Return whether anything is left of a copy, damaged or not."""
    copy = Copy(raw.root, archived)
    return copy.exists() or bool(copy.damaged_files())


@contextmanager
def reading_copy(raw: RawArchive, archived: str) -> Generator[BinaryIO]:
    """Open the content of a copy. Raises `CopyDamaged`, here or where it is read, also if the copy is missing."""
    try:
        file = raw.open(archived)
    except FileNotFoundError:
        copy = Copy(raw.root, archived)
        left = ", ".join(path.name for path in copy.damaged_files())
        reason = f"the copy is missing; only {left} is left" if left else "the copy is missing"
        hint = "Restore it from a backup, or delete the whole session, which needs no copy."
        raise CopyDamaged(copy.path, reason, hint=hint) from None
    with file:
        yield file


@contextmanager
def reading_original(source: Source) -> Generator[BinaryIO]:
    """Open the archived lines of an agent's own file. Raises `CopyDamaged` if it is missing or has changed."""
    lines = list[bytes]()
    with suppress(OSError), source.path.open("rb") as file:
        if matches(source, file):
            with opened(source.path) as content:
                lines = [line.data + b"\n" for line in islice(split(content), source.lines)]
    if not lines:
        raise CopyDamaged(source.path, "the file is not what was archived")
    yield io.BytesIO(b"".join(lines))


def parse_copy(file: BinaryIO, agent: str, key: bytes) -> ParsedLines:
    """Parse the content of a copy, lines that repeat other copies included."""
    return parse(by_agent(agent), Session(agent, ""), ResumePoint(), file, Redactor(key))
